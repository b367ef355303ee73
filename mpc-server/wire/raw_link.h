// SPDX-License-Identifier: Apache-2.0
// Frames over a bare socket with few system calls. What protects them is the subclass's: it may
// put a trailer behind each frame and change the payload on its way. Internal to wire/.
//
//   +----------+---------------------+-----------+
//   |  header  | payload, as sealed  |  trailer  |   one recvmsg() scatters all three when they
//   +----------+---------------------+-----------+   are there: in_header_, the target, in_trailer_
#ifndef MPC_SERVER_WIRE_RAW_LINK_H_
#define MPC_SERVER_WIRE_RAW_LINK_H_

#include <sys/uio.h>

#include "mpc-server/wire/fifo.h"
#include "mpc-server/wire/link.h"

namespace mpckdc {

inline constexpr size_t kMaxTrailer = 16;

class RawLink : public Link {
 public:
  void Queue(const FrameHeader& header, absl::Span<const uint8_t> payload) override;
  void QueueReferring(const FrameHeader& header, absl::Span<const uint8_t> payload) override;
  void Abandon() override;
  Progress ReadInto(const FrameHeader& expected, absl::Span<uint8_t> target) override;
  Progress ReadFrame(FrameHeader* header, SecretBytes* payload) override;
  bool PutOffWaking(bool whole) override;

 protected:
  struct OutFrame {
    uint8_t header[kFrameHeaderSize];
    const uint8_t* payload;  // `owned`, or referred to
    size_t size;
    SecretBytes owned;
  };

  RawLink(Fd fd, size_t trailer_size) : Link(std::move(fd)), trailer_size_(trailer_size) {}

  // Opening one frame: its header as received, its payload piece after piece (16-byte multiples but
  // for the last), its trailer. An error is the end of the link; the target is wiped.
  virtual absl::Status OpenHeader(const uint8_t header[kFrameHeaderSize]) = 0;
  virtual void OpenPiece(absl::Span<uint8_t> piece) = 0;
  virtual absl::Status OpenTrailer(const uint8_t trailer[kMaxTrailer]) = 0;
  // True while a frame is partly sent by the subclass, beyond what is in frames_.
  virtual bool Sending() const = 0;

  // Sends what the socket takes of the parts; 0: would block.
  absl::StatusOr<size_t> SendParts(const iovec* parts, size_t count);

  Fifo<OutFrame> frames_;  // not yet taken by the subclass

 private:
  void Push(const FrameHeader& header, absl::Span<const uint8_t> payload, SecretBytes owned);
  // Receives into the parts, from the stash first; 0: would block.
  absl::StatusOr<size_t> ReceiveParts(iovec* parts, size_t count);
  // What is missing of the frame, scattered.
  absl::StatusOr<size_t> ReceiveRest(absl::Span<uint8_t> target);
  Progress ReadHeader(absl::Span<uint8_t> target);
  Progress ReadPayload(absl::Span<uint8_t> target);
  absl::Status OpenWhatCame(absl::Span<uint8_t> target);
  void Stash(absl::Span<const uint8_t> target);
  absl::Status Unverified(const absl::Status& s) const;

  const size_t trailer_size_;
  uint8_t in_header_bytes_[kFrameHeaderSize];
  uint8_t in_trailer_[kMaxTrailer];
  FrameHeader in_header_;
  bool in_header_done_ = false, opening_ = false;
  size_t in_have_ = 0;    // bytes of the frame, header and trailer included
  size_t in_opened_ = 0;  // bytes of the payload
  size_t in_size_ = 0;    // bytes of the frame, as far as it is known
  absl::Span<uint8_t> in_target_;  // written to and not finished
  SecretBytes in_own_;
  SecretBytes stash_;     // received into a target that it was not meant for
  size_t stash_at_ = 0;
  bool drained_ = false;  // the last recvmsg() got less than it asked for
  int low_water_ = 1;     // SO_RCVLOWAT as set
};

}  // namespace mpckdc

#endif  // MPC_SERVER_WIRE_RAW_LINK_H_
