// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/judge/quota.h"

#include <algorithm>
#include <cassert>
#include <vector>

#include "absl/strings/str_cat.h"

namespace mpckdc {
namespace {

absl::Duration TimeOf(const Rate& rate, uint32_t tokens) {
  assert(!rate.unlimited());
  return absl::Minutes(1) * static_cast<int64_t>(std::min(tokens, rate.burst)) / rate.per_minute;
}

constexpr QuotaKind Kind(size_t index) { return static_cast<QuotaKind>(index); }

}  // namespace

// ---- SteadyTime ----

absl::Duration SteadyTime::Advance(absl::Time now) {
  if (last_.has_value()) {
    elapsed_ += std::clamp(now - *last_, absl::ZeroDuration(), limits::kMaxQuotaStep);
  }
  last_ = now;
  return elapsed_;
}

// ---- TokenBucket ----

absl::Duration TokenBucket::WaitFor(const Rate& rate, uint32_t tokens, absl::Duration now) const {
  const absl::Duration full_then = std::max(full_at_, now) + TimeOf(rate, tokens);
  return std::max(full_then - TimeOf(rate, rate.burst) - now, absl::ZeroDuration());
}

void TokenBucket::Take(const Rate& rate, uint32_t tokens, absl::Duration now) {
  assert(WaitFor(rate, tokens, now) == absl::ZeroDuration());
  full_at_ = std::max(full_at_, now) + TimeOf(rate, tokens);
}

void TokenBucket::GiveBack(const Rate& rate, uint32_t tokens, absl::Duration now) {
  full_at_ = std::max(full_at_ - TimeOf(rate, tokens), now);
}

void TokenBucket::Change(const Rate& from, const Rate& to, absl::Duration now) {
  if (from == to || Full(now)) return;
  if (from.unlimited() || to.unlimited()) {
    full_at_ = now;
    return;
  }
  const absl::Duration missing = (full_at_ - now) * from.per_minute / to.per_minute;
  full_at_ = now + std::min(missing, TimeOf(to, to.burst));
}

// ---- Quotas ----

void Quotas::SetRates(const QuotaRates& rates) {
  const auto change = [&](Buckets& buckets, size_t first) {
    for (size_t i = 0; i < buckets.size(); ++i) {
      buckets[i].Change(rates_[Kind(first + i)], rates[Kind(first + i)], now_);
    }
  };
  for (auto& [id, buckets] : principals_) change(buckets, 0);
  for (auto& [name, buckets] : kdcs_) change(buckets, kPrincipalQuotas);
  rates_ = rates;
}

TokenBucket* Quotas::FindBucket(const std::string& kdc, const PrincipalId& principal,
                                size_t kind) {
  if (kind < kPrincipalQuotas) {
    const auto it = principals_.find(principal);
    return it == principals_.end() ? nullptr : &it->second[kind];
  }
  const auto it = kdcs_.find(kdc);
  return it == kdcs_.end() ? nullptr : &it->second[kind - kPrincipalQuotas];
}

TokenBucket& Quotas::BucketOf(const std::string& kdc, const PrincipalId& principal, size_t kind) {
  if (kind >= kPrincipalQuotas) return kdcs_[kdc][kind - kPrincipalQuotas];
  if (principals_.size() >= max_principals_ && !principals_.contains(principal)) MakeRoom();
  return principals_[principal][kind];
}

Judgement Quotas::Take(const std::string& kdc, const QuotaUse& use, absl::string_view principal,
                       std::optional<QuotaKind>* over) {
  const TokenBucket untouched;
  for (size_t i = 0; i < kQuotaKinds; ++i) {
    const Rate& rate = rates_[Kind(i)];
    if (use.tokens[i] == 0 || rate.unlimited()) continue;
    const TokenBucket* found = FindBucket(kdc, use.principal, i);
    const TokenBucket& bucket = found == nullptr ? untouched : *found;
    const absl::Duration wait = bucket.WaitFor(rate, use.tokens[i], now_);
    if (wait == absl::ZeroDuration()) continue;
    *over = Kind(i);
    const std::string whose =
        i < kPrincipalQuotas ? std::string(principal) : absl::StrCat("KDC ", kdc);
    return Refuse(Verdict::kQuota,
                  absl::StrCat("quota ", QuotaName(Kind(i)), " (", RateText(rate), ") of ", whose,
                               " is used up, free again in ",
                               absl::FormatDuration(absl::Ceil(wait, absl::Milliseconds(1)))));
  }
  for (size_t i = 0; i < kQuotaKinds; ++i) {
    const Rate& rate = rates_[Kind(i)];
    if (use.tokens[i] == 0 || rate.unlimited()) continue;
    BucketOf(kdc, use.principal, i).Take(rate, use.tokens[i], now_);
  }
  return Ok();
}

void Quotas::GiveBack(const std::string& kdc, const QuotaUse& use) {
  for (size_t i = 0; i < kQuotaKinds; ++i) {
    const Rate& rate = rates_[Kind(i)];
    if (use.tokens[i] == 0 || rate.unlimited()) continue;
    TokenBucket* const bucket = FindBucket(kdc, use.principal, i);
    if (bucket != nullptr) bucket->GiveBack(rate, use.tokens[i], now_);
  }
}

bool Quotas::AllFull(const Buckets& buckets) const {
  return std::all_of(buckets.begin(), buckets.end(),
                     [this](const TokenBucket& bucket) { return bucket.Full(now_); });
}

void Quotas::Prune() {
  absl::erase_if(principals_, [this](const auto& entry) { return AllFull(entry.second); });
  absl::erase_if(kdcs_, [this](const auto& entry) { return AllFull(entry.second); });
}

// When pruning does not help, the eighth of the principals goes that is nearest to full: they win
// the few tokens that they were still short of. Whoever wants to be forgotten so must first keep
// seven eighths of the table emptier than himself.
void Quotas::MakeRoom() {
  Prune();
  if (principals_.size() < max_principals_) return;
  const auto emptiest = [](const Buckets& buckets) {
    absl::Duration latest = absl::ZeroDuration();
    for (const TokenBucket& bucket : buckets) latest = std::max(latest, bucket.full_at());
    return latest;
  };
  std::vector<absl::Duration> moments;
  moments.reserve(principals_.size());
  for (const auto& [id, buckets] : principals_) moments.push_back(emptiest(buckets));
  const auto limit = moments.begin() + static_cast<std::ptrdiff_t>(moments.size() / 8);
  std::nth_element(moments.begin(), limit, moments.end());
  size_t excess = moments.size() / 8 + 1;
  absl::erase_if(principals_, [&](const auto& entry) {
    return emptiest(entry.second) <= *limit && excess > 0 && excess-- > 0;
  });
}

}  // namespace mpckdc
