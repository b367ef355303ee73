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

absl::StatusOr<absl::Time> TimeOf(absl::Span<const uint8_t> value) {
  if (value.size() != rf::kRetiredTimeBytes) return DamagedMark();
  return absl::FromUnixMicros(static_cast<int64_t>(ByteReader(value).Uint(rf::kRetiredTimeBytes)));
}

}  // namespace

// ---- Marks ----

absl::StatusOr<absl::Time> RetiredAt(const KvTxn& txn, const Handle& handle) {
  ASSIGN_OR_RETURN(absl::Span<const uint8_t> value, txn.Get(rf::kRetired, ByHandle(handle)));
  return TimeOf(value);
}

absl::StatusOr<bool> MarkRetired(KvTxn& txn, const Handle& handle, absl::Time now) {
  const absl::Status old = RetiredAt(txn, handle).status();
  if (old.ok()) return false;
  if (!absl::IsNotFound(old)) return old;
  const std::string time = TimeBytes(now);
  RETURN_IF_ERROR(txn.Put(rf::kRetired, ByHandle(handle), time));
  RETURN_IF_ERROR(txn.Put(rf::kRetired, ByTime(time, handle), ""));
  return true;
}

absl::StatusOr<bool> UnmarkRetired(KvTxn& txn, const Handle& handle) {
  const absl::StatusOr<absl::Time> time = RetiredAt(txn, handle);
  if (absl::IsNotFound(time.status())) return false;
  if (!time.ok()) return time.status();
  RETURN_IF_ERROR(txn.Delete(rf::kRetired, ByHandle(handle)));
  const absl::Status s = txn.Delete(rf::kRetired, ByTime(TimeBytes(*time), handle));
  if (!s.ok() && !absl::IsNotFound(s)) return s;
  return true;
}

absl::StatusOr<std::vector<Handle>> RetiredBefore(const KvTxn& txn, absl::Time before,
                                                  size_t most) {
  const std::string end = absl::StrCat(std::string(1, rf::kRetiredByTime), TimeBytes(before));
  std::vector<Handle> found;
  absl::Status result;
  absl::Status scanned =
      txn.Scan(rf::kRetired, std::string(1, rf::kRetiredByTime), [&](absl::string_view key, auto) {
        if (key >= end || found.size() == most) return false;
        if (key.size() != rf::kRetiredByTimeBytes) result = DamagedMark();
        if (!result.ok()) return false;
        ByteReader(AsBytes(key.substr(1 + rf::kRetiredTimeBytes))).Into(found.emplace_back());
        return true;
      });
  result.Update(scanned);
  if (!result.ok()) return result;
  return found;
}

absl::Status ScanRetired(const KvTxn& txn, const Handle& first,
                         absl::FunctionRef<bool(const Handle&, absl::Time)> visit) {
  absl::Status result;
  absl::Status scanned = txn.Scan(
      rf::kRetired, ByHandle(first), [&](absl::string_view key, absl::Span<const uint8_t> value) {
        if (key.front() != rf::kRetiredByHandle) return false;
        Handle handle;
        const absl::StatusOr<absl::Time> time = TimeOf(value);
        result = key.size() == 1 + handle.size() ? time.status() : DamagedMark();
        if (!result.ok()) return false;
        ByteReader(AsBytes(key.substr(1))).Into(handle);
        return visit(handle, *time);
      });
  result.Update(scanned);
  return result;
}

// ---- What the store does with them ----

absl::StatusOr<std::vector<std::optional<absl::Time>>> ShareStore::RetiredSince(
    absl::Span<const Handle> handles) const {
  std::vector<std::string> keys;
  keys.reserve(handles.size());
  for (const Handle& handle : handles) keys.push_back(ByHandle(handle));
  ASSIGN_OR_RETURN(std::unique_ptr<const KvTxn> txn, engine_->BeginRead());
  ASSIGN_OR_RETURN(const KvTxn::Values values, txn->GetMany(rf::kRetired, keys));
  std::vector<std::optional<absl::Time>> since(handles.size());
  for (size_t i = 0; i < handles.size(); ++i) {
    if (!values[i].has_value()) continue;
    if (const absl::StatusOr<absl::Time> time = TimeOf(AsBytes(*values[i])); time.ok()) {
      since[i] = *time;
    }
  }
  return since;
}

