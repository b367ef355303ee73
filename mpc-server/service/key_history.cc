// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/key_history.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/package/package.h"

namespace mpckdc {
namespace {

// Rates are per minute (token_bucket.h), so what may be done N times in so many minutes costs as
// many tokens of a bucket into which N flow.
constexpr uint32_t kHour = 60, kDay = 24 * 60;

// Of none is wanted nothing (Take), and a rate of 0 would be unlimited.
Rate RateOf(uint32_t keys, uint32_t minutes) {
  return {std::max(keys, 1u), std::max(keys, 1u) * minutes};
}

absl::StatusOr<std::vector<Handle>> HandlesIn(
    const google::protobuf::RepeatedPtrField<std::string>& in, size_t most, const char* what) {
  if (in.empty() || static_cast<size_t>(in.size()) > most) {
    return absl::InvalidArgumentError(
        absl::StrCat("1 to ", most, " ", what, " keys in one comparison, not ", in.size()));
  }
  std::vector<Handle> handles;
  for (const std::string& bytes : in) {
    ASSIGN_OR_RETURN(const Handle handle, Bytes16(bytes, "a key handle"));
    if (std::find(handles.begin(), handles.end(), handle) != handles.end()) {
      return absl::InvalidArgumentError("a handle occurs twice in one comparison");
    }
    handles.push_back(handle);
  }
  return handles;
}

AuditLog::Fields Texts(const std::vector<Handle>& handles) {
  AuditLog::Fields texts = AuditLog::Fields::array();
  for (const Handle& handle : handles) texts.push_back(HandleText(handle));
  return texts;
}

v1::CompareKeysReply::Answer AnswerOf(Comparison comparison) {
  switch (comparison) {
    case Comparison::kDifferent:
      return v1::CompareKeysReply::ANSWER_DIFFERENT;
    case Comparison::kEqual:
      return v1::CompareKeysReply::ANSWER_EQUAL;
    case Comparison::kUnknown:
      return v1::CompareKeysReply::ANSWER_UNKNOWN;
  }
  return v1::CompareKeysReply::ANSWER_UNSPECIFIED;
}

}  // namespace

absl::Duration MonotonicTime() {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

void KeyHistory::SetRates(const ComparedRates& rates) {
  const absl::MutexLock lock(&mutex_);
  rates_ = rates;
}

void KeyHistory::NoteStager(const TransactionId& txn, const std::string& caller) {
  const absl::MutexLock lock(&mutex_);
  const auto [it, fresh] = stagers_.try_emplace(txn, caller);
  if (!fresh) {
    if (it->second != caller) it->second.clear();  // two have: it is neither's
    return;
  }
  staged_.push_back(txn);
  if (staged_.size() <= limits::kMaxStagers) return;
  stagers_.erase(staged_.front());
  staged_.pop_front();
}

absl::Status KeyHistory::CheckStager(const TransactionId& txn, const std::string& caller) const {
  const absl::MutexLock lock(&mutex_);
  const auto found = stagers_.find(txn);
  if (found != stagers_.end() && found->second == caller) return absl::OkStatus();
  return absl::PermissionDeniedError(
      "only who has staged a transaction's keys at this server, since it started, may have them "
      "compared");
}

// Of whom the staged keys are.
absl::StatusOr<KeyInfo> KeyHistory::CheckStaged(const CompareRequest& request) const {
  std::vector<KeyInfo> infos;
  for (const Handle& handle : request.staged) {
    const absl::StatusOr<KeyRecord> record = store_.GetStaged(request.txn, handle);
    if (absl::IsNotFound(record.status())) {
      return absl::FailedPreconditionError(
          absl::StrCat("key ", HandleText(handle),
                       " is not staged in this transaction: never, or it is committed, aborted or "
                       "expired"));
    }
    if (!record.ok()) return record.status();
    // The token is for one guess, the staged key. In a copy each old key would be one.
    if (record->copied.has_value()) {
      return absl::PermissionDeniedError(
          absl::StrCat("key ", HandleText(handle), " is an old key under a new name: new keys are "
                       "compared, and it is none"));
    }
    infos.push_back(record->info);
    if (infos.back().principal != infos.front().principal) {
      return absl::PermissionDeniedError("keys are compared of one principal, not of several");
    }
  }
  return infos.front();
}

absl::Status KeyHistory::CheckOld(const KeyInfo& of, CompareRequest* request) const {
  for (const absl::StatusOr<KeyRecord>& record : store_.GetMany(request->old)) {
    PrincipalId& guessed = request->guessed.emplace_back();
    if (absl::IsNotFound(record.status())) continue;  // the answer says so
    RETURN_IF_ERROR(record.status());
    guessed = record->guessed();
    if (record->info.principal == of.principal) continue;
    return absl::PermissionDeniedError(absl::StrCat("key ", HandleText(record->info.handle),
                                                    " is not one of ", of.principal,
                                                    ", with whose keys it was to be compared"));
  }
  return absl::OkStatus();
}

// ---- Quotas ----

namespace {

absl::Duration FullAt(const TokenBucket& bucket) { return bucket.full_at(); }
template <class Buckets>
absl::Duration FullAt(const Buckets& buckets) {
  return buckets.full_at();
}

// A table's entry, which may be a new one.
template <class Table>
auto& EntryOf(Table& table, const PrincipalId& id, absl::Duration now) {
  if (table.size() >= limits::kMaxQuotaPrincipals && !table.contains(id)) {
    absl::erase_if(table, [now](const auto& entry) { return FullAt(entry.second) <= now; });
    if (table.size() >= limits::kMaxQuotaPrincipals) {
      ForgetEighth(table, [](const auto& entry) { return FullAt(entry.second); });
    }
  }
  return table[id];
}

std::string AgainText(absl::Duration wait) {
  return absl::StrCat("again in ", absl::FormatDuration(absl::Ceil(wait, absl::Seconds(1))));
}

constexpr Rate kRenamed = {limits::kRenamedPerDay, limits::kRenamedPerDay * kDay};

}  // namespace

absl::StatusOr<RenamedKeys> KeyHistory::Rename(
    absl::Span<const RenamedKey> keys, absl::FunctionRef<absl::StatusOr<RenamedKeys>()> stage) {
  const absl::MutexLock lock(&renaming_);
  RETURN_IF_ERROR(AdmitRename(keys));
  ASSIGN_OR_RETURN(RenamedKeys done, stage());
  NoteRename(done.lineages);
  return done;
}

// What cannot be read is not renamed either.
absl::Status KeyHistory::AdmitRename(absl::Span<const RenamedKey> keys) {
  std::vector<Handle> handles;
  for (const RenamedKey& key : keys) handles.push_back(key.from.handle);
  const std::vector<absl::StatusOr<KeyRecord>> records = store_.GetMany(handles);
  const absl::MutexLock lock(&mutex_);
  const absl::Duration now = elapsed_();
  for (const absl::StatusOr<KeyRecord>& record : records) {
    const auto found = record.ok() ? renamed_.find(record->lineage()) : renamed_.end();
    if (found == renamed_.end()) continue;
    const absl::Duration wait = found->second.WaitFor(kRenamed, kDay, now);
    if (wait == absl::ZeroDuration()) continue;
    return absl::ResourceExhaustedError(
        absl::StrCat("keys of ", record->info.principal, " got another name ",
                     limits::kRenamedPerDay, " times in a day; ", AgainText(wait)));
  }
  return absl::OkStatus();
}

void KeyHistory::NoteRename(const PrincipalIds& lineages) {
  const absl::MutexLock lock(&mutex_);
  const absl::Duration now = elapsed_();
  for (const PrincipalId& id : lineages) {
    TokenBucket& bucket = EntryOf(renamed_, id, now);
    // Of another machine's doing in between a token may be missing.
    if (bucket.WaitFor(kRenamed, kDay, now) > absl::ZeroDuration()) continue;
    bucket.Take(kRenamed, kDay, now);
  }
}

// From each of them, or from none.
absl::Status KeyHistory::Take(const KeyInfo& of, const PrincipalIds& owners, uint32_t keys) {
  const absl::MutexLock lock(&mutex_);
  const absl::Duration now = elapsed_();
  const Rate hour = RateOf(rates_.per_hour, kHour), day = RateOf(rates_.per_day, kDay);
  absl::Duration wait = absl::ZeroDuration();
  // More than a full bucket is never there.
  if (keys > rates_.per_hour || keys > rates_.per_day) wait = absl::InfiniteDuration();
  for (const PrincipalId& id : owners) {
    const auto found = compared_.find(id);
    const Compared buckets = found == compared_.end() ? Compared() : found->second;
    wait = std::max(wait, buckets.hour.WaitFor(hour, keys * kHour, now));
    wait = std::max(wait, buckets.day.WaitFor(day, keys * kDay, now));
  }
  if (wait > absl::ZeroDuration()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "new keys of ", of.principal, " were compared with old ones as often as [quota] allows (",
        rates_.per_hour, " an hour, ", rates_.per_day, " a day)",
        wait < absl::InfiniteDuration() ? absl::StrCat("; ", AgainText(wait)) : std::string()));
  }
  for (const PrincipalId& id : owners) {
    Compared& buckets = EntryOf(compared_, id, now);
    buckets.hour.Take(hour, keys * kHour, now);
    buckets.day.Take(day, keys * kDay, now);
  }
  return absl::OkStatus();
}

