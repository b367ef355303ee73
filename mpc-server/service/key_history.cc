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
    infos.push_back(record->info);
    if (infos.back().principal != infos.front().principal) {
      return absl::PermissionDeniedError("keys are compared of one principal, not of several");
    }
  }
  return infos.front();
}

absl::Status KeyHistory::CheckOld(const CompareRequest& request, const KeyInfo& of) const {
  for (const absl::StatusOr<KeyRecord>& record : store_.GetMany(request.old)) {
    if (absl::IsNotFound(record.status())) continue;  // the answer says so
    RETURN_IF_ERROR(record.status());
    if (record->info.principal == of.principal) continue;
    return absl::PermissionDeniedError(absl::StrCat("key ", HandleText(record->info.handle),
                                                    " is not one of ", of.principal,
                                                    ", with whose keys it was to be compared"));
  }
  return absl::OkStatus();
}

// ---- Renaming ----

PrincipalId KeyHistory::FirstName(PrincipalId id) const {
  for (auto found = named_before_.find(id); found != named_before_.end();
       found = named_before_.find(id)) {
    id = found->second;
  }
  return id;
}

absl::Status KeyHistory::AdmitRename(const std::string& from) {
  const absl::MutexLock lock(&mutex_);
  const absl::Duration now = elapsed_();
  const auto found = buckets_.find(FirstName(PrincipalIdOf(from)));
  if (found == buckets_.end()) return absl::OkStatus();
  const absl::Duration wait =
      found->second.renamed.WaitFor(RateOf(limits::kRenamedPerDay, kDay), kDay, now);
  if (wait == absl::ZeroDuration()) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "keys of ", from, " got another name ", limits::kRenamedPerDay, " times in a day; again in ",
      absl::FormatDuration(absl::Ceil(wait, absl::Seconds(1)))));
}

void KeyHistory::NoteRename(const std::string& from, const std::string& to) {
  const absl::MutexLock lock(&mutex_);
  const absl::Duration now = elapsed_();
  const PrincipalId first = FirstName(PrincipalIdOf(from)), other = FirstName(PrincipalIdOf(to));
  MakeRoom(first, now);
  buckets_[first].renamed.Take(RateOf(limits::kRenamedPerDay, kDay), kDay, now);
  if (first == other) return;
  // Without end they would be if somebody renamed without end: what is forgotten then is a bound of
  // some hours.
  if (named_before_.size() >= limits::kMaxQuotaPrincipals) named_before_.clear();
  named_before_[other] = first;
}

// ---- Quotas ----

void KeyHistory::MakeRoom(const PrincipalId& id, absl::Duration now) {
  if (buckets_.size() < limits::kMaxQuotaPrincipals || buckets_.contains(id)) return;
  absl::erase_if(buckets_, [now](const auto& entry) { return entry.second.full_at() <= now; });
  if (buckets_.size() < limits::kMaxQuotaPrincipals) return;
  ForgetEighth(buckets_, [](const auto& entry) { return entry.second.full_at(); });
}

absl::Status KeyHistory::Take(const KeyInfo& of, uint32_t keys) {
  const absl::MutexLock lock(&mutex_);
  const absl::Duration now = elapsed_();
  const PrincipalId id = FirstName(of.principal_id);
  MakeRoom(id, now);
  Buckets& buckets = buckets_[id];
  const Rate hour = RateOf(rates_.per_hour, kHour), day = RateOf(rates_.per_day, kDay);
  absl::Duration wait = absl::ZeroDuration();
  // More than a full bucket is never there.
  if (keys > rates_.per_hour || keys > rates_.per_day) wait = absl::InfiniteDuration();
  wait = std::max(wait, buckets.hour.WaitFor(hour, keys * kHour, now));
  wait = std::max(wait, buckets.day.WaitFor(day, keys * kDay, now));
  if (wait > absl::ZeroDuration()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "new keys of ", of.principal, " were compared with old ones as often as [quota] allows (",
        rates_.per_hour, " an hour, ", rates_.per_day, " a day)",
        wait < absl::InfiniteDuration()
            ? absl::StrCat("; again in ", absl::FormatDuration(absl::Ceil(wait, absl::Seconds(1))))
            : std::string()));
  }
  buckets.hour.Take(hour, keys * kHour, now);
  buckets.day.Take(day, keys * kDay, now);
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
  RETURN_IF_ERROR(CheckOld(request, of));
  RETURN_IF_ERROR(Take(of, static_cast<uint32_t>(request.staged.size())));
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
