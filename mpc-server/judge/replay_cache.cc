// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/judge/replay_cache.h"

#include <sodium.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/sha256.h"
#include "mpc-server/judge/grants.h"

namespace mpckdc {
namespace {

constexpr absl::Duration kPruneInterval = absl::Minutes(1);

uint32_t SecondsAfter(absl::Time time) {
  const int64_t seconds = absl::ToUnixSeconds(time + absl::Seconds(1) - absl::Nanoseconds(1));
  return static_cast<uint32_t>(std::clamp<int64_t>(seconds, 0, UINT32_MAX));
}

Judgement AcceptedBefore(absl::string_view why) {
  return Refuse(Verdict::kReplay, absl::StrCat("this pre-auth was accepted before", why));
}

// Whether a pre-auth that was claimed so may be presented with a job that needs so much; then that
// is taken from the budget.
Judgement PresentAgain(Budget* budget, const Claimant& claimant, const GrantUse& need,
                       const GrantUse& spare, absl::Time now) {
  const ReplayClaim& claim = budget->entry->claim;
  if (claim.claimant == Claimant{}) return AcceptedBefore("");
  if (claim.claimant != claimant) return AcceptedBefore(", from another KDC or in another name");
  if (now >= claim.since + limits::kGrantLife) return AcceptedBefore(", and its grant has ended");
  if (UnderAnotherKey(PaidOf(claim), need)) {
    return AcceptedBefore(", for a ticket under another key");
  }
  if (TakeFrom(budget, need, spare)) return Ok();
  return AcceptedBefore(", and what its grant pays for is used up");
}

Judgement AnswerTo(const BudgetAsk& ask, Budget* budget, absl::Time now) {
  const GrantUse need = UseOf(*ask.job);
  if (ask.budget == nullptr) {
    return PresentAgain(budget, ask.entry.claim.claimant, need, SecondJobOf(need), now);
  }
  Judgement covered = CheckBudget(*budget, {}, *ask.job);
  if (covered.ok()) TakeFrom(budget, need, {});
  return covered;
}

}  // namespace

namespace {

Claimant HashOf(absl::string_view label, absl::string_view what) {
  std::string bytes(label);
  bytes.push_back('\0');
  const Digest digest = Sha256(absl::StrCat(bytes, what));
  Claimant claimant;
  std::copy_n(digest.begin(), claimant.size(), claimant.begin());
  return claimant;
}

}  // namespace

Claimant ClaimantOf(const KdcIdentity& kdc) { return HashOf("mpc-kdc claimant v1", kdc.name); }

Claimant ClaimantOf(const KdcIdentity& kdc, const PrincipalId& principal) {
  return HashOf("mpc-kdc claimant v2", absl::StrCat(AsText(principal), kdc.name));
}

struct ReplayCache::Group {
  // What becomes of the budget and of the asks if the store has `claim`; nothing: it has none.
  struct Tally {
    Budget budget;
    std::vector<Judgement> judgements;
  };
  Tally Count(const std::optional<ReplayClaim>& claim, absl::Time now) const {
    Tally tally{start, {}};
    if (claim.has_value()) tally.budget.entry->claim = *claim;
    for (const BudgetAsk* ask : asks) {
      tally.judgements.push_back(AnswerTo(*ask, &tally.budget, now));
    }
    return tally;
  }
  // A grant's jobs within what was taken for it in advance need no write.
  bool NeedsWrite(absl::Time now) const {
    if (!start.entry.has_value()) return false;
    const bool presents = std::any_of(asks.begin(), asks.end(),
                                      [](const BudgetAsk* ask) { return ask->budget == nullptr; });
    return presents || Count({}, now).budget.entry->claim != start.entry->claim;
  }

