// SPDX-License-Identifier: Apache-2.0
// A PeerChannel over whole frames in memory, for tests and the simulation: it writes and checks
// headers with the code of production. How a frame gets to a neighbour is the subclass's.
#ifndef MPC_SERVER_TESTING_FRAME_CHANNEL_H_
#define MPC_SERVER_TESTING_FRAME_CHANNEL_H_

#include <cstring>

#include "mpc-server/base/status_macros.h"
#include "mpc-server/wire/peer_channel.h"
#include "mpc-server/wire/posted_rounds.h"
#include "mpc-server/wire/ring.h"

namespace mpckdc {

class FrameChannel : public PeerChannel {
 public:
  explicit FrameChannel(int party) : party_(party) {}

  absl::Status Post(const RoundId& id, absl::Span<const uint8_t> to_next,
                    absl::Span<const uint8_t> to_prev) override {
    if (!broken_.ok()) return broken_;
    posted_.Push(id);
    RETURN_IF_ERROR(PostTo(Neighbour::kNext, id, to_next));
    return PostTo(Neighbour::kPrev, id, to_prev);
  }
  absl::Status Collect(const RoundId& id, absl::Span<uint8_t> from_prev,
                       absl::Span<uint8_t> from_next, absl::Time deadline) override {
    if (!broken_.ok()) return broken_;
    if (absl::Status s = posted_.Pop(id).status(); !s.ok()) return broken_ = s;
    RETURN_IF_ERROR(CollectFrom(Neighbour::kPrev, id, from_prev, deadline));
    return CollectFrom(Neighbour::kNext, id, from_next, deadline);
  }
  absl::Status Send(Neighbour to, FrameType type, absl::Span<const uint8_t> payload) override {
    if (!broken_.ok() && type != FrameType::kAbort) return broken_;
    return Put(to, {type, 0, session_, 0, static_cast<uint32_t>(payload.size())},
               FrameTypeName(type), payload);
  }
  absl::StatusOr<Frame> Receive(Neighbour from, absl::Time deadline) override {
    if (!broken_.ok()) return broken_;
    FrameHeader header;
    Frame frame;
    absl::Status s = Next(from, /*control=*/true, deadline, &header, &frame.payload);
    if (absl::IsDeadlineExceeded(s)) return s;
    if (s.ok()) s = CheckControlHeader(session_, header);
    if (!s.ok()) return Fail(from, "receive", s);
    frame.type = header.type;
    return frame;
  }
  void BindSession(uint32_t session) override { session_ = session; }

 protected:
  int Party(Neighbour n) const {
    return n == Neighbour::kNext ? NextParty(party_) : PrevParty(party_);
  }
  // A frame as it came: its header parsed; kAbort becomes Aborted.
  static absl::Status Open(const uint8_t* header_bytes, SecretBytes payload, FrameHeader* header,
                           SecretBytes* out) {
    RETURN_IF_ERROR(ReadFrameHeader(header_bytes, header));
    if (header->length != payload.size()) {
      return absl::DataLossError("frame header: payload length differs from what follows");
    }
    *out = std::move(payload);
    if (header->type != FrameType::kAbort) return absl::OkStatus();
    return absl::AbortedError(std::string(out->begin(), out->end()));
  }

  // Takes a frame to a neighbour.
  virtual absl::Status Put(Neighbour to, const FrameHeader& header, absl::string_view step,
                           absl::Span<const uint8_t> payload) = 0;
  // The next frame from a neighbour, opened. `control`: not of a round.
  virtual absl::Status Next(Neighbour from, bool control, absl::Time deadline, FrameHeader* header,
                            SecretBytes* payload) = 0;
  // The channel is broken_ from now on; what is said of it.
  virtual absl::Status Fail(Neighbour n, absl::string_view step, const absl::Status& cause) = 0;
  // Memory of a frame that has been read.
  virtual void Recycle(Neighbour, SecretBytes) {}

  const int party_;
  absl::Status broken_;

 private:
  static FrameHeader HeaderOf(const RoundId& id, size_t size) {
    return {FrameType::kRound, id.round, id.session, id.batch, static_cast<uint32_t>(size)};
  }
  absl::Status PostTo(Neighbour to, const RoundId& id, absl::Span<const uint8_t> payload) {
    if (payload.empty()) return absl::OkStatus();
    return Put(to, HeaderOf(id, payload.size()), id.step, payload);
  }
  absl::Status CollectFrom(Neighbour from, const RoundId& id, absl::Span<uint8_t> out,
                           absl::Time deadline) {
    if (out.empty()) return absl::OkStatus();
    FrameHeader header;
    SecretBytes payload;
    absl::Status s = Next(from, /*control=*/false, deadline, &header, &payload);
    if (s.ok()) s = CheckFrameHeader(HeaderOf(id, out.size()), header);
    if (!s.ok()) return Fail(from, id.step, s);
    std::memcpy(out.data(), payload.data(), out.size());
    Recycle(from, std::move(payload));
    return absl::OkStatus();
  }

  uint32_t session_ = 0;
  PostedRounds posted_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_FRAME_CHANNEL_H_
