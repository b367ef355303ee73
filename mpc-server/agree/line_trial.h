// SPDX-License-Identifier: Apache-2.0
//
// What a line carries is found out when a session begins, and not by the first login whose tables
// it has to carry: TCP has measured little by then. Every party sends its previous neighbour, as
// tables go (garble/garbled_run.h), a filler; then each tells both others how long the one that it
// received took, and whether that was long:
//
//     8 KiB | told | 32 KiB | told | 128 KiB | told | .. | 8 MiB | told
//
// until it was long for one of them or the sizes are through. Each hears both others, so all three
// stop at the same size. It goes by the channel itself: a session's message buffers are locked
// memory and never shrink.
//
// Nothing of it is secret. A server that lies about its time can make the line to it look slow, as
// it can be slow itself, or fast, as when it is slow later; one that tells the two others different
// things ends the session, since they wait for different messages.
#ifndef MPC_SERVER_AGREE_LINE_TRIAL_H_
#define MPC_SERVER_AGREE_LINE_TRIAL_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpc-server/base/clock.h"
#include "mpc-server/wire/peer_channel.h"

namespace mpckdc {

struct LineTrial {
  // The longest filler that was long for nobody: the same at the three.
  size_t quick_bytes = 0;
  // Whether a longer one was long for somebody: the same at the three.
  bool any_slow = false;
  // Bytes per second, at least, of the line from each party to its previous one, by what it is for
  // this server, if that was long there. 0: not.
  uint64_t rate_own = 0, rate_of_next = 0, rate_of_prev = 0;
};

// Whether a filler that took so long was long. What a line's distance may add is not the line's
// rate: the others may begin one distance later, and TCP's window doubles once or twice.
bool TookLong(absl::Duration took, absl::Duration distance);

// Rounds are numbered from `first` on. `most_bytes`: of a filler, the same at the three.
absl::StatusOr<LineTrial> TryLines(PeerChannel& channel, Clock& clock, const RoundId& first,
                                   size_t most_bytes);

}  // namespace mpckdc

#endif  // MPC_SERVER_AGREE_LINE_TRIAL_H_
