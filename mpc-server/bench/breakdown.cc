// SPDX-License-Identifier: Apache-2.0
// The paper's microbenchmark: what the CPU time of a block at one party goes to. The whole is
// measured by running the protocol, communication by running the channel alone, the local parts by
// running the engine's functions alone. What the parts do not explain is printed as such: caches
// that the parts find warm and the whole does not, the runner.
//
// The local part is the engine's circuit on the working set of a batch, without a channel. The
// neighbour's message is a copy of the own one: the results mean nothing, the instructions and the
// memory traffic are the real ones (no branch and no address depends on a share). The copy stands
// for the channel and is not counted.
#include "mpc-server/bench/print.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include "absl/strings/str_format.h"
#include "mpc-server/base/random_source.h"
#include "mpc-server/circuit/aes/round_key_slices.h"
#include "mpc-server/circuit/bitslice/transpose.h"
#include "mpc-server/circuit/lane_groups.h"

namespace mpckdc::bench {
namespace {

constexpr size_t kRepeats = 15;  // of each; one more, not counted, warms up

double NanosecondsNow() {
  return std::chrono::duration<double, std::nano>(
             std::chrono::steady_clock::now().time_since_epoch()).count();
}
// Those of the time stamp counter, which runs at a fixed rate; 0 on machines without one.
double CyclesNow() {
#if defined(__x86_64__)
  return static_cast<double>(__rdtsc());
#else
  return 0;
#endif
}

double TimeOf(const std::function<void()>& f) {
  const double begin = NanosecondsNow();
  f();
  return NanosecondsNow() - begin;
}

class LocalAes {
 public:
  LocalAes(const BenchSetup& s, size_t batch)
      : setup_(s),
        batch_(batch),
        streams_(1, {Secret<Seed>(Seed{1}), Secret<Seed>(Seed{2}), {}}, s.isa),
        keys_(batch * AesRoundKeys(s.bits)),
        aes_(s.bits, s.isa),
        scratch_(kTransposeScratchBytes) {
    SeededRandomForTest random(1);
    random.Fill(absl::MakeSpan(reinterpret_cast<uint8_t*>(keys_.data()), keys_.size() * 32));
    for (size_t j = 0; j < batch; ++j) lanes_.push_back({KeyOfLane(j), nullptr, {}});
  }

  // Whole runs: rounds, and what comes before and after them. The zero shares are made as the
  // engine makes them, inside the kernels where that is faster; or copied from where they lie.
  struct Times {
    double rounds = 0, input_output = 0;
  };
  Times Run(bool zeros_made) {
    Times times;
    ++run_;
    times.input_output = TimeOf([&] { aes_.Reset(lanes_, SboxOf(setup_)); });
    for (uint32_t round = 0; !aes_.Done(); ++round) {
      const size_t bytes = aes_.NextRound().to_next;
      SecretBytes& sent = sent_[round % 2];
      SecretBytes& received = received_[round % 2];
      Grow(sent, bytes);
      if (!zeros_made) pool_.Refill(bytes);  // one round's: they stay in the cache
      ZeroShares zero = zeros_made ? ZeroShares(streams_, run_, round) : ZeroShares(pool_);
      times.rounds += TimeOf([&] { aes_.Produce(zero, {absl::MakeSpan(sent).first(bytes), {}}); });
      received = sent;
      const double end = TimeOf([&] {
        aes_.Consume({absl::MakeConstSpan(received).first(bytes), {}}).IgnoreError();
      });
      (aes_.Done() ? times.input_output : times.rounds) += end;
    }
    return times;
  }

  // The parts of the rounds, each alone.
  double SliceKeys() {
    const TransposeFunctions& transpose = AllTransposes().For(setup_.isa);
    slices_.Reset(batch_, AesRoundKeys(setup_.bits), [&](size_t j) { return KeyOfLane(j); });
    return TimeOf([&] {
      for (size_t k = 0; k < AesRoundKeys(setup_.bits); ++k) {
        for (size_t g = 0; g < GroupCount(batch_); ++g) {
          slices_.Rows(transpose, g, k, scratch_.data());
        }
      }
    });
  }
  double CopyZeros() {
    const size_t rounds = SboxStages(SboxOf(setup_)) * AesRounds(setup_.bits);
    const size_t bytes = CostOfAes(setup_.bits, batch_, SboxOf(setup_)).bytes_to_next / rounds;
    return TimeOf([&] {
      for (size_t r = 0; r < rounds; ++r) {
        pool_.Refill(bytes);
        pool_.Take(absl::MakeSpan(sent_[r % 2]).first(std::min(bytes, sent_[r % 2].size())));
      }
    });
  }

