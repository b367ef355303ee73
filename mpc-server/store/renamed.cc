// SPDX-License-Identifier: Apache-2.0
//
// Keys that become another principal's. A record names its principal, and the three servers cannot
// change theirs at one moment: between them nobody could log in, under either name. So a key is not
// renamed but copied, under a handle that the database does not know yet, in a transaction like
// that of a new key (staging.h). Which of the two is the user's the database decides, by one write
// of its own, and the old one is then retired like any key that was replaced.
//
// A copy says of which key it is one, and whose the first of them was (its lineage). By that guesses
// at all of them are counted together, in whatever order they were made, by whichever machine, before
// or after a restart; a pre-auth is spent for all; it is not taken for a new password; and it is
// committed only while the old key is there and nobody had it deleted. A key that is deleted, or gets
// another gate, takes its staged copies along: else another key under its handle would let them in,
// or they would have one gate here and another there, and so the renaming fails.
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
#include "mpc-server/store/staging.h"

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
  record.copied = CopiedFrom{from, record.lineage(), record.replay_handle()};
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
      done.lineages.insert(record->lineage());
      records.push_back(*std::move(record));
    }
    done.staged = records.size();
    return records.empty() ? absl::OkStatus() : StageIn(txn, id, records, epoch, now);
  }));
  return done;
}

// By what is sealed, which the name of a staged record is not.
absl::Status ShareStore::CheckCopy(const KvTxn& txn, const EpochView& view, const Handle& handle,
                                   absl::string_view sealed) const {
  ASSIGN_OR_RETURN(const auto copied, CopiedOf(handle, AsBytes(sealed)));
  if (!copied.has_value()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const KeyRecord record, OpenShares(handle, AsBytes(sealed), view));
  const KeyInfo& copy = record.info;
  const absl::StatusOr<KeyInfo> old = InfoOf(txn, copied->handle);
  if (absl::IsNotFound(old.status())) {
    return absl::FailedPreconditionError(absl::StrCat(
        "key ", HandleText(copied->handle), " was deleted while it was renamed to ",
        copy.principal));
  }
  RETURN_IF_ERROR(old.status());
  // Where the copy was staged by a version whose names do not say of which key it is one.
  if (old->gate != copy.gate) {
    return absl::FailedPreconditionError(absl::StrCat(
        "key ", HandleText(copied->handle), " got another gate while it was renamed to ",
        copy.principal));
  }
  return CheckNotRetired(txn, copied->handle, old->principal,
                         copy.key_class == KeyClass::kHistory);
}

absl::Status ShareStore::DropCopiesOf(KvTxn& txn, const absl::flat_hash_set<Handle>& gone) const {
  if (gone.empty()) return absl::OkStatus();
  std::vector<std::string> copies;
  RETURN_IF_ERROR(txn.ScanNames(rf::kStaged, "", [&](absl::string_view key) {
    const std::optional<StagedName> name = ParseStagedKey(key);
    if (name.has_value() && name->copied && gone.contains(*name->copied)) copies.emplace_back(key);
    return true;
  }));
  for (const std::string& key : copies) RETURN_IF_ERROR(txn.Delete(rf::kStaged, key));
  return absl::OkStatus();
}

}  // namespace mpckdc