// A record that is damaged is nobody's any more: it may go, by whatever name.
absl::StatusOr<NamedKeysDone> ShareStore::ChangeNamed(
    absl::string_view what, absl::Span<const NamedKey> keys,
    absl::FunctionRef<absl::StatusOr<bool>(KvTxn&, const Handle&)> change) {
  NamedKeysDone done;
  RETURN_IF_ERROR(engine_->Write(what, [&](KvTxn& txn) -> absl::Status {
    done = {};
    for (const NamedKey& key : keys) {
      const absl::StatusOr<KeyInfo> info = InfoOf(txn, key.handle);
      if (absl::IsNotFound(info.status())) continue;
      if (!info.ok() && !absl::IsDataLoss(info.status())) return info.status();
      if (info.ok() && info->principal != key.principal) {
        done.refused.push_back({key.handle, absl::StrCat("it is a key of ", info->principal,
                                                         ", not of ", key.principal)});
        continue;
      }
      ASSIGN_OR_RETURN(bool changed, change(txn, key.handle));
      done.changed += changed;
    }
    return absl::OkStatus();
  }));
  return done;
}

absl::StatusOr<NamedKeysDone> ShareStore::Retire(absl::Span<const NamedKey> keys, absl::Time now) {
  return ChangeNamed("retire keys", keys, [now](KvTxn& txn, const Handle& handle) {
    return MarkRetired(txn, handle, now);
  });
}

absl::StatusOr<NamedKeysDone> ShareStore::Restore(absl::Span<const NamedKey> keys) {
  return ChangeNamed("restore keys", keys, UnmarkRetired);
}

absl::StatusOr<NamedKeysDone> ShareStore::DeleteNamed(absl::Span<const NamedKey> keys) {
  return ChangeNamed("delete keys", keys,
                     [](KvTxn& txn, const Handle& handle) -> absl::StatusOr<bool> {
                       RETURN_IF_ERROR(UnmarkRetired(txn, handle).status());
                       RETURN_IF_ERROR(DeleteKey(txn, AsText(handle)));
                       return true;
                     });
}

// A mark without its key, as an older program's deletion leaves it, goes as well.
absl::StatusOr<std::vector<NamedKey>> ShareStore::CollectRetired(absl::Time before, size_t most) {
  std::vector<NamedKey> collected;
  RETURN_IF_ERROR(engine_->Write("collect retired keys", [&](KvTxn& txn) -> absl::Status {
    collected.clear();
    ASSIGN_OR_RETURN(const std::vector<Handle> due, RetiredBefore(txn, before, most));
    for (const Handle& handle : due) {
      absl::StatusOr<KeyInfo> info = InfoOf(txn, handle);
      RETURN_IF_ERROR(UnmarkRetired(txn, handle).status());
      const absl::Status deleted = DeleteKey(txn, AsText(handle));
      if (absl::IsNotFound(deleted)) continue;
      RETURN_IF_ERROR(deleted);
      collected.push_back({handle, info.ok() ? std::move(info->principal) : ""});
    }
    return absl::OkStatus();
  }));
  return collected;
}

absl::Status ShareStore::ForEachRetired(const Handle& first, RetiredVisitor visit) const {
  ASSIGN_OR_RETURN(std::unique_ptr<const KvTxn> txn, engine_->BeginRead());
  return ScanRetired(*txn, first, [&](const Handle& handle, absl::Time time) {
    const absl::StatusOr<KeyInfo> info = InfoOf(*txn, handle);
    return absl::IsNotFound(info.status()) || visit(info, time);
  });
}

absl::StatusOr<size_t> ShareStore::CountRetired() const {
  ASSIGN_OR_RETURN(std::unique_ptr<const KvTxn> txn, engine_->BeginRead());
  absl::StatusOr<size_t> entries = txn->Count(rf::kRetired);
  if (!entries.ok()) return entries;
  return *entries / 2;
}

}  // namespace mpckdc
