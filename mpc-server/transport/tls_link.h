// SPDX-License-Identifier: Apache-2.0
// One authenticated connection to one neighbour. Nothing here blocks: each call does what it can
// and says for which socket event it waits. Internal to transport/.
#ifndef MPC_SERVER_TRANSPORT_TLS_LINK_H_
#define MPC_SERVER_TRANSPORT_TLS_LINK_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mpc-server/secret/secret.h"
#include "mpc-server/transport/fifo.h"
#include "mpc-server/transport/frame_format.h"
#include "mpc-server/transport/peer_channel.h"
#include "mpc-server/transport/socket.h"
#include "mpc-server/transport/tls_identity.h"

namespace mpckdc {

// True: finished. False: would block; Events() says on what.
using Progress = absl::StatusOr<bool>;

class TlsLink {
 public:
  // `ssl` is in its initial state over `fd`.
  TlsLink(Fd fd, SslPtr ssl) : fd_(std::move(fd)), ssl_(std::move(ssl)) {}

  int fd() const { return fd_.get(); }
  SSL* ssl() { return ssl_.get(); }

  Progress Handshake();
  // One byte outside frames: the accepting side's word that it took the certificate.
  Progress SendAccepted();
  Progress ReceiveAccepted();

  // Queues a frame behind what is still unsent. The second form keeps only a reference to the
  // payload, which must live until sent() has reached what queued() is afterwards.
  void Queue(const FrameHeader& header, absl::Span<const uint8_t> payload);
  void QueueReferring(const FrameHeader& header, absl::Span<const uint8_t> payload);
  Progress Flush();
  // Bytes of frames since the link was made.
  uint64_t queued() const { return counters.bytes_sent; }
  uint64_t sent() const { return sent_; }
  // Forgets what is unsent (a referred payload may be about to die). After a frame cut short
  // nothing more is ever sent: the peer would take it for the rest of that frame.
  void DropUnsent();

  // Reads one frame into `target`, which takes exactly a frame with the header `expected`. A
  // kAbort frame instead is Aborted, anything else DataLoss.
  Progress ReadInto(const FrameHeader& expected, absl::Span<uint8_t> target);
  // Reads any frame. May be called again after "would block"; keeps what it has.
  Progress ReadFrame(FrameHeader* header, SecretBytes* payload);

  // poll() events that the last unfinished calls wait for; none after they finished.
  short Events() const { return static_cast<short>(write_waits_ | read_waits_); }
  void ForgetEvents() { write_waits_ = read_waits_ = 0; }

  ChannelCounters counters;

 private:
  // Moves up to `size` bytes; 0: would block, and *waits says for what.
  absl::StatusOr<size_t> Write(const uint8_t* data, size_t size);
  absl::StatusOr<size_t> Read(uint8_t* data, size_t size);
  absl::Status HandleError(int result, short* waits);
  Progress ReadHeader();
  Progress ReadPayload(absl::Span<uint8_t> target);
  absl::Status AbortedBy(absl::Span<const uint8_t> reason) const;

  Fd fd_;
  SslPtr ssl_;
  short write_waits_ = 0, read_waits_ = 0;

  // What is unsent, in pieces: each the next bytes of out_ or memory referred to.
  //
  //   pieces_   | own 40 | own 16384 | referred 99000 | own 16384 | referred 5000 |
  //   out_      [ ..sent.. | 40 | 16384 | 16384 ]
  //                        ^ out_at_
  struct Piece {
    const uint8_t* referred;  // null: from out_
    size_t size;
  };
  absl::Span<const uint8_t> Bytes(const Piece& piece) const {
    return {piece.referred != nullptr ? piece.referred : out_.data() + out_at_, piece.size};
  }
  void MakeRoom(size_t size);
  void Took(size_t size);  // of the first piece

  Fifo<Piece> pieces_;
  SecretBytes out_;
  size_t out_at_ = 0;
  uint64_t sent_ = 0;
  bool cut_short_ = false;

  uint8_t in_header_bytes_[kFrameHeaderSize];
  size_t in_have_ = 0;          // of the header, then of the payload
  bool in_header_done_ = false;
  FrameHeader in_header_;
  SecretBytes in_own_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_TRANSPORT_TLS_LINK_H_
