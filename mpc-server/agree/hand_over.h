// SPDX-License-Identifier: Apache-2.0
//
// A party that begins again with an empty store receives its keys from the two others, some in each
// batch of the long ring, while logins go on beside it. Each of its two components is held by one
// of them, so nobody sends it more than it may have, and nobody learns anything:
//
//                    the newcomer P_i       P_{i-1}: its a          P_{i+1}: its x + a = a_i
//
//     handles            <------------------  the guide (one of the two) -------------->
//     lacking            ------------------------------------>------------------------->
//     components         <-----------------------------------<--------------------------
//     candidates         ------------------------------------>------------------------->
//                        the three verify them on shares (compute/key_work.h)
//     stored, wanted     ------------------------------------>------------------------->
//
// Nothing is computed with a key that was not verified: a sender that lies can shift the parts of a
// key by differences that it knows, and what is then sealed tells it the key (faults in AES's last
// rounds; hand_over_attack_test.cc does it). The parts of a shifted key do not follow from its
// base. Of a key that is kept for the password history there is the base alone: shifted, it is equal
// to no new key.
//
// The guide names first what logins wanted and the newcomer had not, then what was used last, then
// all other keys: as many as a batch shall have, or more while the newcomer has what is named. It
// lacks the first ones then, as many as a batch can give; if they are that many, what was named
// behind the last of them is named again. When the guide is through the other one is: one that lies
// hides no key. A key that one of the two has not is left out, as one whose facts they tell
// differently is: mpc-admin verify and doctor name them afterwards.
//
// Frames, of type kAgreement on the long ring's channel; numbers are big-endian:
//
//     handles     4 (1) | no more follow (1) | count (4) | handles (16)
//     lacking     5 (1) | count (4) | handles (16)
//     components  6 (1) | count (4) | each: deleted since, microseconds since 1970, plus 2^63 if it
//                 is kept for the history, 0: it is not deleted (8)
//                 | length, 0: not here (4) | component (record_codec.h)
//     candidates  8 (1) | count (4) | handles (16)
//     stored      7 (1) | stored (4) | left out (4) | count (4) | handles that are wanted (16)
#ifndef MPC_SERVER_AGREE_HAND_OVER_H_
#define MPC_SERVER_AGREE_HAND_OVER_H_

#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "mpc-server/agree/key_rounds.h"
#include "mpc-server/job/job.h"
#include "mpc-server/store/key_record.h"

namespace mpckdc {

struct EngineState;
struct PeerSession;

// Handles that jobs named lately, the last first: what a newcomer should have first.
class RecentHandles {
 public:
  void Note(absl::Span<const Handle> handles);
  std::vector<Handle> LastFirst() const;

 private:
  mutable absl::Mutex mu_;
  std::vector<Handle> ring_ ABSL_GUARDED_BY(mu_);  // of limits::kRecentHandles
  size_t next_ ABSL_GUARDED_BY(mu_) = 0;
};

// What a newcomer lacked when a job named it.
class WantedHandles {
 public:
  void Note(const Handle& handle);
  std::vector<Handle> Take(size_t count);

 private:
  absl::Mutex mu_;
  absl::flat_hash_set<Handle> wanted_ ABSL_GUARDED_BY(mu_);
};

// All on which the rounds depend in which records are verified: the three confirm to each other that
// they have the same before anything of it is sent. A newcomer that names a key of which the two
// others have different records would have one of them accused otherwise.
std::string ShapeOf(absl::Span<const KeyRecord> records);

// A batch has the same hundreds of rounds for one key as for many, so the more are in it the less
// each of them costs; but a long job waits for the whole batch. The guide begins with few and names
// twice as many while that is quick, half as many when it took long.
inline constexpr size_t kFewKeysHandedOver = 128, kMostKeysHandedOver = 1024;
// After a batch that could have had `present` keys and had `given`: one that was not full says
// nothing of a full one.
size_t KeysOfNextBatch(size_t present, size_t given, absl::Duration took);

// For as long as the session lasts, or until `receiver` has everything.
KeyRoundPtr MakeHandOver(EngineState& state, const PeerSession& session, int receiver);

// Those of sessions before.
void DropHandOvers(EngineState& state);

}  // namespace mpckdc

#endif  // MPC_SERVER_AGREE_HAND_OVER_H_
