// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/wire/raw_link.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc {
namespace {

constexpr size_t kPieceAlignment = 16;
// More does not make fewer wake-ups, and the data leaves the cache.
constexpr size_t kMaxLowWater = 256 << 10;

absl::Status SocketError(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

// The part of `span` from `at` on, as an iovec; empty when `at` is behind it.
iovec Rest(absl::Span<uint8_t> span, size_t at) {
  const size_t skip = std::min(at, span.size());
  return {span.data() + skip, span.size() - skip};
}

}  // namespace

// ---- Sending ----

void RawLink::Push(const FrameHeader& header, absl::Span<const uint8_t> payload,
                   SecretBytes owned) {
  if (cut_short_) return;
  OutFrame frame = {{}, payload.data(), payload.size(), std::move(owned)};
  WriteFrameHeader(header, frame.header);
  frames_.push(std::move(frame));
  ++counters_.frames_sent;
  counters_.bytes_sent += kFrameHeaderSize + payload.size();
}

void RawLink::Queue(const FrameHeader& header, absl::Span<const uint8_t> payload) {
  SecretBytes owned(payload.begin(), payload.end());
  const absl::Span<const uint8_t> copy = owned;  // stays where it is when `owned` is moved
  Push(header, copy, std::move(owned));
}

void RawLink::QueueReferring(const FrameHeader& header, absl::Span<const uint8_t> payload) {
  Push(header, payload, {});
}

void RawLink::Abandon() {
  cut_short_ = cut_short_ || !frames_.empty() || Sending();
  frames_.clear();
  Wipe(in_target_.data(), in_target_.size());
  in_target_ = {};
}

absl::StatusOr<size_t> RawLink::SendParts(const iovec* parts, size_t count) {
  msghdr message = {};
  message.msg_iov = const_cast<iovec*>(parts);
  message.msg_iovlen = count;
  write_waits_ = 0;
  ssize_t n;
  do {
    n = sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (n < 0 && errno == EINTR);
  if (n >= 0) return static_cast<size_t>(n);
  if (errno != EAGAIN) return SocketError("sending");
  write_waits_ = POLLOUT;
  return 0;
}

// ---- Receiving ----

absl::StatusOr<size_t> RawLink::ReceiveParts(iovec* parts, size_t count) {
  read_waits_ = 0;
  if (stash_at_ < stash_.size()) {
    while (parts->iov_len == 0) ++parts;
    const size_t n = std::min(parts->iov_len, stash_.size() - stash_at_);
    std::memcpy(parts->iov_base, stash_.data() + stash_at_, n);
    stash_at_ += n;
    return n;
  }
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = count;
  ssize_t n;
  do {
    n = recvmsg(fd_.get(), &message, MSG_DONTWAIT);
  } while (n < 0 && errno == EINTR);
  if (n > 0) return static_cast<size_t>(n);
  if (n == 0) {
    return absl::UnavailableError(in_have_ == 0 ? "connection closed by the peer"
                                                : "connection closed inside a frame");
  }
  if (errno != EAGAIN) return SocketError("receiving");
  read_waits_ = POLLIN;
  return 0;
}

absl::StatusOr<size_t> RawLink::ReceiveRest(absl::Span<uint8_t> target) {
  const size_t trailer_at = kFrameHeaderSize + target.size();
  iovec parts[3] = {
      Rest(in_header_bytes_, in_have_),
      Rest(target, in_have_ - std::min(in_have_, kFrameHeaderSize)),
      Rest({in_trailer_, trailer_size_}, in_have_ - std::min(in_have_, trailer_at))};
  in_size_ = trailer_at + trailer_size_;
  if (drained_ && stash_at_ == stash_.size()) {
    read_waits_ = POLLIN;
    return 0;
  }
  const size_t asked = in_size_ - in_have_;
  absl::StatusOr<size_t> n = ReceiveParts(parts, 3);
  if (!n.ok()) return n;
  in_have_ += *n;
  drained_ = *n < asked && stash_at_ == stash_.size();
  return n;
}

// Scatters already into the target: mostly the frame is the one expected.
Progress RawLink::ReadHeader(absl::Span<uint8_t> target) {
  while (in_have_ < kFrameHeaderSize) {
    ASSIGN_OR_RETURN(size_t n, ReceiveRest(target));
    if (n == 0) return false;
  }
  if (absl::Status s = ReadFrameHeader(in_header_bytes_, &in_header_); !s.ok()) {
    return Unverified(s);
  }
  in_header_done_ = true;
  return true;
}

absl::Status RawLink::OpenWhatCame(absl::Span<uint8_t> target) {
  if (!opening_) {
    RETURN_IF_ERROR(OpenHeader(in_header_bytes_));
    opening_ = true;
  }
  size_t end = std::min(in_have_ - kFrameHeaderSize, target.size());
  if (end < target.size()) end -= end % kPieceAlignment;
  if (end > in_opened_) OpenPiece(target.subspan(in_opened_, end - in_opened_));
  in_opened_ = end;
  return absl::OkStatus();
}

Progress RawLink::ReadPayload(absl::Span<uint8_t> target) {
  in_target_ = target;
  while (true) {
    RETURN_IF_ERROR(OpenWhatCame(target));
    if (in_have_ == kFrameHeaderSize + target.size() + trailer_size_) break;
    ASSIGN_OR_RETURN(size_t n, ReceiveRest(target));
    if (n == 0) return false;
  }
  if (absl::Status s = OpenTrailer(in_trailer_); !s.ok()) {
    Wipe(target.data(), target.size());
    return s;
  }
  in_target_ = {};
  ++counters_.frames_received;
  counters_.bytes_received += kFrameHeaderSize + target.size();
  in_header_done_ = opening_ = false;
  in_have_ = in_opened_ = 0;
  return true;
}

// Another frame's bytes lie in a target that is not theirs: they are read again from here.
void RawLink::Stash(absl::Span<const uint8_t> target) {
  const size_t came = in_have_ - kFrameHeaderSize;
  const size_t in_target = std::min(came, target.size());
  SecretBytes bytes(target.begin(), target.begin() + static_cast<std::ptrdiff_t>(in_target));
  bytes.insert(bytes.end(), in_trailer_, in_trailer_ + (came - in_target));
  bytes.insert(bytes.end(), stash_.begin() + static_cast<std::ptrdiff_t>(stash_at_), stash_.end());
  stash_ = std::move(bytes);
  stash_at_ = 0;
  in_have_ = kFrameHeaderSize;
}

// The header is read before the trailer vouches for it.
absl::Status RawLink::Unverified(const absl::Status& s) const {
  if (trailer_size_ == 0) return s;
  return absl::Status(s.code(), absl::StrCat(s.message(), " (in a record not verified yet)"));
}

Progress RawLink::ReadInto(const FrameHeader& expected, absl::Span<uint8_t> target) {
  drained_ = false;
  if (!in_header_done_) {
    Progress p = ReadHeader(target);
    if (!p.ok() || !*p) return p;
    if (in_header_.type == FrameType::kAbort) Stash(target);
  }
  if (in_header_.type == FrameType::kAbort) {
    FrameHeader header;
    SecretBytes reason;
    return ReadFrame(&header, &reason);
  }
  if (absl::Status s = CheckFrameHeader(expected, in_header_); !s.ok()) return Unverified(s);
  return ReadPayload(target);
}

Progress RawLink::ReadFrame(FrameHeader* header, SecretBytes* payload) {
  drained_ = false;
  if (!in_header_done_) {
    Progress p = ReadHeader({});
    if (!p.ok() || !*p) return p;
    // Only now, so that a header that lies about a round costs no memory.
    if (absl::Status s = CheckNotRound(in_header_); !s.ok()) return Unverified(s);
    Stash({});  // of the trailer's place, when the payload is not empty
  }
  in_own_.resize(in_header_.length);
  Progress p = ReadPayload(absl::MakeSpan(in_own_));
  if (!p.ok() || !*p) return p;
  *header = in_header_;
  *payload = std::move(in_own_);
  in_own_.clear();
  if (header->type == FrameType::kAbort) {
    return absl::AbortedError(std::string(payload->begin(), payload->end()));
  }
  return true;
}

bool RawLink::PutOffWaking(bool whole) {
  const size_t missing = in_size_ - in_have_;
  const size_t least = in_header_done_ ? missing : kFrameHeaderSize + trailer_size_ - in_have_;
  const int wanted = static_cast<int>(
      std::clamp<size_t>(whole ? missing : std::min(missing, least), 1, kMaxLowWater));
  if (wanted != low_water_) {
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVLOWAT, &wanted, sizeof(wanted));
    low_water_ = wanted;
  }
  return !in_header_done_ && missing > least;
}

}  // namespace mpckdc