 private:
  const SharedBlock* KeyOfLane(size_t j) const { return &keys_[j * AesRoundKeys(setup_.bits)]; }

  const BenchSetup setup_;
  const size_t batch_;
  PairwiseStreams streams_;
  ZeroPool pool_;
  SecretVector<SharedBlock> keys_;
  AesEncrypt aes_;
  std::vector<AesLane> lanes_;
  RoundKeySlices slices_;
  SecretBytes scratch_, sent_[2], received_[2];
  uint32_t run_ = 0;
};

// Per block and party. Times are of the wall clock. Slicing is that of round keys.
struct LocalCosts {
  double slicing_ns, gates_ns, randomness_ns, input_output_ns, cycles_per_ns;
};

double MedianOf(const std::function<double()>& measure) {
  measure();
  std::vector<double> times;
  for (size_t i = 0; i < kRepeats; ++i) times.push_back(measure());
  return SpreadOf(times).median;
}

// Randomness is what it adds to the rounds as the engine runs them.
LocalCosts MeasureLocal(const BenchSetup& s) {
  const size_t batch = std::min(LanesOf(s, 0), s.chunk_lanes * s.slots);  // what is touched in turn
  LocalAes aes(s, batch);
  const double begin_ns = NanosecondsNow(), begin_cycles = CyclesNow();
  std::vector<double> input_output;
  const double rounds = MedianOf([&] {
    const LocalAes::Times times = aes.Run(/*zeros_made=*/true);
    input_output.push_back(times.input_output);
    return times.rounds;
  });
  const double copied = MedianOf([&] { return aes.Run(/*zeros_made=*/false).rounds; });
  const double copying = MedianOf([&] { return aes.CopyZeros(); });
  const double slicing = MedianOf([&] { return aes.SliceKeys(); });
  const double blocks = static_cast<double>(batch);
  return {.slicing_ns = slicing / blocks,
          .gates_ns = (copied - copying - slicing) / blocks,
          .randomness_ns = (rounds - copied + copying) / blocks,
          .input_output_ns = SpreadOf(input_output).median / blocks,
          .cycles_per_ns = (CyclesNow() - begin_cycles) / (NanosecondsNow() - begin_ns)};
}

}  // namespace

std::string Breakdown(const BenchSetup& s, ordered_json* result) {
  const LocalCosts local = MeasureLocal(s);
  const double total = (*result)["cpu_ns_per_block_per_party"];
  const double communication = (*result)["floor"]["cpu_ns_per_block_per_party"];
  const double explained = local.slicing_ns + local.gates_ns + local.randomness_ns +
                           communication + local.input_output_ns;
  const std::pair<const char*, double> parts[] = {
      {"slicing of round keys", local.slicing_ns},
      {"gates", local.gates_ns},
      {"randomness", local.randomness_ns},
      {"communication", communication},
      {"input and output", local.input_output_ns},
      {"not explained by the parts", total - explained},
      {"whole, as run", total}};
  std::string text = absl::StrFormat(
      "\nCPU time per block and party: AES-%d, batch %d, %d worker(s), %s, %s, %s S-box, %s\n",
      static_cast<int>(s.bits), s.lanes, s.workers, NameOf(kChannels, s.channel), IsaName(s.isa),
      NameOf(kSboxChoices, {SboxOf(s)}), NameOf(kPlacements, s.placement));
  for (const auto& [name, ns] : parts) {
    const double cycles = ns * local.cycles_per_ns, percent = 100 * ns / total;
    (*result)["breakdown"].push_back({{"part", name},
                                      {"ns_per_block", ns},
                                      {"cycles_per_block", cycles},
                                      {"percent", percent}});
    absl::StrAppendFormat(&text, "  %-26s %9.1f ns %9.1f cycles %6.1f %%\n", name, ns, cycles,
                          percent);
  }
  (*result)["tsc_ghz"] = local.cycles_per_ns;
  return text;
}

}  // namespace mpckdc::bench
