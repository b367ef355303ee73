// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/judge/quota.h"

#include <algorithm>
#include <cassert>
#include <limits>

#include "absl/strings/str_cat.h"

namespace mpckdc {
namespace {

constexpr QuotaKind Kind(size_t index) { return static_cast<QuotaKind>(index); }
constexpr size_t Index(QuotaKind kind) { return static_cast<size_t>(kind); }

// Of a principal's kinds.
const PrincipalId& WhoseOf(const QuotaUse& use, QuotaKind kind) {
  return kind == QuotaKind::kPrincipalFailures ? use.guessed() : use.principal;
}

// What all users of another realm have together. It refills in the time of one user's.
Rate OfRealm(const Rate& rate) {
  const auto together = [](uint32_t number) {
    constexpr uint32_t kMost = std::numeric_limits<uint32_t>::max() / limits::kForeignUsersTogether;
    return std::min(number, kMost) * limits::kForeignUsersTogether;
  };
  return {together(rate.per_minute), together(rate.burst)};
}

// Of one source, in SourceBuckets from 0.
constexpr bool IsOfSource(QuotaKind kind) { return kind >= QuotaKind::kSourceFailures; }
constexpr size_t SourceIndex(QuotaKind kind) {
  return Index(kind) - Index(QuotaKind::kSourceFailures);
}

template <class Buckets>
absl::Duration LastFullAt(const Buckets& buckets) {
  absl::Duration latest;
  for (const TokenBucket& bucket : buckets) latest = std::max(latest, bucket.full_at());
  return latest;
}

template <class Buckets>
bool AllFull(const Buckets& buckets, absl::Duration now) {
  return std::all_of(buckets.begin(), buckets.end(),
                     [now](const TokenBucket& bucket) { return bucket.Full(now); });
}

std::string WhoseText(const std::string& kdc, QuotaKind kind, absl::string_view principal) {
  switch (kind) {
    case QuotaKind::kUnprovedFailures:
      return absl::StrCat("all datagrams to KDC ", kdc);
    case QuotaKind::kKnownFailures:
      return absl::StrCat(principal, " at one of its known sources");
    case QuotaKind::kSourceFailures:
    case QuotaKind::kAnonymousLogins:
      return absl::StrCat("one source, said by KDC ", kdc);
    default:
      return Index(kind) < kPrincipalQuotas ? std::string(principal) : absl::StrCat("KDC ", kdc);
  }
}

}  // namespace

void Quotas::SetRates(const QuotaRates& rates) {
  const auto change = [&](TokenBucket& bucket, QuotaKind kind) {
    bucket.Change(rates_[kind], rates[kind], now_);
  };
  for (auto& [id, buckets] : principals_) {
    for (size_t i = 0; i < buckets.size(); ++i) change(buckets[i], Kind(i));
  }
  for (auto& [name, buckets] : kdcs_) {
    for (size_t i = 0; i < buckets.size(); ++i) change(buckets[i], Kind(kPrincipalQuotas + i));
  }
  for (auto& [source, buckets] : sources_) {
    for (size_t i = 0; i < buckets.size(); ++i) {
      change(buckets[i], Kind(Index(QuotaKind::kSourceFailures) + i));
    }
  }
  known_.ChangeRate(rates_[QuotaKind::kKnownFailures], rates[QuotaKind::kKnownFailures], now_);
  rates_ = rates;
}

TokenBucket* Quotas::FindBucket(const std::string& kdc, const QuotaUse& use, QuotaKind kind) {
  if (kind == QuotaKind::kKnownFailures) return known_.Find(use.guessed(), use.source.id, now_);
  if (IsOfSource(kind)) {
    const auto it = sources_.find(use.source);
    return it == sources_.end() ? nullptr : &it->second[SourceIndex(kind)];
  }
  if (Index(kind) < kPrincipalQuotas) {
    const auto it = principals_.find(WhoseOf(use, kind));
    return it == principals_.end() ? nullptr : &it->second[Index(kind)];
  }
  const auto it = kdcs_.find(kdc);
  return it == kdcs_.end() ? nullptr : &it->second[Index(kind) - kPrincipalQuotas];
}

// When pruning makes no room, the eighth of a table goes that is nearest to full: they win the few
// tokens that they were still short of. Whoever wants to be forgotten so must first keep seven
// eighths of the table emptier than himself.
TokenBucket& Quotas::BucketOf(const std::string& kdc, const QuotaUse& use, QuotaKind kind) {
  if (TokenBucket* const found = FindBucket(kdc, use, kind)) return *found;
  if (IsOfSource(kind)) {
    if (sources_.size() >= limits::kMaxQuotaSources) Prune();
    if (sources_.size() >= limits::kMaxQuotaSources) {
      ForgetEighth(sources_, [](const auto& entry) { return LastFullAt(entry.second); });
    }
    return sources_[use.source][SourceIndex(kind)];
  }
  assert(kind != QuotaKind::kKnownFailures);  // taken only where it was found
  if (Index(kind) >= kPrincipalQuotas) return kdcs_[kdc][Index(kind) - kPrincipalQuotas];
  return OfPrincipal(WhoseOf(use, kind))[Index(kind)];
}

Quotas::PrincipalBuckets& Quotas::OfPrincipal(const PrincipalId& id) {
  if (principals_.size() >= max_principals_ && !principals_.contains(id)) {
    Prune();
    if (principals_.size() >= max_principals_) {
      ForgetEighth(principals_, [](const auto& entry) { return LastFullAt(entry.second); });
    }
  }
  return principals_[id];
}

// A known source that is not known any more has nothing.
absl::Duration Quotas::WaitFor(const std::string& kdc, const QuotaUse& use, QuotaKind kind) {
  if (use[kind] == 0 || rates_[kind].unlimited()) return absl::ZeroDuration();
  const TokenBucket* const found = FindBucket(kdc, use, kind);
  return (found == nullptr ? TokenBucket() : *found).WaitFor(rates_[kind], use[kind], now_);
}

// A realm vouches for as many users as it likes, so there is a bucket for all of them; and whoever
// takes much must not have the others refused. So what a user has taken and what all have taken make
// one full bucket at most: the emptier theirs is the less he may have taken himself, and one who has
// taken nothing finds the last token.
absl::Duration Quotas::WaitForRealm(const QuotaUse& use) {
  const Rate& rate = rates_[QuotaKind::kPrincipalReissues];
  if (!use.realm.has_value() || use[QuotaKind::kPrincipalReissues] == 0 || rate.unlimited()) {
    return absl::ZeroDuration();
  }
  const auto bucket_of = [this](const PrincipalId& id) {
    const auto it = principals_.find(id);
    return it == principals_.end() ? TokenBucket()
                                   : it->second[Index(QuotaKind::kPrincipalReissues)];
  };
  const auto missing = [this](const TokenBucket& bucket) {
    return std::max(bucket.full_at() - now_, absl::ZeroDuration());
  };
  const TokenBucket all = bucket_of(*use.realm), own = bucket_of(use.principal);
  const absl::Duration too_much = missing(all) + missing(own) - FillTime(rate);
  return std::max(too_much / 2,  // both fill meanwhile
                  all.WaitFor(OfRealm(rate), use[QuotaKind::kPrincipalReissues], now_));
}

// Of a refused job: whether the same one would have a bucket of its own.
bool Quotas::WouldPassIfProved(const std::string& kdc, const QuotaUse& use, QuotaKind over) {
  if (use.source.id == 0 || use.source.proved) return false;
  if (over == QuotaKind::kUnprovedFailures || IsOfSource(over)) return true;
  QuotaUse proved = use;
  proved[QuotaKind::kKnownFailures] = use[QuotaKind::kPrincipalFailures];
  return over == QuotaKind::kPrincipalFailures &&
         known_.Find(use.guessed(), use.source.id, now_) != nullptr &&
         WaitFor(kdc, proved, QuotaKind::kKnownFailures) == absl::ZeroDuration();
}

Judgement Quotas::UsedUp(const std::string& kdc, const QuotaUse& use, QuotaKind kind,
                         absl::string_view principal, absl::Duration wait) {
  const bool by_tcp = WouldPassIfProved(kdc, use, kind);
  return Refuse(by_tcp ? Verdict::kUnproved : Verdict::kQuota,
                absl::StrCat("quota ", QuotaName(kind), " (", RateText(rates_[kind]), ") of ",
                             WhoseText(kdc, kind, principal), " is used up, free again in ",
                             absl::FormatDuration(absl::Ceil(wait, absl::Milliseconds(1))),
                             by_tcp ? "; by TCP this request has a share of its own" : ""));
}

Judgement Quotas::Take(const std::string& kdc, QuotaUse& use, absl::string_view principal,
                       std::optional<QuotaKind>* over) {
  QuotaUse plan = use;
  for (size_t i = 0; i < kQuotaKinds; ++i) {
    const absl::Duration wait = WaitFor(kdc, plan, Kind(i));
    if (wait == absl::ZeroDuration() && Kind(i) == QuotaKind::kPrincipalReissues) {
      const absl::Duration of_realm = WaitForRealm(plan);
      if (of_realm == absl::ZeroDuration()) continue;
      *over = Kind(i);
      return UsedUp(kdc, plan, Kind(i),
                    absl::StrCat(principal, " beside all others of that realm (",
                                 limits::kForeignUsersTogether, " times as much together)"),
                    of_realm);
    }
    if (wait == absl::ZeroDuration()) continue;
    if (Kind(i) == QuotaKind::kPrincipalFailures && plan.source.proved &&
        known_.Find(plan.guessed(), plan.source.id, now_) != nullptr) {
      std::swap(plan.tokens[i], plan[QuotaKind::kKnownFailures]);  // its turn is still to come
      continue;
    }
    *over = Kind(i);
    return UsedUp(kdc, plan, Kind(i), principal, wait);
  }
  for (size_t i = 0; i < kQuotaKinds; ++i) {
    const Rate& rate = rates_[Kind(i)];
    if (plan.tokens[i] == 0 || rate.unlimited() || Kind(i) == QuotaKind::kUnprovedFailures)
      continue;
    // Who has opened nothing bad lately may open as much at once as he likes.
    if (Kind(i) == QuotaKind::kSourceFailures) {
      const TokenBucket* const bucket = FindBucket(kdc, plan, Kind(i));
      plan.source_owes = bucket == nullptr || bucket->Full(now_);
      if (plan.source_owes) continue;
    }
    BucketOf(kdc, plan, Kind(i)).Take(rate, plan.tokens[i], now_);
    if (Kind(i) == QuotaKind::kPrincipalReissues && plan.realm.has_value()) {
      OfPrincipal(*plan.realm)[i].Take(OfRealm(rate), plan.tokens[i], now_);
    }
  }
  use = plan;
  return Ok();
}

void Quotas::GiveBack(const std::string& kdc, const QuotaUse& use) {
  for (size_t i = 0; i < kQuotaKinds; ++i) {
    const Rate& rate = rates_[Kind(i)];
    if (use.tokens[i] == 0 || rate.unlimited() || Kind(i) == QuotaKind::kUnprovedFailures) continue;
    if (Kind(i) == QuotaKind::kSourceFailures && use.source_owes) continue;
    TokenBucket* const bucket = FindBucket(kdc, use, Kind(i));
    if (bucket != nullptr) bucket->GiveBack(rate, use.tokens[i], now_);
    if (Kind(i) != QuotaKind::kPrincipalReissues || !use.realm.has_value()) continue;
    const auto realm = principals_.find(*use.realm);
    if (realm != principals_.end()) realm->second[i].GiveBack(OfRealm(rate), use.tokens[i], now_);
  }
}

void Quotas::Failed(const std::string& kdc, const QuotaUse& use) {
  const auto charge = [&](QuotaKind kind, auto longest) {
    if (use[kind] == 0 || rates_[kind].unlimited()) return;
    BucketOf(kdc, use, kind).Charge(rates_[kind], longest(rates_[kind]), now_);
  };
  charge(QuotaKind::kUnprovedFailures,
         [](const Rate& rate) { return FillTime(rate) + limits::kMaxUnprovedDebt; });
  if (use.source_owes) charge(QuotaKind::kSourceFailures, FillTime);
}

void Quotas::Succeeded(const QuotaUse& use) {
  if (!use.guess() || use.source.id == 0 || rates_[QuotaKind::kPrincipalFailures].unlimited()) {
    return;
  }
  known_.Learn(use.guessed(), use.source.id, now_);
}

void Quotas::Prune() {
  absl::erase_if(principals_, [this](const auto& entry) { return AllFull(entry.second, now_); });
  absl::erase_if(kdcs_, [this](const auto& entry) { return AllFull(entry.second, now_); });
  absl::erase_if(sources_, [this](const auto& entry) { return AllFull(entry.second, now_); });
  known_.Prune(now_);
}

}  // namespace mpckdc
