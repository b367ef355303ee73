// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/judge/token_bucket.h"

#include <cassert>

#include "mpc-server/base/limits.h"

namespace mpckdc {
namespace {

absl::Duration TimeOf(const Rate& rate, uint32_t tokens) {
  assert(!rate.unlimited());
  return absl::Minutes(1) * static_cast<int64_t>(std::min(tokens, rate.burst)) / rate.per_minute;
}

}  // namespace

absl::Duration FillTime(const Rate& rate) { return TimeOf(rate, rate.burst); }

absl::Duration SteadyTime::Advance(absl::Time now) {
  if (last_.has_value()) {
    elapsed_ += std::clamp(now - *last_, absl::ZeroDuration(), limits::kMaxQuotaStep);
  }
  last_ = now;
  return elapsed_;
}

absl::Duration TokenBucket::WaitFor(const Rate& rate, uint32_t tokens, absl::Duration now) const {
  const absl::Duration full_then = std::max(full_at_, now) + TimeOf(rate, tokens);
  return std::max(full_then - FillTime(rate) - now, absl::ZeroDuration());
}

void TokenBucket::Take(const Rate& rate, uint32_t tokens, absl::Duration now) {
  assert(WaitFor(rate, tokens, now) == absl::ZeroDuration());
  full_at_ = std::max(full_at_, now) + TimeOf(rate, tokens);
}

void TokenBucket::GiveBack(const Rate& rate, uint32_t tokens, absl::Duration now) {
  full_at_ = std::max(full_at_ - TimeOf(rate, tokens), now);
}

void TokenBucket::Charge(const Rate& rate, absl::Duration longest, absl::Duration now) {
  full_at_ = std::min(std::max(full_at_, now) + TimeOf(rate, 1), now + longest);
}

void TokenBucket::Change(const Rate& from, const Rate& to, absl::Duration now) {
  if (from == to || Full(now)) return;
  if (from.unlimited() || to.unlimited()) {
    full_at_ = now;
    return;
  }
  const absl::Duration missing = (full_at_ - now) * from.per_minute / to.per_minute;
  full_at_ = now + std::min(missing, FillTime(to));
}

}  // namespace mpckdc
