// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/wire/aead_link.h"

#include <algorithm>
#include <cstring>

#include "mpc-server/base/status_macros.h"

namespace mpckdc {
namespace {

static_assert(kRecordTagSize <= kMaxTrailer);
// Sealed at a time: stays in the cache until the kernel has copied it.
constexpr size_t kPiece = 64 << 10;
constexpr size_t kAlignment = 64;

}  // namespace

AeadLink::AeadLink(Fd fd, const Secret<RecordKey>& sends, const Secret<RecordKey>& receives)
    : RawLink(std::move(fd), kRecordTagSize),
      sealer_(sends),
      opener_(receives),
      sealed_(kPiece + kFrameHeaderSize + kRecordTagSize) {}

// Goes on where it stopped: the first frame of frames_ may be begun, `payload` and `size` are what
// is left of it.
absl::Status AeadLink::SealPiece() {
  sealed_at_ = sealed_end_ = 0;
  while (!frames_.empty() && sealed_end_ < kPiece) {
    OutFrame& frame = frames_.front();
    uint8_t* const out = sealed_.data();
    if (!begun_) {
      RETURN_IF_ERROR(sealer_.Begin(frame.header));
      std::memcpy(out + sealed_end_, frame.header, kFrameHeaderSize);
      sealed_end_ += kFrameHeaderSize;
      sealed_plain_ += kFrameHeaderSize;
      begun_ = true;
    }
    const size_t room = kPiece - std::min(kPiece, sealed_end_);
    const size_t take = frame.size <= room ? frame.size : room - room % kAlignment;
    if (take > 0) sealer_.Seal(out + sealed_end_, frame.payload, take);
    frame.payload += take;
    frame.size -= take;
    sealed_end_ += take;
    sealed_plain_ += take;
    if (frame.size > 0) break;
    sealer_.FinishSeal(out + sealed_end_);
    sealed_end_ += kRecordTagSize;
    frames_.pop();
    begun_ = false;
  }
  return absl::OkStatus();
}

Progress AeadLink::Flush() {
  while (true) {
    if (sealed_at_ == sealed_end_) {
      sent_ = sealed_plain_;
      if (frames_.empty()) return true;
      RETURN_IF_ERROR(SealPiece());
    }
    const iovec part = {sealed_.data() + sealed_at_, sealed_end_ - sealed_at_};
    ASSIGN_OR_RETURN(size_t n, SendParts(&part, 1));
    if (n == 0) return false;
    sealed_at_ += n;
  }
}

absl::Status AeadLink::OpenHeader(const uint8_t header[kFrameHeaderSize]) {
  return opener_.Begin({header, kFrameHeaderSize});
}

absl::Status AeadLink::OpenTrailer(const uint8_t trailer[kMaxTrailer]) {
  if (opener_.FinishOpen(trailer)) return absl::OkStatus();
  return absl::DataLossError(
      "record refused: its tag is wrong. It was changed, repeated or reordered on its way");
}

}  // namespace mpckdc
