// SPDX-License-Identifier: Apache-2.0
//
// Keys that become another principal's. A record names its principal, and the three servers cannot
// change theirs at one moment: between them nobody could log in, under either name. So a key is not
// renamed but copied, under a handle that the database does not know yet, in a transaction like
// that of a new key (staging.h). Which of the two is the user's the database decides, by one write
// of its own, and the old one is then retired like any key that was replaced.
//
// A copy says of which key it is one, and whose the first of them was. By that guesses at all of them
// are counted together, in whatever order they were made, by whichever machine, before or after a
// restart; it is not taken for a new password; and it is committed only while the old key is there
// and nobody had it deleted. What is deleted takes its staged copies along, or another key under its
// handle would let them in.
//
// A copy's shares are those of the old key at that moment. A refresh adds zeros to each record that
// depend on its handle, so all three servers must copy in the same share epoch: one that has left it
// refuses, and the caller begins anew.
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/store/key_table.h"
#include "mpc-server/store/retired.h"
#include "mpc-server/store/share_store.h"

namespace mpckdc {
namespace {

namespace rf = record_format;

// What an administrator takes back he may rename: a deleted key is not revived by its new name, nor
// kept for comparisons unless it is kept so itself.
absl::Status CheckNotRetired(const KvTxn& txn, const Handle& handle, absl::string_view principal,
                             bool for_history) {
  const absl::StatusOr<RetiredMark> retired = RetiredAt(txn, handle);
  if (absl::IsNotFound(retired.status())) return absl::OkStatus();
  RETURN_IF_ERROR(retired.status());
  if (for_history && retired->for_history) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("key ", HandleText(handle), " of ", principal,
                   " was deleted; the database that names it is older (mpc-admin doctor): load the "
                   "newest dump, or say mpc-admin gc --keep"));
}

}  // namespace

absl::StatusOr<KeyRecord> ShareStore::RenamedIn(const KvTxn& txn, const EpochView& view,
                                                const RenamedKey& key,
                                                const std::string& principal) const {
  const Handle& from = key.from.handle;
  ASSIGN_OR_RETURN(KeyRecord record, OpenShares(from, GetKey(txn, AsText(from)), view));
  KeyInfo& info = record.info;
  if (info.principal != key.from.principal) {
    return absl::PermissionDeniedError(absl::StrCat("key ", HandleText(from), " is one of ",
                                                    info.principal, ", not of ",
                                                    key.from.principal));
  }
  RETURN_IF_ERROR(CheckRename(info, principal, sealer_.identity().realm));
  if (info.key_class == KeyClass::kHistory && !key.from.for_history) {
    return absl::FailedPreconditionError(absl::StrCat(
        "what is left of key ", HandleText(from), " serves the password history alone"));
  }
  RETURN_IF_ERROR(CheckNotRetired(txn, from, info.principal, key.from.for_history));
  if (key.from.for_history) {
    info.key_class = KeyClass::kHistory;
    record.usages.clear();
  }
  record.copied = CopiedFrom{from, record.first_owner()};
  info.handle = key.to;
  info.principal = principal;
  info.principal_id = PrincipalIdOf(principal);
  info.salt_type = key.salt_type;
  info.salt = key.salt;
  return record;
}

absl::StatusOr<RenamedKeys> ShareStore::StageRenamed(const TransactionId& id,
                                                     absl::Span<const RenamedKey> keys,
                                                     const std::string& principal, uint64_t epoch,
                                                     absl::Time now) {
  RenamedKeys done;
  RETURN_IF_ERROR(engine_->Write("stage renamed keys", [&](KvTxn& txn) -> absl::Status {
    done = {};
    ASSIGN_OR_RETURN(const EpochView view, ViewIn(txn));
    if (epoch != view.epoch) {
      return absl::AbortedError(absl::StrCat("keys were to be copied in share epoch ", epoch,
                                             ", this server is in epoch ", view.epoch,
                                             ": they were refreshed meanwhile; do it again"));
    }
    std::vector<KeyRecord> records;
    std::set<Handle> seen;
    for (const RenamedKey& key : keys) {
      absl::StatusOr<KeyRecord> record = RenamedIn(txn, view, key, principal);
      if (key.from.for_history && absl::IsNotFound(record.status())) {
        done.unknown.push_back(key.from.handle);
        continue;
      }
      RETURN_IF_ERROR(record.status());
      if (absl::Status s = CheckKeyRecord(*record); !s.ok()) {
        return absl::InvalidArgumentError(s.message());
      }
      if (!seen.insert(key.to).second) {
        return absl::InvalidArgumentError(
            absl::StrCat("key ", HandleText(key.to), " is given twice"));
      }
      done.first_owners.insert(record->first_owner());
      records.push_back(*std::move(record));
    }
    done.staged = records.size();
    return records.empty() ? absl::OkStatus() : StageIn(txn, id, records, epoch, now);
  }));
  return done;
}

absl::Status ShareStore::RenewCopy(const KvTxn& txn, const EpochView& view, const Handle& handle,
                                   std::string* sealed) const {
  ASSIGN_OR_RETURN(const auto copied, CopiedOf(handle, AsBytes(*sealed)));
  if (!copied.has_value()) return absl::OkStatus();
  ASSIGN_OR_RETURN(KeyRecord copy, OpenShares(handle, AsBytes(*sealed), view));
  const absl::StatusOr<KeyInfo> old = InfoOf(txn, copied->handle);
  if (absl::IsNotFound(old.status())) {
    return absl::FailedPreconditionError(absl::StrCat(
        "key ", HandleText(copied->handle), " was deleted while it was renamed to ",
        copy.info.principal));
  }
  RETURN_IF_ERROR(old.status());
  RETURN_IF_ERROR(CheckNotRetired(txn, copied->handle, old->principal,
                                  copy.info.key_class == KeyClass::kHistory));
  copy.info.gate = old->gate;
  *sealed = SealKey(view.epoch, copy);
  return absl::OkStatus();
}

absl::Status ShareStore::DropCopiesOf(KvTxn& txn, const absl::flat_hash_set<Handle>& gone) const {
  if (gone.empty()) return absl::OkStatus();
  std::vector<std::string> copies;
  absl::Status result;
  absl::Status scanned =
      txn.Scan(rf::kStaged, "", [&](absl::string_view key, absl::Span<const uint8_t> sealed) {
        Handle handle{};
        ByteReader(AsBytes(key.substr(sizeof(TransactionId)))).Into(handle);
        const auto copied = CopiedOf(handle, sealed);
        // One that is damaged is never committed.
        if (!copied.ok() && !absl::IsDataLoss(copied.status())) result = copied.status();
        if (copied.ok() && copied->has_value() && gone.contains((*copied)->handle)) {
          copies.emplace_back(key);
        }
        return result.ok();
      });
  result.Update(scanned);
  RETURN_IF_ERROR(result);
  for (const std::string& key : copies) RETURN_IF_ERROR(txn.Delete(rf::kStaged, key));
  return absl::OkStatus();
}

}  // namespace mpckdc
