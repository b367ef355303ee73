// SPDX-License-Identifier: Apache-2.0
//
// Entries that an import writes: handles in place of the keys that are on the servers.
#include <krb5/remote_key_plugin.h>
#include <string.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "kdc-plugin/kdb-tool/import_record.h"
#include "kdc-plugin/kdb-tool/import_session.h"
#include "mpc-server/base/status_macros.h"

extern "C" {
#include "kdc-plugin/kdb-module/handles.h"
}

namespace mpckdc::kdbtool {
namespace {

// The contents of key data that name a handle, as handle_put() makes them.
std::string HandleContents(const std::string& handle) {
  krb5_key_data data = {};
  if (handle_put(&data, reinterpret_cast<const uint8_t*>(handle.data())) != 0) return "";
  std::string contents(reinterpret_cast<char*>(data.key_data_contents[0]),
                       data.key_data_length[0]);
  free(data.key_data_contents[0]);
  return contents;
}

// The default salt is not written down.
StoredKey ToStored(const ImportedKey& key) {
  StoredKey stored;
  stored.kvno = key.kvno;
  stored.parts.push_back({key.form.enctype, HandleContents(key.form.handle)});
  if (key.form.salt_type > 0) stored.parts.push_back({key.form.salt_type, key.form.salt});
  return stored;
}

// kldap writes the policy and the old passwords, which it keeps in attributes of their own, only
// where the mask names them; a load that names no policy removes the one that there is. It takes a
// policy that is named and missing for an error, so this asks what `kdb5_util load` asks. It cannot
// write an old password without keys.
krb5_ui_4 MaskOfKadmData(const krb5_db_entry* entry) {
  const std::optional<KadmData> data = ParseKadmData(TlDataOf(entry, KRB5_TL_KADM_DATA));
  if (!data.has_value()) return 0;
  krb5_ui_4 mask = 0;
  if ((data->attributes & KADM5_POLICY) != 0 && !data->policy.empty()) mask |= KADM5_POLICY;
  const auto has_none = [](const OldPassword& password) { return password.empty(); };
  if (!data->old.empty() && std::none_of(data->old.begin(), data->old.end(), has_none)) {
    mask |= KADM5_KEY_HIST;
  }
  return mask;
}

}  // namespace

// As `kdb5_util load` does, which is believed to bring keys of any kind (kdb-module/guard.h):
// nothing is deleted on the servers, and nothing of the entry is changed on the way.
absl::Status ImportSession::Put(krb5_db_entry* entry, bool fresh) {
  entry->mask = KADM5_LOAD | KADM5_KEY_DATA | KADM5_TL_DATA | KADM5_ATTRIBUTES |
                MaskOfKadmData(entry);
  if (fresh) {
    entry->mask |= KADM5_PRINCIPAL | KADM5_PRINC_EXPIRE_TIME | KADM5_MAX_LIFE | KADM5_MAX_RLIFE |
                   KADM5_PW_EXPIRATION | KADM5_LAST_SUCCESS | KADM5_LAST_FAILED |
                   KADM5_FAIL_AUTH_COUNT;
  }
  const krb5_error_code code = krb5_db_put_principal(target().context(), entry);
  return code == 0 ? absl::OkStatus() : target().Error(code, "writing the entry");
}

// The old passwords, each with the handles of its keys; one that has none keeps its place, but in a
// directory, which takes none without keys. kldap reads passwords with the oldest first.
absl::Status ImportSession::PutHistory(const ImportedPrincipal& principal, krb5_db_entry* entry) {
  std::optional<KadmData> data = ParseKadmData(TlDataOf(entry, KRB5_TL_KADM_DATA));
  if (!data.has_value()) {
    return absl::FailedPreconditionError("its policy and password history are not understood");
  }
  if (data->old.empty()) return absl::OkStatus();
  for (size_t i = 0; i < data->old.size(); ++i) {
    data->old[i].clear();
    if (i >= principal.history.size()) continue;
    for (const ImportedKey& key : principal.history[i]) {
      OldKey& old = data->old[i].emplace_back();
      old.version = key.form.salt_type > 0 ? 2 : 1;
      old.kvno = key.kvno;
      old.enctype = key.form.enctype;
      old.contents = HandleContents(key.form.handle);
      if (key.form.salt_type <= 0) continue;
      old.salt_type = key.form.salt_type;
      old.salt = key.form.salt;
    }
  }
  if (strcmp(config_->wrapped, "kldap") == 0) {
    std::erase_if(data->old, [](const OldPassword& password) { return password.empty(); });
    data->next = static_cast<uint32_t>(data->old.size());
  }
  return PutTlData(target().context(), KRB5_TL_KADM_DATA, SerializeKadmData(*data), entry);
}

// Turns an entry with real keys into one with handles and a record of how it was.
absl::Status ImportSession::PutHandles(const ImportedPrincipal& principal, krb5_db_entry* entry) {
  if (FingerprintOf(entry) != principal.was) {
    return absl::AbortedError("its keys were changed just now: run the same command again");
  }
  ImportRecord record;
  record.converted = converts_;
  if (converts_) {
    record.keys = KeysOf(entry);
    record.kadm_data = TlDataOf(entry, KRB5_TL_KADM_DATA);
  }
  std::vector<StoredKey> keys;
  for (const ImportedKey& key : principal.keys) keys.push_back(ToStored(key));
  RETURN_IF_ERROR(PutKeys(keys, entry));
  RETURN_IF_ERROR(PutHistory(principal, entry));
  record.written = FingerprintOf(entry);
  return PutTlData(target().context(), kImportTlType, SerializeRecord(record), entry);
}

absl::Status ImportSession::Write(const ImportedPrincipal& principal) {
  if (principal.old_tgs) return WriteOldTgs(principal);
  absl::StatusOr<EntryPtr> here = GetHere(principal.principal);
  if (converts_) {
    RETURN_IF_ERROR(here.status());
    RETURN_IF_ERROR(PutHandles(principal, here->get()));
    return Put(here->get(), /*fresh=*/false);
  }
  if (here.ok()) return absl::AlreadyExistsError("it is in the new database already");
  if (!absl::IsNotFound(here.status())) return here.status();
  ASSIGN_OR_RETURN(EntryPtr entry, source_->Get(principal.principal));
  RETURN_IF_ERROR(PutHandles(principal, entry.get()));
  RemoveTlData(KRB5_TL_MKVNO, entry.get());
  RETURN_IF_ERROR(Put(entry.get(), /*fresh=*/true));
  to_remember_.push_back(principal.principal);
  return absl::OkStatus();
}

// Old keys beside the drawn one, which must be newer than all of them: it alone seals.
absl::Status ImportSession::WriteOldTgs(const ImportedPrincipal& principal) {
  ASSIGN_OR_RETURN(EntryPtr entry, GetHere(principal.principal));
  uint32_t newest_old = 0;
  for (const ImportedKey& key : principal.keys) newest_old = std::max(newest_old, key.kvno);
  std::vector<StoredKey> keys;
  for (StoredKey& key : KeysOf(entry.get())) {
    if (key.kvno > newest_old) keys.push_back(std::move(key));
  }
  if (keys.empty()) {
    return absl::FailedPreconditionError(
        "the servers have not drawn a key that is newer than the old ones");
  }
  for (const ImportedKey& key : principal.keys) keys.push_back(ToStored(key));
  RETURN_IF_ERROR(PutKeys(keys, entry.get()));
  RETURN_IF_ERROR(PutTlData(target().context(), kImportedTgsTlType, "\1", entry.get()));
  return Put(entry.get(), /*fresh=*/false);
}

}  // namespace mpckdc::kdbtool
