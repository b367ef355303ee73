// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/batch/nonce_sequencer.h"

#include <algorithm>
#include <cassert>
#include <limits>

#include "absl/strings/str_cat.h"

namespace mpckdc {
namespace {

constexpr uint64_t kSequenceEnd = 1ull << 48;
constexpr uint64_t kSequenceReserve = 1ull << 32;  // when nonces run before the clock

// A peer's mark may be this far before our clock at session start: it covers clocks that were
// stepped back by an hour, and keeps a wrong clock from burning the years ahead.
constexpr absl::Duration kMaxMarkLead = absl::Hours(1);

uint32_t Seconds(absl::Time time) {
  const int64_t last = std::numeric_limits<uint32_t>::max() - 1000;
  return static_cast<uint32_t>(std::clamp<int64_t>(absl::ToUnixSeconds(time), 0, last));
}

}  // namespace

NonceParts SplitNonce(const NonceMark& nonce) {
  NonceParts parts;
  for (int i = 0; i < 4; ++i) parts.seconds = parts.seconds << 8 | nonce[i];
  parts.cluster = static_cast<uint16_t>(nonce[4] << 8 | nonce[5]);
  for (int i = 6; i < 12; ++i) parts.sequence = parts.sequence << 8 | nonce[i];
  return parts;
}

NonceMark JoinNonce(const NonceParts& parts) {
  assert(parts.sequence < kSequenceEnd);
  NonceMark nonce;
  for (int i = 0; i < 4; ++i) nonce[i] = static_cast<uint8_t>(parts.seconds >> (24 - 8 * i));
  nonce[4] = static_cast<uint8_t>(parts.cluster >> 8);
  nonce[5] = static_cast<uint8_t>(parts.cluster);
  for (int i = 0; i < 6; ++i) nonce[6 + i] = static_cast<uint8_t>(parts.sequence >> (40 - 8 * i));
  return nonce;
}

NonceMark AdvanceNonce(const NonceMark& nonce, uint64_t count) {
  NonceParts parts = SplitNonce(nonce);
  assert(count < kSequenceEnd && parts.sequence + count < kSequenceEnd);
  parts.sequence += count;
  return JoinNonce(parts);
}

std::string NonceText(const NonceMark& nonce) {
  const NonceParts parts = SplitNonce(nonce);
  return absl::StrCat(parts.seconds, ".", parts.cluster, ".", parts.sequence);
}

absl::Status NonceSequencer::Load() {
  cluster_ = store_->Meta().identity.cluster;
  absl::StatusOr<NonceMark> mark = store_->ReadNonceMark();
  if (!mark.ok()) return mark.status();
  mark_ = next_ = *mark;
  return absl::OkStatus();
}

absl::Status NonceSequencer::Join(const NonceMark& peer, absl::Time now) {
  const absl::Time own = absl::FromUnixSeconds(SplitNonce(mark()).seconds);
  const uint32_t latest = Seconds(std::max(now, own) + kMaxMarkLead);
  if (peer != NonceMark{} && SplitNonce(peer).cluster != cluster_) {
    return absl::FailedPreconditionError(
        absl::StrCat("a peer's nonce mark ", NonceText(peer), " is not of cluster ", cluster_));
  }
  if (SplitNonce(peer).seconds > latest && peer > mark()) {
    return absl::FailedPreconditionError(
        absl::StrCat("a peer's nonce mark ", NonceText(peer), " is more than ",
                     absl::FormatDuration(kMaxMarkLead), " before this server's clock (",
                     Seconds(now), "): one of the two clocks is or was wrong"));
  }
  next_ = std::max({next_, mark_, peer});
  return absl::OkStatus();
}

NonceMark NonceSequencer::Propose(absl::Time now) const {
  return std::max(next_, JoinNonce({Seconds(now), cluster_, 0}));
}

absl::Status NonceSequencer::Check(const NonceMark& base, uint64_t count, absl::Time now) const {
  const NonceParts parts = SplitNonce(base);
  if (base < next_) {
    return absl::FailedPreconditionError(absl::StrCat("proposed nonce ", NonceText(base),
                                                      " is below ", NonceText(next_),
                                                      ", which may have been used"));
  }
  if (parts.sequence + count + kSequenceReserve >= kSequenceEnd || parts.cluster != cluster_) {
    return absl::FailedPreconditionError(absl::StrCat(
        "proposed nonce ", NonceText(base), " is not one of cluster ", cluster_));
  }
  // Going on from what was used costs no time, whatever the clock says now.
  const uint32_t latest = std::max(Seconds(now + lead_), SplitNonce(next_).seconds);
  if (parts.seconds > latest) {
    return absl::FailedPreconditionError(
        absl::StrCat("proposed nonce ", NonceText(base), " is ", parts.seconds - Seconds(now),
                     " s before this server's clock"));
  }
  return absl::OkStatus();
}

absl::Status NonceSequencer::Reserve(const NonceMark& base, uint64_t count, absl::Time now) {
  const absl::Status good = Check(base, count, now);
  if (!good.ok()) return good;
  const NonceMark end = AdvanceNonce(base, count);
  if (end > mark_) {
    NonceParts parts = SplitNonce(end);
    if (parts.seconds <= Seconds(now)) {
      parts.seconds += static_cast<uint32_t>(absl::ToInt64Seconds(limits::kNonceReserveAhead));
      parts.sequence = 0;
    } else {
      parts.sequence += kSequenceReserve;
    }
    const NonceMark mark = JoinNonce(parts);
    const absl::Status written = store_->ReserveNonceMark(mark);
    if (!written.ok()) return written;
    mark_ = mark;
  }
  next_ = end;
  return absl::OkStatus();
}

}  // namespace mpckdc
