// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/nonce_sequencer.h"

#include <algorithm>
#include <cassert>
#include <limits>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc {
namespace {

constexpr uint64_t kSequenceReserve = 1ull << 32;  // when nonces run before the clock

// A peer's mark may be this far before our clock at session start: it covers clocks that were
// stepped back by an hour, and keeps a wrong clock, or a peer that lies, from burning the years ahead.
constexpr absl::Duration kMaxMarkLead = absl::Hours(1);

uint32_t Seconds(absl::Time time) {
  const int64_t last = std::numeric_limits<uint32_t>::max() - 1000;
  return static_cast<uint32_t>(std::clamp<int64_t>(absl::ToUnixSeconds(time), 0, last));
}

// The latest time of a peer's mark that is believed. Where this server's own nonces run farther ahead,
// since the clocks were stepped back by more than that, the peers' do so too; how far they may differ
// then is what one write reserves. Counted from there a lie would be the ground for the next: whoever
// opens sessions all night put the nonces years ahead. What is beyond the hour by no more than clocks
// are apart is therefore no ground either: it may be what was let through by the hour.
uint32_t LatestMark(absl::Time own, absl::Time now) {
  const absl::Time within = now + kMaxMarkLead;
  if (own <= within + limits::kDefaultClockSkew) return Seconds(within);
  return Seconds(own + limits::kNonceReserveAhead);
}

// The lowest nonce from `mark` on in whose second there is room. A peer's mark may say that there is
// none; the next second costs nothing, and an hour without nonces would stand still.
NonceMark WithRoom(const NonceMark& mark) {
  NonceFields parts = SplitNonce(mark);
  if (parts.sequence < kNonceSequenceEnd / 2) return mark;
  if (parts.seconds == std::numeric_limits<uint32_t>::max()) return mark;
  ++parts.seconds;
  parts.sequence = 0;
  return JoinNonce(parts);
}

}  // namespace

absl::Status NonceSequencer::Load() {
  cluster_ = store_->cluster();
  ASSIGN_OR_RETURN(NonceMark mark, store_->ReadNonceMark());
  mark_ = next_ = mark;
  return absl::OkStatus();
}

absl::Status NonceSequencer::Join(const NonceMark& peer, absl::Time now) {
  const absl::Time own = absl::FromUnixSeconds(SplitNonce(mark()).seconds);
  const uint32_t latest = LatestMark(own, now);
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
  return std::max(WithRoom(next_), JoinNonce({Seconds(now), cluster_, 0}));
}

absl::Status NonceSequencer::Check(const NonceMark& base, uint64_t count, absl::Time now) const {
  const NonceFields parts = SplitNonce(base);
  if (base < next_) {
    return absl::FailedPreconditionError(absl::StrCat("proposed nonce ", NonceText(base),
                                                      " is below ", NonceText(next_),
                                                      ", which may have been used"));
  }
  if (parts.sequence + count + kSequenceReserve >= kNonceSequenceEnd || parts.cluster != cluster_) {
    return absl::FailedPreconditionError(absl::StrCat(
        "proposed nonce ", NonceText(base), " is not one of cluster ", cluster_));
  }
  // Going on from what was used costs no time, whatever the clock says now.
  const uint32_t latest = std::max(Seconds(now + lead_), SplitNonce(WithRoom(next_)).seconds);
  if (parts.seconds > latest) {
    return absl::FailedPreconditionError(
        absl::StrCat("proposed nonce ", NonceText(base), " is ", parts.seconds - Seconds(now),
                     " s before this server's clock"));
  }
  return absl::OkStatus();
}

absl::Status NonceSequencer::Reserve(const NonceMark& base, uint64_t count, absl::Time now) {
  RETURN_IF_ERROR(Check(base, count, now));
  const NonceMark end = AdvanceNonce(base, count);
  if (end > mark_) {
    NonceFields parts = SplitNonce(end);
    if (parts.seconds <= Seconds(now)) {
      parts.seconds += static_cast<uint32_t>(absl::ToInt64Seconds(limits::kNonceReserveAhead));
      parts.sequence = 0;
    } else {
      parts.sequence += kSequenceReserve;
    }
    NonceMark mark = JoinNonce(parts);
    if (unsure_) {
      // A mark whose answer was lost may stand there. It is not trusted, as a database may still
      // lose it: a higher one is written.
      ASSIGN_OR_RETURN(const NonceMark there, store_->ReadNonceMark());
      mark = std::max(mark, AdvanceNonce(there, 1));
    }
    unsure_ = true;
    RETURN_IF_ERROR(store_->ReserveNonceMark(mark));
    unsure_ = false;
    mark_ = mark;
  }
  next_ = end;
  return absl::OkStatus();
}

}  // namespace mpckdc
