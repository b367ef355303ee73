// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/setup.h"

#include <algorithm>
#include <numeric>

#include "mpc-server/bench/login_batch.h"
#include "mpc-server/circuit/aes_kernels.h"
#include "mpc-server/circuit/bitslice/slices.h"
#ifdef MPCKDC_AEAD_LINK
#include "mpc-server/wire/record_cipher.h"
#endif

namespace mpckdc::bench {

// libipsec-mb, and so the records, exist for some machines only.
bool ChannelIsBuilt(Channel channel) {
#ifdef MPCKDC_AEAD_LINK
  return channel != Channel::kAead || RecordCipher::Available();
#else
  return channel != Channel::kAead;
#endif
}
Channel DefaultChannel() {
  return ChannelIsBuilt(Channel::kAead) ? Channel::kAead : Channel::kTls;
}

absl::string_view ChannelName(Channel channel) {
  switch (channel) {
    case Channel::kAead:
      return "aead";
    case Channel::kTcp:
      return "tcp";
    case Channel::kTls:
      return "tls";
    case Channel::kMemory:
      return "memory";
  }
  return "?";
}

absl::string_view PlacementName(Placement placement) {
  return placement == Placement::kProcesses ? "processes" : "threads";
}

absl::string_view SboxName(Sbox sbox) {
  return sbox == Sbox::kThroughput ? "throughput" : "latency";
}

absl::string_view HashName(HashKind hash) {
  return hash == HashKind::kSha1 ? "sha1" : hash == HashKind::kSha256 ? "sha256" : "sha384";
}
absl::string_view AdderName(Adder adder) {
  return adder == Adder::kRipple ? "ripple" : adder == Adder::kPrefix ? "prefix" : "fewest-rounds";
}

absl::string_view WorkName(Work work) { return work == Work::kAes ? "aes" : "floor"; }

namespace {

// AesBatch's rule for `pieces` of about equal length: whole groups but for the end. The last ones
// may be empty.
std::vector<size_t> Pieces(size_t lanes, size_t pieces) {
  const size_t length = GroupCount((lanes + pieces - 1) / pieces) * kGroupLanes;
  std::vector<size_t> lengths;
  for (size_t p = 0; p < pieces; ++p) {
    const size_t from = std::min(lanes, p * length);
    lengths.push_back(std::min(lanes - from, length));
  }
  return lengths;
}

}  // namespace

std::vector<std::vector<size_t>> PartsOfRings(const BenchSetup& setup, size_t lanes) {
  const AesCut cut = CutOf(setup);
  const size_t used = std::clamp<size_t>(lanes / cut.ring_lanes, 1,
                                         static_cast<size_t>(RingsOfTeam(setup)));
  std::vector<std::vector<size_t>> rings;
  for (size_t share : Pieces(lanes, used)) {
    const size_t parts = std::max<size_t>((share + cut.part_lanes - 1) / cut.part_lanes, 1);
    rings.push_back(Pieces(share, parts));
  }
  return rings;
}

std::vector<size_t> RoundSizes(const BenchSetup& setup, size_t lanes) {
  constexpr size_t kBytesOfBlock = 16;
  std::vector<size_t> sizes;
  if (lanes == 0) return sizes;
  for (size_t step = 0; step < SboxStages(setup.sbox) * AesRounds(setup.bits); ++step) {
    const size_t slices = SlicesPerByte(StageAt(setup.sbox, step));
    sizes.push_back(WireBytes(lanes, kBytesOfBlock * slices));
  }
  // All zero shares of the part come first.
  if (setup.randomness == Randomness::kExchanged) {
    sizes.insert(sizes.begin(), std::accumulate(sizes.begin(), sizes.end(), size_t{0}));
  }
  return sizes;
}

DeclaredSends DeclaredOf(const BenchSetup& setup, size_t lanes) {
  DeclaredSends sends;
  const uint64_t more = setup.randomness == Randomness::kExchanged ? 1 : 0;
  if (setup.login.has_value()) return DeclaredOfLogins(setup, lanes);
  if (setup.hmac.has_value()) {
    const HmacSetup& h = *setup.hmac;
    const std::vector<HmacShape> shapes(lanes, HmacShape{h.bytes, h.shared});
    const Cost one = CostOfHmac(h.hash, h.adder, shapes);
    return {{one.rounds + more, one.bytes_to_next * (1 + more), 0}, one.rounds + more};
  }
  for (const std::vector<size_t>& parts : PartsOfRings(setup, lanes)) {
    std::vector<uint64_t> rounds(setup.slots);
    for (size_t p = 0; p < parts.size(); ++p) {
      if (parts[p] == 0) continue;
      const Cost one = CostOfAes(setup.bits, parts[p], setup.sbox);
      rounds[p % setup.slots] += one.rounds + more;
      sends.cost.bytes_to_next += one.bytes_to_next * (1 + more);
      sends.frames += one.rounds + more;
    }
    sends.cost.rounds =
        std::max(sends.cost.rounds, *std::max_element(rounds.begin(), rounds.end()));
  }
  return sends;
}

}  // namespace mpckdc::bench
