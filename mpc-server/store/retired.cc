// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/store/retired.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/store/key_table.h"
#include "mpc-server/store/share_store.h"

namespace mpckdc {
namespace {

namespace rf = record_format;

absl::Status DamagedMark() {
  return absl::DataLossError("the mark of a retired key in the share store is damaged");
}

std::string TimeBytes(absl::Time time) {
  std::string bytes;
  AppendUint(bytes, static_cast<uint64_t>(std::max<int64_t>(0, absl::ToUnixMicros(time))),
             rf::kRetiredTimeBytes);
  return bytes;
}

std::string ByHandle(const Handle& handle) {
  return absl::StrCat(std::string(1, rf::kRetiredByHandle), AsText(handle));
}

std::string ByTime(absl::string_view time_bytes, const Handle& handle) {
  return absl::StrCat(std::string(1, rf::kRetiredByTime), time_bytes, AsText(handle));
}

std::string ReducedName(const Handle& handle) {
  return absl::StrCat(std::string(1, rf::kRetiredReduced), AsText(handle));
}

absl::StatusOr<absl::Time> TimeOf(absl::Span<const uint8_t> value) {
  if (value.size() != rf::kRetiredTimeBytes) return DamagedMark();
  return absl::FromUnixMicros(static_cast<int64_t>(ByteReader(value).Uint(rf::kRetiredTimeBytes)));
}

// Of what stands under a name by time.
absl::StatusOr<bool> IsForHistory(absl::Span<const uint8_t> value) {
  if (value.empty()) return false;
  if (value.size() != 1 || value[0] != rf::kKeptForHistory) return DamagedMark();
  return true;
}

std::string HistoryText(bool for_history) {
  return for_history ? std::string(1, static_cast<char>(rf::kKeptForHistory)) : std::string();
}

// The mark of a key of which the first entry says `since`.
absl::StatusOr<RetiredMark> MarkSince(const KvTxn& txn, const Handle& handle, absl::Time since) {
  const auto by_time = txn.Get(rf::kRetired, ByTime(TimeBytes(since), handle));
  if (by_time.ok()) {
    ASSIGN_OR_RETURN(const bool for_history, IsForHistory(*by_time));
    return RetiredMark{since, for_history, false};
  }
  if (!absl::IsNotFound(by_time.status())) return by_time.status();
  const absl::Status reduced = txn.Get(rf::kRetired, ReducedName(handle)).status();
  if (absl::IsNotFound(reduced)) return DamagedMark();
  RETURN_IF_ERROR(reduced);
  return RetiredMark{since, true, true};
}

}  // namespace

// ---- Marks ----

absl::StatusOr<RetiredMark> RetiredAt(const KvTxn& txn, const Handle& handle) {
  ASSIGN_OR_RETURN(absl::Span<const uint8_t> value, txn.Get(rf::kRetired, ByHandle(handle)));
  ASSIGN_OR_RETURN(const absl::Time since, TimeOf(value));
  return MarkSince(txn, handle, since);
}

absl::StatusOr<bool> MarkRetired(KvTxn& txn, const Handle& handle, absl::Time now,
                                 bool for_history) {
  const absl::StatusOr<RetiredMark> old = RetiredAt(txn, handle);
  if (!old.ok() && !absl::IsNotFound(old.status())) return old.status();
  if (old.ok() && old->for_history == for_history) return false;
  const std::string time = TimeBytes(old.ok() ? old->since : now);
  if (old.ok() && old->reduced) {
    RETURN_IF_ERROR(txn.Delete(rf::kRetired, ReducedName(handle)));
  }
  RETURN_IF_ERROR(txn.Put(rf::kRetired, ByHandle(handle), time));
  RETURN_IF_ERROR(txn.Put(rf::kRetired, ByTime(time, handle), HistoryText(for_history)));
  return true;
}

absl::Status MarkReduced(KvTxn& txn, const Handle& handle) {
  ASSIGN_OR_RETURN(const RetiredMark mark, RetiredAt(txn, handle));
  RETURN_IF_ERROR(txn.Delete(rf::kRetired, ByTime(TimeBytes(mark.since), handle)));
  return txn.Put(rf::kRetired, ReducedName(handle), "");
}

absl::StatusOr<bool> UnmarkRetired(KvTxn& txn, const Handle& handle) {
  const absl::StatusOr<RetiredMark> mark = RetiredAt(txn, handle);
  if (absl::IsNotFound(mark.status())) return false;
  if (!mark.ok()) return mark.status();
  RETURN_IF_ERROR(txn.Delete(rf::kRetired, ByHandle(handle)));
  RETURN_IF_ERROR(txn.Delete(
      rf::kRetired, mark->reduced ? ReducedName(handle) : ByTime(TimeBytes(mark->since), handle)));
  return true;
}

absl::StatusOr<std::vector<RetiredKey>> RetiredBefore(const KvTxn& txn, absl::Time before,
                                                      size_t most) {
  const std::string end = absl::StrCat(std::string(1, rf::kRetiredByTime), TimeBytes(before));
  std::vector<RetiredKey> found;
  absl::Status result;
  absl::Status scanned = txn.Scan(
      rf::kRetired, std::string(1, rf::kRetiredByTime),
      [&](absl::string_view key, absl::Span<const uint8_t> value) {
        if (key >= end || found.size() == most) return false;
        if (key.size() != rf::kRetiredByTimeBytes) result = DamagedMark();
        const absl::StatusOr<bool> for_history = IsForHistory(value);
        result.Update(for_history.status());
        if (!result.ok()) return false;
        found.push_back({{}, *for_history});
        ByteReader(AsBytes(key.substr(1 + rf::kRetiredTimeBytes))).Into(found.back().handle);
        return true;
      });
  result.Update(scanned);
  if (!result.ok()) return result;
  return found;
}

absl::Status ScanRetired(const KvTxn& txn, const Handle& first,
                         absl::FunctionRef<bool(const Handle&, const RetiredMark&)> visit) {
  absl::Status result;
  absl::Status scanned = txn.Scan(
      rf::kRetired, ByHandle(first), [&](absl::string_view key, absl::Span<const uint8_t> value) {
        if (key.front() != rf::kRetiredByHandle) return false;
        Handle handle;
        const absl::StatusOr<absl::Time> time = TimeOf(value);
        result = key.size() == 1 + handle.size() ? time.status() : DamagedMark();
        if (!result.ok()) return false;
        ByteReader(AsBytes(key.substr(1))).Into(handle);
        const absl::StatusOr<RetiredMark> mark = MarkSince(txn, handle, *time);
        result = mark.status();
        return result.ok() && visit(handle, *mark);
      });
  result.Update(scanned);
  return result;
}

// ---- What the store does with them ----

// Three reads for however many: who asks hands millions over.
absl::StatusOr<std::vector<std::optional<RetiredMark>>> ShareStore::MarksOf(
    absl::Span<const Handle> handles) const {
  std::vector<std::string> by_handle;
  by_handle.reserve(handles.size());
  for (const Handle& handle : handles) by_handle.push_back(ByHandle(handle));
  ASSIGN_OR_RETURN(std::unique_ptr<const KvTxn> txn, engine_->BeginRead());
  ASSIGN_OR_RETURN(const KvTxn::Values values, txn->GetMany(rf::kRetired, by_handle));
  std::vector<std::optional<RetiredMark>> marks(handles.size());
  std::vector<std::string> by_time, reduced;
  std::vector<size_t> marked;
  for (size_t i = 0; i < handles.size(); ++i) {
    if (!values[i].has_value()) continue;
    const absl::StatusOr<absl::Time> since = TimeOf(AsBytes(*values[i]));
    if (!since.ok()) continue;
    marks[i] = RetiredMark{.since = *since};
    marked.push_back(i);
    by_time.push_back(ByTime(TimeBytes(*since), handles[i]));
    reduced.push_back(ReducedName(handles[i]));
  }
  if (marked.empty()) return marks;
  ASSIGN_OR_RETURN(const KvTxn::Values kept, txn->GetMany(rf::kRetired, by_time));
  ASSIGN_OR_RETURN(const KvTxn::Values left, txn->GetMany(rf::kRetired, reduced));
  for (size_t m = 0; m < marked.size(); ++m) {
    RetiredMark& mark = *marks[marked[m]];
    mark.reduced = left[m].has_value();
    mark.for_history = mark.reduced || (kept[m].has_value() && !kept[m]->empty());
  }
  return marks;
}

// A record that is damaged is nobody's any more: it may go, by whatever name.
absl::StatusOr<NamedKeysDone> ShareStore::ChangeNamed(
    absl::string_view what, absl::Span<const NamedKey> keys,
    absl::FunctionRef<absl::StatusOr<bool>(KvTxn&, const NamedKey&)> change, bool deletes) {
  NamedKeysDone done;
  RETURN_IF_ERROR(engine_->Write(what, [&](KvTxn& txn) -> absl::Status {
    done = {};
    absl::flat_hash_set<Handle> gone;
    for (const NamedKey& key : keys) {
      const absl::StatusOr<KeyInfo> info = InfoOf(txn, key.handle);
      if (absl::IsNotFound(info.status())) continue;
      if (!info.ok() && !absl::IsDataLoss(info.status())) return info.status();
      if (info.ok() && info->principal != key.principal) {
        done.refused.push_back({key.handle, absl::StrCat("it is a key of ", info->principal,
                                                         ", not of ", key.principal)});
        continue;
      }
      const absl::StatusOr<bool> changed = change(txn, key);
      if (absl::IsFailedPrecondition(changed.status())) {
        done.refused.push_back({key.handle, std::string(changed.status().message())});
        continue;
      }
      if (!changed.ok()) return changed.status();
      done.changed += *changed;
      if (deletes) gone.insert(key.handle);
    }
    return DropCopiesOf(txn, gone);
  }));
  return done;
}

absl::StatusOr<NamedKeysDone> ShareStore::Retire(absl::Span<const NamedKey> keys, absl::Time now) {
  return ChangeNamed("retire keys", keys, [now](KvTxn& txn, const NamedKey& key) {
    return MarkRetired(txn, key.handle, now, key.for_history);
  });
}

absl::StatusOr<NamedKeysDone> ShareStore::Restore(absl::Span<const NamedKey> keys) {
  return ChangeNamed(
      "restore keys", keys, [](KvTxn& txn, const NamedKey& key) -> absl::StatusOr<bool> {
        const absl::StatusOr<RetiredMark> mark = RetiredAt(txn, key.handle);
        if (mark.ok() && mark->reduced) {
          return absl::FailedPreconditionError(
              "its time is over, and what is left of it serves the password history alone");
        }
        return UnmarkRetired(txn, key.handle);
      });
}

absl::StatusOr<NamedKeysDone> ShareStore::DeleteNamed(absl::Span<const NamedKey> keys) {
  return ChangeNamed(
      "delete keys", keys,
      [](KvTxn& txn, const NamedKey& key) -> absl::StatusOr<bool> {
        RETURN_IF_ERROR(UnmarkRetired(txn, key.handle).status());
        RETURN_IF_ERROR(DeleteKey(txn, AsText(key.handle)));
        return true;
      },
      /*deletes=*/true);
}

absl::Status ShareStore::Reduce(KvTxn& txn, const EpochView& view, const Handle& handle) const {
  RETURN_IF_ERROR(MarkReduced(txn, handle));
  ASSIGN_OR_RETURN(KeyRecord record, OpenShares(handle, GetKey(txn, AsText(handle)), view));
  record.info.key_class = KeyClass::kHistory;
  record.usages.clear();
  return PutKey(txn, AsText(handle), SealKey(view.epoch, record));
}

// A mark without its key, as an older program's deletion leaves it, goes as well. A damaged record
// that is kept stays as it is.
absl::StatusOr<std::vector<CollectedKey>> ShareStore::CollectRetired(absl::Time before,
                                                                     size_t most) {
  std::vector<CollectedKey> collected;
  RETURN_IF_ERROR(engine_->Write("collect retired keys", [&](KvTxn& txn) -> absl::Status {
    collected.clear();
    ASSIGN_OR_RETURN(const EpochView view, ViewIn(txn));
    ASSIGN_OR_RETURN(const std::vector<RetiredKey> due, RetiredBefore(txn, before, most));
    absl::flat_hash_set<Handle> gone;
    for (const auto& [handle, for_history] : due) {
      absl::StatusOr<KeyInfo> info = InfoOf(txn, handle);
      const bool reduced = for_history && !absl::IsNotFound(info.status());
      absl::Status done;
      if (reduced) {
        done = Reduce(txn, view, handle);
        if (absl::IsDataLoss(done)) done = absl::OkStatus();
      } else {
        RETURN_IF_ERROR(UnmarkRetired(txn, handle).status());
        done = DeleteKey(txn, AsText(handle));
        gone.insert(handle);
      }
      if (absl::IsNotFound(done)) continue;
      RETURN_IF_ERROR(done);
      CollectedKey& key = collected.emplace_back();
      key.handle = handle;
      if (info.ok()) key.principal = std::move(info->principal);
      key.reduced = reduced;
    }
    return DropCopiesOf(txn, gone);
  }));
  return collected;
}

absl::Status ShareStore::ForEachRetired(const Handle& first, RetiredVisitor visit) const {
  ASSIGN_OR_RETURN(std::unique_ptr<const KvTxn> txn, engine_->BeginRead());
  return ScanRetired(*txn, first, [&](const Handle& handle, const RetiredMark& mark) {
    const absl::StatusOr<KeyInfo> info = InfoOf(*txn, handle);
    return absl::IsNotFound(info.status()) || visit(info, mark);
  });
}

absl::StatusOr<size_t> ShareStore::CountRetired() const {
  ASSIGN_OR_RETURN(std::unique_ptr<const KvTxn> txn, engine_->BeginRead());
  absl::StatusOr<size_t> entries = txn->Count(rf::kRetired);
  if (!entries.ok()) return entries;
  return *entries / 2;
}

}  // namespace mpckdc
