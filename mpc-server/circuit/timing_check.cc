// SPDX-License-Identifier: Apache-2.0
//
//   timing_check aes128|aes256|tag [leak]
//
// One party's AES on shares, and the comparison of tags, in time: of shares that are all zeros and
// of drawn ones; of a tag that is right and of one that is wrong from its first byte on. With
// `leak` the same with a short cut that times must show, which proves that the measurement sees
// (testing/timing.h).
#include <cstdio>
#include <string>
#include <vector>

#include "mpc-server/base/isa.h"
#include "mpc-server/base/random_source.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/circuit/aes/aes_circuit.h"
#include "mpc-server/key/message_format.h"
#include "mpc-server/share/pairwise_streams.h"
#include "mpc-server/testing/timing.h"

namespace mpckdc {
namespace {

// Beyond that the method's authors call it certain; noise alone stays below 5.
constexpr double kDiffers = 10;
// A measurement that finds something is made again: a machine that does other things may favour one
// class.
constexpr int kTries = 3;

class AesTime {
 public:
  explicit AesTime(AesBits bits) : circuit_(bits), keys_(AesRoundKeys(bits)), inputs_(kLanes) {}

  void Prepare(int of) {
    for (auto* shares : {&keys_, &inputs_}) {
      for (SharedBlock& share : *shares) {
        // Both classes draw, so that both leave the same caches behind.
        random_.Fill(absl::MakeSpan(share.x));
        random_.Fill(absl::MakeSpan(share.a));
        if (of == 0) share = SharedBlock{};
      }
    }
    lanes_.assign(kLanes, AesLane{keys_.data(), nullptr, Block{}});
    for (size_t i = 0; i < kLanes; ++i) lanes_[i].shared_input = &inputs_[i];
    circuit_.Reset(lanes_);
    ++batch_;
  }
  // What a party computes does not ask whether the messages that come are right: it gets its own.
  // They stay as they are until the next round is produced.
  void Run(bool leak) {
    for (uint32_t round = 0; !circuit_.Done(); ++round) {
      const RoundShape shape = circuit_.NextRound();
      std::vector<uint8_t>& message = messages_[round % 2];
      message.resize(shape.to_next);
      ZeroShares zero(streams_, batch_, round);
      circuit_.Produce(zero, {absl::MakeSpan(message), {}});
      if (!circuit_.Consume({message, {}}).ok()) std::abort();
    }
    if (leak) ShortCut();
  }

 private:
  static constexpr size_t kLanes = 64;

  // As a multiplication bit by bit that skips zeros.
  void ShortCut() {
    for (const SharedBlock& share : inputs_) {
      for (const uint8_t byte : share.x) {
        for (int bit = 0; bit < 8; ++bit) {
          if ((byte >> bit & 1) != 0) sum_ = sum_ * 3 + 1;
        }
      }
    }
  }

  AesEncrypt circuit_;
  SecretVector<SharedBlock> keys_, inputs_;
  std::vector<AesLane> lanes_;
  std::vector<uint8_t> messages_[2];
  PairwiseStreams streams_{0, PairwiseSeeds()};
  SeededRandomForTest random_{1};
  uint32_t batch_ = 0;
  volatile uint64_t sum_ = 0;
};

class TagTime {
 public:
  void Prepare(int of) {
    random_.Fill(absl::MakeSpan(right_));
    given_ = right_;
    // Both classes write that byte: a load of what was just written in parts takes longer.
    given_[0] = static_cast<uint8_t>(given_[0] ^ of);
  }
  void Run(bool leak) {
    for (int i = 0; i < kComparisons; ++i)
      found_ = found_ + (leak ? Early() : ConstantTimeEqual(right_, given_));
  }

 private:
  static constexpr int kComparisons = 200;  // one alone is shorter than a clock's tick

  bool Early() const {
    const volatile uint8_t *a = right_.data(), *b = given_.data();
    for (size_t i = 0; i < right_.size(); ++i) {
      if (a[i] != b[i]) return false;
    }
    return true;
  }

  Tag right_{}, given_{};
  SeededRandomForTest random_{1};
  volatile int found_ = 0;
};

template <class Timed>
int Check(Timed timed, size_t rounds, bool leak) {
  double t = 0;
  for (int i = 0; i < kTries; ++i) {
    t = LargestT(
        rounds, [&](int of) { timed.Prepare(of); }, [&](int) { timed.Run(leak); });
    std::printf("%zu measurements: |t| = %.1f\n", rounds, t);
    if ((t > kDiffers) == leak) break;
  }
  std::puts(t > kDiffers ? "times differ" : "no difference found");
  return t > kDiffers ? 1 : 0;
}

int Main(const std::string& what, bool leak) {
  constexpr size_t kAesRounds = 40'000, kTagRounds = 400'000;
  if (what == "aes128") return Check(AesTime(AesBits::k128), kAesRounds, leak);
  if (what == "aes256") return Check(AesTime(AesBits::k256), kAesRounds, leak);
  if (what == "tag") return Check(TagTime(), kTagRounds, leak);
  std::fputs("timing_check aes128|aes256|tag [leak]\n", stderr);
  return 2;
}

}  // namespace
}  // namespace mpckdc

int main(int argc, char** argv) {
  return mpckdc::Main(argc > 1 ? argv[1] : "", argc > 2 && std::string(argv[2]) == "leak");
}
