// SPDX-License-Identifier: Apache-2.0
// One party's connection to its two neighbours on the ring P0 -> P1 -> P2 -> P0.
//
// Implementations: LinkChannel (production), testing/memory_channel.h (three parties in one
// process) and the simulator's. Calls with a deadline block until done, failed or past it, the
// others never; a channel is used by one thread (or fiber) at a time and starts none. After an
// error a channel is closed for good: the caller drops it and connects anew.
#ifndef MPC_SERVER_WIRE_PEER_CHANNEL_H_
#define MPC_SERVER_WIRE_PEER_CHANNEL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/wire/frame_format.h"

namespace mpckdc {

enum class Neighbour { kPrev, kNext };
inline const char* NeighbourName(Neighbour n) { return n == Neighbour::kPrev ? "prev" : "next"; }

// Names a round. Session, batch and round travel in the frame header and are checked on receipt;
// `step` is for errors and for the interceptor of tests, and must outlive the call.
struct RoundId {
  uint32_t session = 0;
  uint32_t batch = 0;
  uint16_t round = 0;
  const char* step = "";
};

// What one party sends and receives in a round. All lengths are known beforehand to both sides.
// An empty direction sends no frame.
struct RoundBuffers {
  absl::Span<const uint8_t> to_next;
  absl::Span<uint8_t> from_prev;
  absl::Span<const uint8_t> to_prev;
  absl::Span<uint8_t> from_next;
};

struct Frame {
  FrameType type = FrameType::kHello;
  SecretBytes payload;
};

// Counts since the channel was made, headers included.
struct ChannelCounters {
  uint64_t frames_sent = 0;
  uint64_t bytes_sent = 0;      // headers and payloads
  uint64_t frames_received = 0;
  uint64_t bytes_received = 0;
};

// What is known of the line to a neighbour. Nothing secret.
struct LineState {
  absl::Duration distance;  // one way: half of the shortest round trip of the last minutes
  uint64_t rate = 0;        // bytes per second that it carried when it was kept full; 0: unknown
  uint64_t sent = 0;        // bytes that have arrived there, ever

  friend bool operator==(const LineState&, const LineState&) = default;
};

class PeerChannel {
 public:
  virtual ~PeerChannel() = default;

  // A round is posted, then collected. Several may be posted before the first is collected; they
  // are collected in the order of posting. It never deadlocks, however large the messages, as long
  // as every party posts and collects the same rounds in the same order. Errors: Unavailable
  // (connection lost), DeadlineExceeded, Aborted (the peer sent kAbort; the text is its reason),
  // DataLoss (a frame that was not expected, or a record that was tampered with),
  // FailedPrecondition (collected out of order). Every error names the neighbour, if one is to
  // blame, and the step.

  // Hands a round's outgoing frames to the channel, which sends what it can now and the rest during
  // later calls; never waits. The memory stays unchanged until Collect() of this or a later round
  // has returned, or the channel is gone. An empty span sends no frame.
  virtual absl::Status Post(const RoundId& id, absl::Span<const uint8_t> to_next,
                            absl::Span<const uint8_t> to_prev) = 0;
  // Waits for the incoming frames of the oldest round that is posted and not collected, and until
  // all that was posted up to this round has left. Meanwhile later rounds leave too; what arrives
  // for them stays where it is.
  virtual absl::Status Collect(const RoundId& id, absl::Span<uint8_t> from_prev,
                               absl::Span<uint8_t> from_next, absl::Time deadline) = 0;
  // Post and Collect.
  absl::Status Exchange(const RoundId& id, const RoundBuffers& buffers, absl::Time deadline) {
    RETURN_IF_ERROR(Post(id, buffers.to_next, buffers.to_prev));
    return Collect(id, buffers.from_prev, buffers.from_next, deadline);
  }

  // Control frames. Send() may return before the bytes have left; they leave during later calls.
  // kAbort may be sent on a channel that failed, best effort: the other neighbour may still hear.
  virtual absl::Status Send(Neighbour to, FrameType type, absl::Span<const uint8_t> payload) = 0;
  // The next frame from one neighbour. Never returns a kRound frame (DataLoss) or a kAbort frame
  // (Aborted). DeadlineExceeded is the one error after which the channel stays usable.
  virtual absl::StatusOr<Frame> Receive(Neighbour from, absl::Time deadline) = 0;

  // The number that control frames carry from now on, and that received frames must carry.
  virtual void BindSession(uint32_t session) = 0;

  // From now on so much at most waits in the kernel that TCP may not send yet: behind more of it a
  // slow line would leave this server without an answer for too long. In memory: nothing waits.
  virtual void LimitUnsent(size_t /*bytes*/) {}

  virtual ChannelCounters Counters() const = 0;

  // As the kernel has measured it. From any thread, while the channel lives. In memory: distance 0.
  virtual LineState Line(Neighbour) const { return {}; }
};

}  // namespace mpckdc

#endif  // MPC_SERVER_WIRE_PEER_CHANNEL_H_
