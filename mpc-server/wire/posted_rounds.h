// SPDX-License-Identifier: Apache-2.0
// The rounds that were posted on a channel and not yet collected, oldest first. For those who
// implement PeerChannel.
#ifndef MPC_SERVER_WIRE_POSTED_ROUNDS_H_
#define MPC_SERVER_WIRE_POSTED_ROUNDS_H_

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/wire/fifo.h"
#include "mpc-server/wire/peer_channel.h"

namespace mpckdc {

struct PostedRound {
  uint32_t batch = 0;
  uint16_t round = 0;
  // Where the round's last byte lies in the stream of each link; unused where nothing is streamed.
  uint64_t next_end = 0, prev_end = 0;
};

class PostedRounds {
 public:
  void Push(const RoundId& id, uint64_t next_end = 0, uint64_t prev_end = 0) {
    rounds_.push({id.batch, id.round, next_end, prev_end});
  }

  // Removes the oldest round, which must be `id`.
  absl::StatusOr<PostedRound> Pop(const RoundId& id) {
    if (rounds_.empty()) return OutOfOrder(id, "nothing is posted");
    const PostedRound oldest = rounds_.front();
    if (oldest.batch != id.batch || oldest.round != id.round) {
      return OutOfOrder(id, absl::StrCat("round ", oldest.round, " of batch ", oldest.batch,
                                         " was posted before"));
    }
    rounds_.pop();
    return oldest;
  }

 private:
  static absl::Status OutOfOrder(const RoundId& id, absl::string_view why) {
    return absl::FailedPreconditionError(absl::StrCat("collecting round ", id.round, " of batch ",
                                                      id.batch, ", step \"", id.step, "\": ", why));
  }

  Fifo<PostedRound> rounds_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_WIRE_POSTED_ROUNDS_H_
