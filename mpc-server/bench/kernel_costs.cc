// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/kernel_costs.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>

#include "mpc-server/base/random_source.h"
#include "mpc-server/circuit/aes_kernels.h"
#include "mpc-server/circuit/lane_groups.h"
#include "mpc-server/circuit/round_key_slices.h"

namespace mpckdc {
namespace {

constexpr size_t kBlockBytes = 16;
constexpr size_t kNormPlanes = 2 * 4 * kBlockBytes * kRowBytes;

uint64_t NanosecondsNow() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}
// The cheapest clock there is: it is read twice per group and part.
uint64_t TicksNow() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return NanosecondsNow();
#endif
}
#if defined(__x86_64__)
constexpr bool kTicksAreCycles = true;
#else
constexpr bool kTicksAreCycles = false;
#endif

// The first six are stages, by SboxStage.
enum Part { kRoundKeys = 6, kInput, kOutput, kZeroShares, kTotal, kPartCount };
constexpr const char* kPartNames[kPartCount] = {
    "aes/norm",  "aes/helper", "aes/inverse", "aes/product", "aes/twist", "aes/scale",
    "round keys", "input",     "output",      "zero shares", "total"};
using Ticks = std::array<uint64_t, kPartCount>;

// Attributes the time since the last call to one part after the other.
class Stopwatch {
 public:
  void Start() { last_ = TicksNow(); }
  void Charge(size_t part) {
    const uint64_t now = TicksNow();
    spent_[part] += now - last_;
    last_ = TicksNow();
  }
  Ticks Take() {
    Ticks t = spent_;
    for (size_t i = 0; i < kTotal; ++i) t[kTotal] += t[i];
    spent_ = {};
    return t;
  }

 private:
  uint64_t last_ = 0;
  Ticks spent_ = {};
};

AesKernels KernelsFor(const KernelCostOptions& o) {
  AesKernels kernels = AllAesKernels().For(o.isa);
  if (o.zeros_apart) kernels.makes_zeros = false;
  return kernels;
}

// One party's AesEncrypt of aes_circuit.cc with a stopwatch between its steps.
class LocalAes {
 public:
  explicit LocalAes(const KernelCostOptions& o)
      : o_(o),
        kernels_(KernelsFor(o)),
        transpose_(AllTransposes().For(o.isa)),
        streams_(1, {Secret<Seed>(Seed{1}), Secret<Seed>(Seed{2})}, o.isa),
        keys_((o.batch + o.key_run - 1) / o.key_run * AesRoundKeys(o.bits)),
        blocks_(o.batch),
        state_(GroupCount(o.batch) * 2 * kBlockPlane),
        norm_(GroupCount(o.batch) * kNormPlanes),
        scratch_(kTransposeScratchBytes),
        block_rows_(2 * kBlockPlane) {
    SeededRandomForTest random(1);
    random.Fill(absl::MakeSpan(reinterpret_cast<uint8_t*>(keys_.data()), keys_.size() * 32));
    random.Fill(absl::MakeSpan(reinterpret_cast<uint8_t*>(blocks_.data()), blocks_.size() * 32));
    for (size_t j = 0; j < o.batch; ++j) {
      key_of_.push_back(&keys_[j / o.key_run * AesRoundKeys(o.bits)]);
    }
    for (auto& m : messages_) m.resize(WireBytes(o.batch, kBlockBytes * kMaxSlicesPerByte));
  }

  Ticks Run() {
    ++batch_;
    groups_.Reset(o_.batch);
    watch_.Start();
    SliceInputs();
    round_keys_.Reset(o_.batch, AesRoundKeys(o_.bits), [&](size_t j) { return key_of_[j]; });
    watch_.Charge(kInput);
    const size_t steps = SboxStages(o_.sbox) * AesRounds(o_.bits);
    for (size_t step = 0; step < steps; ++step) RunStep(step);
    Finish();
    return watch_.Take();
  }

 private:
  void SliceInputs() {
    std::vector<const uint8_t*> from(kGroupLanes);
    for (size_t g = 0; g < groups_.groups(); ++g) {
      const size_t n = groups_.LanesIn(g);
      for (size_t j = 0; j < n; ++j) {
        from[j] = reinterpret_cast<const uint8_t*>(&blocks_[g * kGroupLanes + j]);
      }
      uint8_t* rows = State(g);
      transpose_.to_rows({from.data(), n, 0}, rows, rows + kBlockPlane, scratch_.data());
    }
  }