  std::shared_ptr<Budget> budget;
  Budget start;  // as it is before the batch
  std::vector<BudgetAsk*> asks;
  std::optional<ReplayClaim> found;  // by the write
};

ReplayCache::ReplayCache(ShareStore* store, RandomSource* random) : store_(store) {
  static_assert(sizeof key_ == crypto_shorthash_siphashx24_KEYBYTES);
  random->Fill(absl::MakeSpan(key_));
}

ReplayCache::Mark ReplayCache::MarkOf(const Handle& handle, const Nonce& nonce) const {
  Mark mark;
  static_assert(sizeof mark == crypto_shorthash_siphashx24_BYTES);
  uint8_t bytes[sizeof handle + sizeof nonce];
  std::memcpy(bytes, handle.data(), sizeof handle);
  std::memcpy(bytes + sizeof handle, nonce.data(), sizeof nonce);
  crypto_shorthash_siphashx24(mark.data(), bytes, sizeof bytes, key_.data());
  return mark;
}

absl::Status ReplayCache::Load(absl::Time now) {
  expires_.clear();
  recent_.clear();
  by_age_.clear();
  return store_->LoadReplayEntries([&](const ReplayEntry& entry) {
    Remember(std::make_shared<Budget>(Budget{entry, {}, {}}), now);
  });
}

Judgement ReplayCache::Look(const Handle& handle, const Nonce& nonce, const Claimant& claimant,
                            const GrantUse& need, absl::Time now) const {
  const Mark mark = MarkOf(handle, nonce);
  if (!expires_.contains(mark)) return Ok();
  const auto it = recent_.find(mark);
  if (it == recent_.end()) return AcceptedBefore("");
  Budget budget = *it->second;
  return PresentAgain(&budget, claimant, need, {}, now);
}

// A budget's asks in the order of the batch.
std::vector<ReplayCache::Group> ReplayCache::GroupsOf(absl::Span<BudgetAsk> asks) const {
  std::vector<Group> groups;
  absl::flat_hash_map<std::string, size_t> by_key;
  for (BudgetAsk& ask : asks) {
    const bool presents = ask.budget == nullptr;
    std::shared_ptr<Budget> budget = ask.budget;
    if (presents) {
      const auto known = recent_.find(MarkOf(ask.entry.handle, ask.entry.nonce));
      budget = known != recent_.end() ? known->second
                                      : std::make_shared<Budget>(Budget{ask.entry, {}, {}});
    }
    // A budget that is in no store has a key of its own.
    const std::string key = budget->entry.has_value() ? ReplayKey(*budget->entry)
                                                      : absl::StrCat(absl::Hex(budget.get()));
    const auto [it, first] = by_key.try_emplace(key, groups.size());
    if (first) groups.push_back({budget, *budget, {}, {}});
    groups[it->second].asks.push_back(&ask);
  }
  return groups;
}

absl::Status ReplayCache::WriteDown(absl::Span<Group*> groups, absl::Time now) {
  std::vector<ReplayEntry> entries;
  for (const Group* group : groups) entries.push_back(*group->Count({}, now).budget.entry);
  const auto change = [&](size_t i, const ReplayClaim& claim) -> std::optional<ReplayClaim> {
    const ReplayClaim counted = groups[i]->Count(claim, now).budget.entry->claim;
    if (counted == claim) return std::nullopt;
    return counted;
  };
  absl::StatusOr<std::vector<std::optional<ReplayClaim>>> found =
      store_->ClaimReplayEntries(entries, change);
  if (!found.ok()) return found.status();
  for (size_t i = 0; i < groups.size(); ++i) groups[i]->found = (*found)[i];
  return absl::OkStatus();
}

void ReplayCache::Answer(Group& group, absl::Time now) {
  Group::Tally tally = group.Count(group.found, now);
  *group.budget = std::move(tally.budget);
  for (size_t i = 0; i < group.asks.size(); ++i) {
    group.asks[i]->judgement = std::move(tally.judgements[i]);
    group.asks[i]->budget = group.budget;
  }
  if (group.budget->entry.has_value()) Remember(group.budget, now);
}

void ReplayCache::Settle(absl::Span<BudgetAsk> asks, absl::Time now) {
  PruneRecent(now);
  std::vector<Group> groups = GroupsOf(asks);
  std::vector<Group*> written;
  for (Group& group : groups) {
    if (group.NeedsWrite(now)) written.push_back(&group);
  }
  const absl::Status status =
      written.empty() ? absl::OkStatus() : WriteDown(absl::MakeSpan(written), now);
  for (Group& group : groups) {
    if (status.ok() || std::find(written.begin(), written.end(), &group) == written.end()) {
      Answer(group, now);
      continue;
    }
    for (BudgetAsk* ask : group.asks) {
      ask->judgement = Refuse(Verdict::kUnavailable,
                              absl::StrCat("cannot record the pre-auth: ", status.message()));
    }
  }
}

void ReplayCache::Remember(const std::shared_ptr<Budget>& budget, absl::Time now) {
  const ReplayEntry& entry = *budget->entry;
  const Mark mark = MarkOf(entry.handle, entry.nonce);
  expires_[mark] = SecondsAfter(entry.expires);
  const absl::Time until = entry.claim.since + limits::kGrantLife;
  if (entry.claim.claimant == Claimant{} || until <= now) return;
  if (!recent_.try_emplace(mark, budget).second) return;
  by_age_.push_back({until, mark});
  while (by_age_.size() > limits::kMaxGrants) {
    recent_.erase(by_age_.front().second);
    by_age_.pop_front();
  }
}

void ReplayCache::PruneRecent(absl::Time now) {
  while (!by_age_.empty() && by_age_.front().first <= now) {
    recent_.erase(by_age_.front().second);
    by_age_.pop_front();
  }
}

absl::Status ReplayCache::Prune(absl::Time now) {
  PruneRecent(now);
  if (now < pruned_ + kPruneInterval && now >= pruned_) return absl::OkStatus();
  pruned_ = now;
  const int64_t seconds = absl::ToUnixSeconds(now);
  absl::erase_if(expires_, [seconds](const auto& entry) { return entry.second < seconds; });
  return store_->PruneReplayEntries(now).status();
}

}  // namespace mpckdc
