// SPDX-License-Identifier: Apache-2.0
// A link over TLS, and the handshake that every production link begins with. Internal to
// transport/.
#ifndef MPC_SERVER_WIRE_TLS_LINK_H_
#define MPC_SERVER_WIRE_TLS_LINK_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/wire/fifo.h"
#include "mpc-server/wire/link.h"
#include "mpc-server/wire/tls_identity.h"

namespace mpckdc {

class TlsLink : public Link {
 public:
  // `ssl` is in its initial state over `fd`.
  TlsLink(Fd fd, SslPtr ssl) : Link(std::move(fd)), ssl_(std::move(ssl)) {}

  SSL* ssl() { return ssl_.get(); }

  Progress Handshake();
  // A few bytes outside frames, before the first one.
  Progress SendBytes(absl::Span<const uint8_t> bytes);
  Progress ReceiveBytes(absl::Span<uint8_t> bytes);
  // Several TLS records per recv() from now on. Not before the greeting's last byte: the peer may
  // leave TLS behind it.
  void ReadAhead() { SSL_set_read_ahead(ssl_.get(), 1); }
  // Ends TLS; the socket goes on.
  Fd TakeSocket() && { return std::move(fd_); }

  void Queue(const FrameHeader& header, absl::Span<const uint8_t> payload) override;
  void QueueReferring(const FrameHeader& header, absl::Span<const uint8_t> payload) override;
  Progress Flush() override;
  void Abandon() override;
  Progress ReadInto(const FrameHeader& expected, absl::Span<uint8_t> target) override;
  Progress ReadFrame(FrameHeader* header, SecretBytes* payload) override;

 private:
  // Moves up to `size` bytes; 0: would block, and *waits says for what.
  absl::StatusOr<size_t> Write(const uint8_t* data, size_t size);
  absl::StatusOr<size_t> Read(uint8_t* data, size_t size);
  absl::Status HandleError(int result, short* waits);
  Progress ReadHeader();
  Progress ReadPayload(absl::Span<uint8_t> target);
  absl::Status AbortedBy(absl::Span<const uint8_t> reason) const;

  SslPtr ssl_;
  size_t bytes_have_ = 0;  // of ReceiveBytes()

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

  uint8_t in_header_bytes_[kFrameHeaderSize];
  size_t in_have_ = 0;          // of the header, then of the payload
  bool in_header_done_ = false;
  FrameHeader in_header_;
  SecretBytes in_own_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_WIRE_TLS_LINK_H_
