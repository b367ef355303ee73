// SPDX-License-Identifier: Apache-2.0
//
// A server that lies: one party's channel, which alters what it sends. The engine behind it is the
// production's and notices nothing, or computes on with the lie (`own_state`).
//
//   Liar liar(seed);
//   liar.Arm({.kind = LieKind::kOneBit, .where = AtStep("aes/norm")});
//   auto channel = liar.Wrap(std::move(honest_channel));
//
// The same seed, arming and messages give the same lies.
#ifndef MPC_SERVER_TESTING_DEVIATING_CHANNEL_H_
#define MPC_SERVER_TESTING_DEVIATING_CHANNEL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "mpc-server/base/random_source.h"
#include "mpc-server/testing/cancelling_errors.h"
#include "mpc-server/wire/peer_channel.h"

namespace mpckdc {

enum class LieKind {
  // Errors that are added.
  kOneBit,
  kSeveralBits,  // 2 to 9, anywhere in the message
  kWholeRow,     // one bit of all lanes
  kConstant,     // the same bits in every message that suits, again and again
  kCancelling,   // bits whose weights, if they were known in advance, add up to zero
  // Other bytes in the message's place.
  kNoise,       // random ones
  kEcho,        // what prev has just sent: the liar waits for it
  kOtherRound,  // its own earlier message of this length in this batch
  kOldBatch,    // its own message of the same round in an earlier batch
  // The bytes are right.
  kLate,   // sent when the neighbours' messages are there; no lie
  kTwice,  // sent two times
  kSwap,   // control frames only: it and its successor change places
};
inline constexpr int kLieKinds = static_cast<int>(LieKind::kSwap) + 1;
const char* LieName(LieKind kind);
// Whether right bytes are sent at the right place in their order: nobody may be accused of it.
inline bool IsHonest(LieKind kind) { return kind == LieKind::kLate; }

using RoundFilter = std::function<bool(const RoundId&)>;
RoundFilter AtStep(std::string step);
RoundFilter AtRound(uint16_t round);

struct Lie {
  LieKind kind = LieKind::kOneBit;
  RoundFilter where = nullptr;  // null: any
  uint64_t skip = 0;            // so many that suit are left alone first
  bool control = false;  // control frames instead of rounds; `where` sees the frame type's name
  bool to_next = true, to_prev = false;
  // The liar computes on with what it sent: an error that is added to the shared value. Otherwise
  // only the receiver sees it.
  bool own_state = false;
  std::vector<Flip> flips = {};  // of kConstant; empty: drawn at the first message
  size_t row_bytes = 1;          // of kWholeRow and kCancelling
  // kCancelling, by the index of the weights in KnownWeights().
  size_t weights = 0;
};

// What the liar itself sees of a round; what it sent is as its engine meant it.
struct SeenRound {
  RoundId id;
  absl::Span<const uint8_t> to_next, to_prev, from_prev, from_next;
};

// One party's lies, on all its channels and across its reconnections. Thread safe.
class Liar {
 public:
  explicit Liar(uint64_t seed) : random_(seed) {}

  // Takes the place of what was armed before. All kinds but kConstant strike once.
  void Arm(Lie lie) {
    std::vector<Lie> one;
    one.push_back(std::move(lie));
    ArmAll(std::move(one));
  }
  void ArmAll(std::vector<Lie> lies);
  void Disarm() { ArmAll({}); }
  bool armed() const;
  // Messages are kept for kOtherRound and kOldBatch from now on.
  void KeepHistory();
  // Called with every round when it is collected.
  void Watch(std::function<void(const SeenRound&)> watch);
  // How often each kind struck.
  std::map<std::string, uint64_t> counts() const;
  uint64_t struck() const;
  // The steps at which one struck.
  std::set<std::string> steps() const;

  std::unique_ptr<PeerChannel> Wrap(std::unique_ptr<PeerChannel> channel);

 private:
  friend class DeviatingChannel;

  struct Armed {
    Lie lie;
    uint64_t suited = 0;
    bool spent = false;
  };
  // Where a message comes in the order of a session: to whom, in which round, at which step.
  struct Place {
    Neighbour to;
    RoundId id;
    bool control;
  };
  struct Kept {
    uint32_t batch;
    std::string bytes;
  };

  // What is armed and strikes at this message, if anything; counted.
  std::optional<Lie> Strike(const Place& place, size_t size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // False: the bytes are as they were.
  bool Alter(const Lie& lie, const Place& place, absl::Span<uint8_t> bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Replace(const Lie& lie, const Place& place, absl::Span<uint8_t> bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::vector<Flip> Draw(const Lie& lie, size_t size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::vector<Flip> DrawCancelling(const Lie& lie, size_t size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  uint64_t Below(uint64_t n) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Keep(const Place& place, absl::Span<const uint8_t> bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Count(const Lie& lie, const Place& place) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    ++counts_[LieName(lie.kind)];
    steps_.insert(place.id.step);
  }
  void Tell(const SeenRound& seen);

  mutable absl::Mutex mu_;
  SeededRandomForTest random_ ABSL_GUARDED_BY(mu_);
  std::vector<Armed> armed_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, uint64_t> counts_ ABSL_GUARDED_BY(mu_);
  std::set<std::string> steps_ ABSL_GUARDED_BY(mu_);
  std::function<void(const SeenRound&)> watch_ ABSL_GUARDED_BY(mu_);
  bool keeps_history_ ABSL_GUARDED_BY(mu_) = false;
  // By neighbour and round, of this batch and the one before; and the last of each length.
  std::map<std::pair<Neighbour, uint16_t>, std::vector<Kept>> by_round_ ABSL_GUARDED_BY(mu_);
  std::map<std::pair<Neighbour, size_t>, Kept> by_size_ ABSL_GUARDED_BY(mu_);
  std::map<std::pair<Neighbour, std::string>, std::string> control_ ABSL_GUARDED_BY(mu_);
};

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_DEVIATING_CHANNEL_H_
