// SPDX-License-Identifier: Apache-2.0
//
// Which share epoch a session is in (store/epochs.h). An epoch changes only while a session opens,
// when nothing is computed:
//
//     batch n      all three want a refresh: they agree on it, and the session ends
//     leaving      nobody closes before all three know
//     hellos       each claims its epoch, what it has prepared, and whether it wants a refresh
//     confirm      the three saw the same hellos, so the three choose the same step
//     refresh      each prepares (durable), tells both others, and enters the next epoch when both
//                  have told it
//
//     P0  e ---- prepared ------ entered e+1
//     P1  e --------- prepared -- entered e+1
//     P2  e ---- prepared ----x (cut off)  ... next session: claims e, prepared; others claim e+1:
//                                              it catches up
//
// A server enters e + 1 only after all three have prepared it, and forgets what it prepared only
// after all three claimed e in one session. So whoever is behind has what it needs to follow,
// whatever stops when.
//
// A party that lost everything is replaced the same way: its empty store, and the wish of three
// administrators' calls, make the step kReplace. The two others draw the seed by themselves, so the
// shares of the lost store are worth nothing any more; the newcomer joins the epoch that they
// enter, and receives its keys afterwards (hand_over.h).
//
// Where a party runs several machines on one store, all this is one triple's at a time, the
// steward's: a durable number in each of the three stores, which each of the writes above looks at.
// Another triple that wants a change, or finds one of the three behind, takes over in one session
// and goes on in its next. To follow takes that too: otherwise a party that lies could claim e + 1
// to one triple, where P0 follows, and e to another, where P1 forgets what it would follow with
// (epoch_order_test.cc).
//
// The seed of a refresh comes out of the session's fresh hellos: a random number of each server,
// which travelled under fresh keys of fresh handshakes. Somebody who read a server's memory before,
// and is gone, does not know it.
#ifndef MPC_SERVER_AGREE_EPOCH_AGREEMENT_H_
#define MPC_SERVER_AGREE_EPOCH_AGREEMENT_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "mpc-server/store/epochs.h"

namespace mpckdc {

// What a server says about itself in its greeting.
struct EpochClaim {
  uint64_t epoch = 1;
  RefreshId began_by{};
  std::optional<RefreshId> prepared;
  bool refresh = false;    // it was asked for a refresh, and may
  bool agreed = false;     // all three did so in the session before, as far as it knows
  bool busy = false;       // records of the last refresh are not written yet
  bool empty = false;      // it never had a key
  bool receiving = false;  // it has not all keys yet
  uint8_t replace = 0;     // its administrator wants party `replace` - 1 replaced; 0: none
  uint8_t steward = 0;     // the triple that may change its store's epoch (store/fellows.h)
  bool catch_up = false;   // its administrator wants it to receive keys, in this triple
  bool insists = false;    // in this triple's sessions somebody has been behind for a while

  friend bool operator==(const EpochClaim&, const EpochClaim&) = default;
};
EpochClaim ClaimOf(const EpochState& state, bool refresh);

// Who has to receive keys after a session with these claims settled its epoch; nullopt: nobody.
std::optional<int> Receiver(const std::array<EpochClaim, 3>& claims);

enum class EpochStep {
  kStay,      // and forget what was prepared
  kWait,      // others catch up with this server
  kCatchUp,   // enter what this server has prepared
  kRefresh,   // prepare the next epoch and enter it
  kReplace,   // the same, all but one, which joins
  kTakeOver,  // have this triple change the epoch: the next session may
};

// The same claims at the three servers, by party; the step of `own`. FailedPrecondition: the three
// cannot come to one epoch; the text says whose store is which and what to do. Unavailable: they
// are coming to one in another triple; it is tried again. Of a session of triple `triple`.
absl::StatusOr<EpochStep> ChooseEpochStep(const std::array<EpochClaim, 3>& claims, int own,
                                          int triple);
// Whether all three stores leave the epoch to this triple.
bool IsSteward(const std::array<EpochClaim, 3>& claims, int triple);

// After the steps were taken: an error where some stores are empty beside others that are not, but for
// one that receives its keys. Nothing can be computed there, and none of the three is ready.
absl::Status CheckSettled(const std::array<EpochClaim, 3>& claims);

// What a server tells both others when it has prepared: 3 (1) | refresh (16) | into (8).
std::string EncodePrepared(const RefreshId& id, uint64_t into);

}  // namespace mpckdc

#endif  // MPC_SERVER_AGREE_EPOCH_AGREEMENT_H_
