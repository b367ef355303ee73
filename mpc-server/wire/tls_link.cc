// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/wire/tls_link.h"

#include <openssl/err.h>
#include <poll.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc {
namespace {

// The first TLS record of a frame holds its header and the payload's beginning.
constexpr size_t kFirstRecord = 16 << 10;

}  // namespace

absl::Status TlsLink::HandleError(int result, short* waits) {
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      *waits = POLLIN;
      return absl::OkStatus();
    case SSL_ERROR_WANT_WRITE:
      *waits = POLLOUT;
      return absl::OkStatus();
    case SSL_ERROR_ZERO_RETURN:
      return absl::UnavailableError("connection closed by the peer");
    default:
      return absl::UnavailableError(TakeSslError());
  }
}

absl::StatusOr<size_t> TlsLink::Write(const uint8_t* data, size_t size) {
  ERR_clear_error();
  size_t done = 0;
  write_waits_ = 0;
  const int rc = SSL_write_ex(ssl_.get(), data, size, &done);
  if (rc == 1) return done;
  RETURN_IF_ERROR(HandleError(rc, &write_waits_));
  return 0;
}

absl::StatusOr<size_t> TlsLink::Read(uint8_t* data, size_t size) {
  ERR_clear_error();
  size_t done = 0;
  read_waits_ = 0;
  const int rc = SSL_read_ex(ssl_.get(), data, size, &done);
  if (rc == 1) return done;
  RETURN_IF_ERROR(HandleError(rc, &read_waits_));
  return 0;
}

Progress TlsLink::Handshake() {
  ERR_clear_error();
  ForgetEvents();
  const int rc = SSL_do_handshake(ssl_.get());
  if (rc == 1) return true;
  // A refusal, by either end, as opposed to a connection that was lost.
  if (SSL_get_error(ssl_.get(), rc) == SSL_ERROR_SSL &&
      ERR_GET_REASON(ERR_peek_last_error()) != SSL_R_UNEXPECTED_EOF_WHILE_READING) {
    return absl::FailedPreconditionError(TakeSslError());
  }
  RETURN_IF_ERROR(HandleError(rc, &read_waits_));
  return false;
}

Progress TlsLink::SendBytes(absl::Span<const uint8_t> bytes) {
  ASSIGN_OR_RETURN(size_t n, Write(bytes.data(), bytes.size()));
  if (n != 0 && n != bytes.size()) return absl::InternalError("a TLS record was cut");
  return n == bytes.size();
}

Progress TlsLink::ReceiveBytes(absl::Span<uint8_t> bytes) {
  while (bytes_have_ < bytes.size()) {
    ASSIGN_OR_RETURN(size_t n, Read(bytes.data() + bytes_have_, bytes.size() - bytes_have_));
    if (n == 0) return false;
    bytes_have_ += n;
  }
  bytes_have_ = 0;
  return true;
}

// Keeps out_ from growing without end while it never empties.
void TlsLink::MakeRoom(size_t size) {
  if (out_.size() + size <= out_.capacity() || out_at_ < out_.size() / 2) return;
  out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(out_at_));
  out_at_ = 0;
}

void TlsLink::Queue(const FrameHeader& header, absl::Span<const uint8_t> payload) {
  if (cut_short_) return;
  uint8_t bytes[kFrameHeaderSize];
  WriteFrameHeader(header, bytes);
  MakeRoom(sizeof(bytes) + payload.size());
  out_.insert(out_.end(), bytes, bytes + sizeof(bytes));
  out_.insert(out_.end(), payload.begin(), payload.end());
  pieces_.push({nullptr, sizeof(bytes) + payload.size()});
  ++counters_.frames_sent;
  counters_.bytes_sent += sizeof(bytes) + payload.size();
}

void TlsLink::QueueReferring(const FrameHeader& header, absl::Span<const uint8_t> payload) {
  if (cut_short_) return;
  const size_t first = std::min(payload.size(), kFirstRecord - kFrameHeaderSize);
  Queue(header, payload.first(first));
  if (first == payload.size()) return;
  pieces_.push({payload.data() + first, payload.size() - first});
  counters_.bytes_sent += payload.size() - first;
}

void TlsLink::Took(size_t size) {
  Piece& piece = pieces_.front();
  sent_ += size;
  piece.size -= size;
  if (piece.referred != nullptr) {
    piece.referred += size;
  } else {
    out_at_ += size;
  }
  if (piece.size > 0) return;
  pieces_.pop();
  if (out_at_ < out_.size()) return;
  out_.clear();
  out_at_ = 0;
}

Progress TlsLink::Flush() {
  while (!pieces_.empty()) {
    const absl::Span<const uint8_t> bytes = Bytes(pieces_.front());
    ASSIGN_OR_RETURN(size_t n, Write(bytes.data(), bytes.size()));
    if (n == 0) return false;
    Took(n);
  }
  return true;
}

void TlsLink::Abandon() {
  cut_short_ = cut_short_ || !pieces_.empty();
  pieces_.clear();
  out_.clear();
  out_at_ = 0;
}

Progress TlsLink::ReadHeader() {
  while (in_have_ < kFrameHeaderSize) {
    ASSIGN_OR_RETURN(size_t n, Read(in_header_bytes_ + in_have_, kFrameHeaderSize - in_have_));
    if (n == 0) return false;
    in_have_ += n;
  }
  RETURN_IF_ERROR(ReadFrameHeader(in_header_bytes_, &in_header_));
  in_header_done_ = true;
  in_have_ = 0;
  return true;
}

Progress TlsLink::ReadPayload(absl::Span<uint8_t> target) {
  while (in_have_ < target.size()) {
    ASSIGN_OR_RETURN(size_t n, Read(target.data() + in_have_, target.size() - in_have_));
    if (n == 0) return false;
    in_have_ += n;
  }
  ++counters_.frames_received;
  counters_.bytes_received += kFrameHeaderSize + target.size();
  in_header_done_ = false;
  in_have_ = 0;
  return true;
}

absl::Status TlsLink::AbortedBy(absl::Span<const uint8_t> reason) const {
  return absl::AbortedError(std::string(reason.begin(), reason.end()));
}

Progress TlsLink::ReadInto(const FrameHeader& expected, absl::Span<uint8_t> target) {
  if (!in_header_done_) {
    Progress p = ReadHeader();
    if (!p.ok() || !*p) return p;
  }
  if (in_header_.type == FrameType::kAbort) {
    FrameHeader header;
    SecretBytes reason;
    return ReadFrame(&header, &reason);
  }
  RETURN_IF_ERROR(CheckFrameHeader(expected, in_header_));
  return ReadPayload(target);
}

Progress TlsLink::ReadFrame(FrameHeader* header, SecretBytes* payload) {
  if (!in_header_done_) {
    Progress p = ReadHeader();
    if (!p.ok() || !*p) return p;
    // Only now, so that a header that lies about a round costs no memory.
    RETURN_IF_ERROR(CheckNotRound(in_header_));
  }
  in_own_.resize(in_header_.length);
  Progress p = ReadPayload(absl::MakeSpan(in_own_));
  if (!p.ok() || !*p) return p;
  *header = in_header_;
  *payload = std::move(in_own_);
  in_own_.clear();
  if (header->type == FrameType::kAbort) return AbortedBy(*payload);
  return true;
}

}  // namespace mpckdc