  void RunStep(size_t step) {
    const SboxStage stage = StageAt(o_.sbox, step);
    const size_t rows = kBlockBytes * SlicesPerByte(stage), round = step / SboxStages(o_.sbox);
    SecretBytes& sent = messages_[step % 2];
    SecretBytes& received = messages_[2 + step % 2];
    const size_t bytes = groups_.MessageBytes(rows);
    ZeroShares zero(streams_, batch_, static_cast<uint32_t>(step));
    watch_.Start();
    groups_.Produce(kernels_, zero, absl::MakeSpan(sent).first(bytes), rows,
                    [&](size_t g, size_t width, const uint8_t* was_sent, const uint8_t* came,
                        uint8_t* msg, const ZeroSource* source) {
                      watch_.Charge(kZeroShares);
                      Kernel(stage, round, g, width, was_sent, came, msg, source);
                      watch_.Charge(static_cast<size_t>(stage));
                    });
    std::memcpy(received.data(), sent.data(), bytes);
    groups_.Consume(absl::MakeConstSpan(received).first(bytes));
  }

  void Kernel(SboxStage stage, size_t round, size_t g, size_t width, const uint8_t* sent,
              const uint8_t* received, uint8_t* msg,
              const ZeroSource* source) {
    uint8_t* state = State(g);
    uint8_t* norm = norm_.data() + g * kNormPlanes;
    const AesLinear linear =
        round + 1 == AesRounds(o_.bits) ? AesLinear::kShiftRows : AesLinear::kMixColumns;
    switch (stage) {
      case SboxStage::kNorm: {
        const uint8_t* key = round_keys_.Rows(transpose_, g, round, scratch_.data());
        watch_.Charge(kRoundKeys);
        if (round == 0) return kernels_.start(state, key, state, msg, width, source);
        return kernels_.next(sent, received, key, state, msg, width, source);
      }
      case SboxStage::kHelper:
        return kernels_.helper(kBlockBytes, sent, received, norm, msg, width, source);
      case SboxStage::kInverse:
        return kernels_.inverse(kBlockBytes, norm, sent, received, msg, width, source);
      case SboxStage::kProduct:
        return kernels_.product(linear, state, sent, received, msg, width, source);
      case SboxStage::kTwist:
        return kernels_.twist(kBlockBytes, state, sent, received, msg, width, source);
      case SboxStage::kScale:
        return kernels_.scale(linear, sent, received, msg, width, source);
    }
  }

  void Finish() {
    watch_.Start();
    groups_.Finish([&](size_t g, size_t width, const uint8_t* sent, const uint8_t* received) {
      const uint8_t* key =
          round_keys_.Rows(transpose_, g, AesRounds(o_.bits), scratch_.data());
      watch_.Charge(kRoundKeys);
      uint8_t* rows = block_rows_.data();
      kernels_.finish(sent, received, key, rows, width);
      uint8_t* out = reinterpret_cast<uint8_t*>(blocks_.data() + g * kGroupLanes);
      transpose_.to_pairs(rows, rows + kBlockPlane, {out, kPairBytes, groups_.LanesIn(g)},
                          scratch_.data());
      watch_.Charge(kOutput);
    });
  }

  uint8_t* State(size_t g) { return state_.data() + g * 2 * kBlockPlane; }

  const KernelCostOptions o_;
  const AesKernels kernels_;
  const TransposeFunctions& transpose_;
  PairwiseStreams streams_;
  SecretVector<SharedBlock> keys_, blocks_;
  std::vector<const SharedBlock*> key_of_;
  SecretBytes state_, norm_, scratch_, block_rows_;
  SecretBytes messages_[4];  // sent by turns, received by turns
  LaneGroups groups_;
  RoundKeySlices round_keys_;
  Stopwatch watch_;
  uint32_t batch_ = 0;
};

Spread SpreadOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values.front(), values[values.size() / 2], values.back()};
}

}  // namespace

std::vector<KernelCost> MeasureKernelCosts(const KernelCostOptions& options) {
  LocalAes aes(options);
  aes.Run();
  const uint64_t ns_before = NanosecondsNow(), ticks_before = TicksNow();
  std::vector<Ticks> runs;
  for (size_t i = 0; i < std::max<size_t>(1, options.repeats); ++i) runs.push_back(aes.Run());
  const double ns_per_tick = static_cast<double>(NanosecondsNow() - ns_before) /
                             static_cast<double>(TicksNow() - ticks_before);
  std::vector<KernelCost> costs;
  for (size_t part = 0; part < kPartCount; ++part) {
    std::vector<double> ns, cycles;
    for (const Ticks& t : runs) {
      const double ticks = static_cast<double>(t[part]) / static_cast<double>(options.batch);
      ns.push_back(ticks * ns_per_tick);
      cycles.push_back(kTicksAreCycles ? ticks : 0);
    }
    const KernelCost cost = {kPartNames[part], SpreadOf(ns), SpreadOf(cycles)};
    if (cost.ns.max != 0) costs.push_back(cost);  // the other S-box's stages do not occur
  }
  return costs;
}

}  // namespace mpckdc
