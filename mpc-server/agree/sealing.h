// SPDX-License-Identifier: Apache-2.0
//
// Whether this server seals now: it reserves the nonces of a proposal, unless a clock, a peer's
// mark or the disk forbids it, and tells status and observer why. One thread at a time.
#ifndef MPC_SERVER_AGREE_SEALING_H_
#define MPC_SERVER_AGREE_SEALING_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "mpc-server/agree/clock_watch.h"
#include "mpc-server/agree/nonce_sequencer.h"

namespace mpckdc {

class Sealing {
 public:
  // `lead`: how far a nonce's time may run before this server's clock.
  Sealing(ShareStore* store, absl::Duration lead, const ClockWatch* clocks, SharedStatus* status,
          EngineObserver* observer)
      : nonces_(store, lead), clocks_(clocks), status_(status), observer_(observer) {}

  absl::Status Load() { return nonces_.Load(); }  // first of all calls

  // A session opens: the peers are told this server's mark and tell theirs. One that cannot be true
  // stops sealing for the session, and nothing else.
  void NewSession() { mark_trouble_.clear(); }
  NonceMark mark() const { return nonces_.mark(); }
  // Of a session: below it nonces may have been used.
  NonceMark next() const { return nonces_.next(); }
  void Join(const NonceMark& peer, absl::Time now);

  NonceMark Propose(absl::Time now) const { return nonces_.Propose(now); }
  // Empty: `count` nonces from `first` on may be used, durably. Otherwise why none may.
  std::string Reserve(const NonceMark& first, uint32_t count, absl::Time now);

  // Tells what has changed, after ClockWatch::Judge.
  void Tell();

 private:
  NonceSequencer nonces_;
  const ClockWatch* const clocks_;
  SharedStatus* const status_;
  EngineObserver* const observer_;
  std::string mark_trouble_;   // why no nonce may be used in this session
  std::string nonce_trouble_;  // why the last nonces could not be reserved
  std::string told_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_AGREE_SEALING_H_
