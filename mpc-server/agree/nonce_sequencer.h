// SPDX-License-Identifier: Apache-2.0
//
// The nonces that the servers seal with: 96-bit numbers, big-endian,
//
//     time in seconds (4) | cluster (2) | sequence (6)
//
// strictly increasing per cluster, never used twice under any key.
//
// The leader proposes the first nonce of each batch; every server checks it against its own mark,
// its own clock and its own cluster number, and raises its durable mark before a nonce below it is
// used. After a restart a server starts at its mark, and a session at the highest of the three.
//
// The mark runs limits::kNonceReserveAhead before the proposed nonce, so one write serves that many
// seconds. Where nonces run before the clock already (a restart within those seconds) the mark is
// raised by sequence numbers instead: restarting in a loop does not push the time part away.
#ifndef MPC_SERVER_AGREE_NONCE_SEQUENCER_H_
#define MPC_SERVER_AGREE_NONCE_SEQUENCER_H_

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/key/nonce.h"
#include "mpc-server/store/share_store.h"

namespace mpckdc {

class NonceSequencer {
 public:
  // `lead`: how far a nonce's time may run before this server's clock.
  NonceSequencer(ShareStore* store, absl::Duration lead) : store_(store), lead_(lead) {}

  absl::Status Load();  // the durable mark; first of all calls

  // Everything below it may have been used: what a server tells its peers at session start.
  NonceMark mark() const { return std::max(mark_, next_); }
  const NonceMark& next() const { return next_; }  // the lowest that Check() lets pass

  // A session begins, at the highest of the three marks; `peer` is a neighbour's.
  // FailedPrecondition when it is so far before this server's clock that one of the two clocks must
  // be wrong.
  absl::Status Join(const NonceMark& peer, absl::Time now);

  // The first nonce that the leader may propose now.
  NonceMark Propose(absl::Time now) const;

  // Whether `count` nonces from `base` are new, of this cluster, and near this server's time.
  absl::Status Check(const NonceMark& base, uint64_t count, absl::Time now) const;

  // Makes the nonces usable: durable when it returns OK, and never to be proposed again even when
  // the batch fails. After an error none of them may be used.
  absl::Status Reserve(const NonceMark& base, uint64_t count, absl::Time now);

 private:
  ShareStore* const store_;
  const absl::Duration lead_;
  uint16_t cluster_ = 0;
  NonceMark mark_{};     // durable
  bool unsure_ = false;  // the last write failed, and may have happened all the same
  NonceMark next_{};     // above everything used, by this server or in this session
};

}  // namespace mpckdc

#endif  // MPC_SERVER_AGREE_NONCE_SEQUENCER_H_
