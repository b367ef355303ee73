// SPDX-License-Identifier: Apache-2.0
// mpc-bench aes: the real protocol between three parties on threads of this process, each lane with
// a key of its own; outputs are checked. Prints one line per run.
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "mpc-server/circuit/aes_circuit.h"
#include "mpc-server/circuit/aes_plain.h"
#include "mpc-server/circuit/three_parties.h"
#include "mpc-server/transport/test_certificates.h"

ABSL_FLAG(std::string, parties, "threads", "threads");
ABSL_FLAG(std::string, channel, "memory", "memory or tls");
ABSL_FLAG(int, batch, 16384, "blocks per batch");
ABSL_FLAG(std::string, isa, "auto", "auto, avx512, avx2 or portable");
ABSL_FLAG(std::string, sbox, "throughput", "throughput or latency");
ABSL_FLAG(int, bits, 128, "128 or 256");
ABSL_FLAG(double, seconds, 2, "length of the run");

namespace mpckdc {
namespace {

double CpuSeconds() {
  rusage u;
  getrusage(RUSAGE_SELF, &u);
  return static_cast<double>(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

struct Bench {
  AesBits bits;
  Isa isa;
  Sbox sbox;
  size_t lanes;
  double seconds;
  // Per party.
  std::array<std::vector<SharedBlock>, kParties> round_keys, outputs;
  std::vector<Block> inputs, expected;
  // Results.
  std::vector<double> latencies;
  uint32_t batches = 0;
  double wall = 0, cpu = 0;
  Cost cost;
  uint64_t bytes_sent = 0;
};

// Keys and inputs; the plain oracle says what must come out of the first lanes.
void Prepare(Bench& b) {
  constexpr size_t kKeys = 256;  // expanded by the oracle; lanes hold fresh sharings of them
  SeededRandomForTest random(1);
  std::vector<SecretVector<Block>> keys;
  for (size_t i = 0; i < std::min(kKeys, b.lanes); ++i) {
    std::vector<uint8_t> key(16 * AesKeyBlocks(b.bits));
    random.Fill(absl::MakeSpan(key));
    keys.push_back(PlainKeySchedule(key));
  }
  for (size_t j = 0; j < b.lanes; ++j) {
    for (const Block& k : keys[j % keys.size()]) {
      const auto shares = SplitForTest(k, random);
      for (int p = 0; p < kParties; ++p) b.round_keys[p].push_back(shares[p]);
    }
    Block in{};
    random.Fill(absl::MakeSpan(in));
    b.inputs.push_back(in);
    b.expected.push_back(j < 2 * kKeys ? PlainAes(keys[j % keys.size()], in) : Block{});
  }
}

absl::Status RunParty(Bench& b, PartyContext& party) {
  const int p = party.party();
  const size_t keys = AesRoundKeys(b.bits);
  std::vector<AesLane> lanes(b.lanes);
  for (size_t j = 0; j < b.lanes; ++j) {
    lanes[j] = {&b.round_keys[p][j * keys], nullptr, b.inputs[j]};
  }
  AesEncrypt aes(b.bits, b.isa);
  const auto batch = [&](uint32_t number) {
    party.BeginBatch(number);
    aes.Reset(lanes, b.sbox);
    return RunTogether(party, {&aes}, p == 0 ? &b.cost : nullptr);
  };
  absl::Status s = batch(1);  // buffers grow
  const uint32_t planned = b.batches;
  const uint64_t sent = party.channel().Counters().bytes_sent;
  const double cpu = CpuSeconds();
  const absl::Time start = SystemClock().Now();
  for (uint32_t n = 0; n < planned && s.ok(); ++n) {
    const absl::Time begin = SystemClock().Now();
    s = batch(2 + n);
    if (p == 0) b.latencies.push_back(absl::ToDoubleMilliseconds(SystemClock().Now() - begin));
  }
  if (p == 0) {
    b.wall = absl::ToDoubleSeconds(SystemClock().Now() - start);
    b.cpu = CpuSeconds() - cpu;
    b.bytes_sent = party.channel().Counters().bytes_sent - sent;
  }
  b.outputs[p].assign(aes.outputs().begin(), aes.outputs().end());
  return s;
}

bool Verified(const Bench& b) {
  for (size_t j = 0; j < b.lanes; ++j) {
    Block v;
    if (!JoinForTest({b.outputs[0][j], b.outputs[1][j], b.outputs[2][j]}, &v)) return false;
    if (j < 512 && v != b.expected[j]) return false;
  }
  return true;
}

bool RunOnce(Bench& b, bool tls, uint32_t batches) {
  b.batches = batches;
  b.latencies.clear();
  b.cost = {};
  const auto body = [&](PartyContext& party) { return RunParty(b, party); };
  std::array<absl::Status, kParties> statuses;
  if (tls) {
    TestCa ca;
    const auto channels = ConnectThree(TestPeerOptions(ca));
    statuses = RunOverChannels({channels[0].get(), channels[1].get(), channels[2].get()}, 1, body,
                               absl::Seconds(60));
  } else {
    MemoryRing ring;
    statuses = RunThreeParties(ring, 1, body, absl::Seconds(60));
  }
  for (const absl::Status& s : statuses) {
    if (!s.ok()) std::fprintf(stderr, "mpc-bench: %s\n", s.ToString().c_str());
    if (!s.ok()) return false;
  }
  return true;
}

int Main() {
  absl::StatusOr<Isa> isa = ParseIsa(absl::GetFlag(FLAGS_isa));
  if (!isa.ok()) return std::fprintf(stderr, "mpc-bench: %s\n", isa.status().ToString().c_str()), 2;
  const bool tls = absl::GetFlag(FLAGS_channel) == "tls";
  if (absl::GetFlag(FLAGS_parties) != "threads" ||
      (!tls && absl::GetFlag(FLAGS_channel) != "memory")) {
    return std::fprintf(stderr, "mpc-bench: unknown --parties or --channel\n"), 2;
  }
  const std::string sbox = absl::GetFlag(FLAGS_sbox);
  if (sbox != "throughput" && sbox != "latency") {
    return std::fprintf(stderr, "mpc-bench: unknown --sbox\n"), 2;
  }
  Bench b = {};
  b.bits = absl::GetFlag(FLAGS_bits) == 256 ? AesBits::k256 : AesBits::k128;
  b.isa = *isa;
  b.sbox = sbox == "latency" ? Sbox::kLatency : Sbox::kThroughput;
  b.lanes = static_cast<size_t>(std::max(1, absl::GetFlag(FLAGS_batch)));
  Prepare(b);
  if (!RunOnce(b, tls, 3)) return 1;  // how long does a batch take?
  const double per_batch = b.wall / 3;
  if (!RunOnce(b, tls, static_cast<uint32_t>(absl::GetFlag(FLAGS_seconds) / per_batch) + 1)) {
    return 1;
  }
  const double blocks = static_cast<double>(b.lanes) * b.batches;
  std::sort(b.latencies.begin(), b.latencies.end());
  std::printf(
      "aes%d %s %s %s batch %zu: blocks/s %.0f  blocks/cpu-s %.0f  bytes/block/party %.2f  "
      "rounds %llu  p50 %.3f ms  p99 %.3f ms  verified %s\n",
      absl::GetFlag(FLAGS_bits), std::string(IsaName(b.isa)).c_str(),
      absl::GetFlag(FLAGS_channel).c_str(), sbox.c_str(), b.lanes, blocks / b.wall, blocks / b.cpu,
      static_cast<double>(b.bytes_sent) / blocks,
      static_cast<unsigned long long>(b.cost.rounds / (b.batches + 1)),
      b.latencies[b.latencies.size() / 2], b.latencies[b.latencies.size() * 99 / 100],
      Verified(b) ? "yes" : "NO");
  return Verified(b) ? 0 : 1;
}

}  // namespace
}  // namespace mpckdc

int main(int argc, char** argv) {
  const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  if (rest.size() != 2 || std::string(rest[1]) != "aes") {
    std::fprintf(stderr, "usage: mpc-bench aes [--channel=memory|tls] [--batch=N] [--isa=NAME] "
                         "[--sbox=NAME] [--bits=128|256] [--seconds=S]\n");
    return 2;
  }
  return mpckdc::Main();
}
