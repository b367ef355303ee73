// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/setup.h"

#include <algorithm>

#include "mpc-server/circuit/bitslice/slices.h"
#include "mpc-server/compute/batch_work.h"
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

Sbox SboxOf(const BenchSetup& setup) {
  const size_t teams = static_cast<size_t>(Teams(setup));
  return setup.sbox.value_or(BatchWork::SboxOf((setup.lanes + teams - 1) / teams));
}

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

// With the round that exchanges the zero shares first, where there is one.
Cost AsRun(const BenchSetup& setup, const Cost& cost) {
  if (setup.randomness == Randomness::kKeyed) return cost;
  return {cost.rounds + 1, 2 * cost.bytes_to_next, cost.bytes_to_prev};
}

}  // namespace

std::vector<std::vector<size_t>> PartsOfRings(const BenchSetup& setup, size_t lanes) {
  const AesCut cut = CutOf(setup);
  const size_t used = std::clamp<size_t>(lanes / cut.ring_lanes, 1,
                                         static_cast<size_t>(RingsOfTeam(setup)));
  std::vector<std::vector<size_t>> rings;
  for (size_t share : Pieces(lanes, used)) {
    const size_t parts = std::max<size_t>((share + cut.chunk_lanes - 1) / cut.chunk_lanes, 1);
    rings.push_back(Pieces(share, parts));
  }
  return rings;
}

void DeclaredSends::Add(const BenchSetup& setup, const Cost& more, uint64_t to_prev) {
  const Cost run = AsRun(setup, more);
  cost = cost + run;
  frames += run.rounds + to_prev;
}

DeclaredSends DeclaredOfBlocks(const BenchSetup& setup, AesBits bits, size_t blocks, Sbox sbox,
                               const Cost& others) {
  DeclaredSends sends;
  Cost beside = others;
  for (const std::vector<size_t>& parts : PartsOfRings(setup, blocks)) {
    std::vector<Cost> slots(setup.slots);
    for (size_t p = 0; p < parts.size(); ++p) {
      Cost part = parts[p] == 0 ? Cost{} : CostOfAes(bits, parts[p], sbox);
      part = Together(part, std::exchange(beside, Cost{}));
      if (part.rounds == 0) continue;
      part = AsRun(setup, part);
      slots[p % setup.slots] = slots[p % setup.slots] + part;
      sends.frames += part.rounds;
    }
    for (const Cost& slot : slots) sends.cost = Together(sends.cost, slot);
  }
  return sends;
}

}  // namespace mpckdc::bench