absl::StatusOr<CompareRequest> KeyHistory::Admit(const v1::CompareKeysRequest& in,
                                                 const std::string& caller,
                                                 AuditLog::Fields* details) {
  CompareRequest request;
  ASSIGN_OR_RETURN(request.id, Bytes16(in.request(), "the request id"));
  ASSIGN_OR_RETURN(request.txn, Bytes16(in.transaction(), "the transaction id"));
  (*details)["transaction"] = absl::BytesToHexString(in.transaction());
  ASSIGN_OR_RETURN(request.staged, HandlesIn(in.staged(), limits::kMaxStagedCompared, "staged"));
  ASSIGN_OR_RETURN(request.old, HandlesIn(in.old(), limits::kMaxComparedKeys, "old"));
  (*details)["staged"] = Texts(request.staged);
  (*details)["old"] = Texts(request.old);
  RETURN_IF_ERROR(CheckStager(request.txn, caller));
  ASSIGN_OR_RETURN(const KeyInfo of, CheckStaged(request));
  (*details)["principal"] = of.principal;
  RETURN_IF_ERROR(CheckOld(of, &request));
  PrincipalIds owners(request.guessed.begin(), request.guessed.end());
  owners.erase(PrincipalId{});
  owners.insert(of.principal_id);
  RETURN_IF_ERROR(Take(of, owners, static_cast<uint32_t>(request.staged.size())));
  return request;
}

void FillAnswers(absl::Span<const CompareResult> results, v1::CompareKeysReply* reply,
                 AuditLog::Fields* details) {
  size_t equal = 0;
  for (const CompareResult& result : results) {
    v1::CompareKeysReply::Result* const out = reply->add_results();
    out->set_handle(std::string(AsText(result.handle)));
    out->set_answer(AnswerOf(result.comparison));
    equal += result.comparison == Comparison::kEqual;
  }
  (*details)["equal"] = equal;
}

}  // namespace mpckdc
