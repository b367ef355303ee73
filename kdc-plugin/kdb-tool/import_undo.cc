// SPDX-License-Identifier: Apache-2.0
//
// The end of an import: it is taken back, or committed.
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "kdc-plugin/kdb-tool/import_record.h"
#include "kdc-plugin/kdb-tool/import_session.h"
#include "kdc-plugin/kdb-tool/lines.h"
#include "mpc-server/base/status_macros.h"

extern "C" {
#include "kdc-plugin/kdb-module/handles.h"
}

namespace mpckdc::kdbtool {

using nlohmann::json;

absl::Status ImportSession::Forget(const std::vector<std::string>& principals) {
  for (const std::string& name : principals) {
    if (names_.Has(name)) forgotten_.insert(name);
  }
  return names_.Remove({forgotten_.begin(), forgotten_.end()});
}

absl::Status ImportSession::Remember() {
  const std::vector<std::string> names = std::exchange(to_remember_, {});
  return names_.Add(names);
}

absl::StatusOr<json> ImportSession::Rollback(const std::string& principal) {
  absl::StatusOr<json> answer = RollBackEntry(principal);
  if (!answer.ok() && forgotten_.count(principal) > 0) to_remember_.push_back(principal);
  return answer;
}

absl::StatusOr<std::vector<std::string>> ImportSession::Uncommitted() {
  struct Walk {
    krb5_context context;
    std::vector<std::string> names;
  } walk = {target().context(), {}};
  const krb5_error_code code = krb5_db_iterate(
      target().context(), nullptr,
      +[](krb5_pointer arg, krb5_db_entry* entry) -> int {
        auto* w = static_cast<Walk*>(arg);
        if (ReadRecord(entry).has_value()) {
          w->names.push_back(UnparsedName(w->context, entry->princ));
        }
        return 0;
      },
      &walk, 0);
  if (code != 0) return target().Error(code, "reading the database");
  return std::move(walk.names);
}

absl::StatusOr<json> ImportSession::RollBackEntry(const std::string& principal) {
  ASSIGN_OR_RETURN(EntryPtr entry, GetHere(principal));
  const std::optional<ImportRecord> record = ReadRecord(entry.get());
  if (!record.has_value()) {
    return absl::FailedPreconditionError("it was not imported, or that was committed");
  }
  if (record->written != FingerprintOf(entry.get())) {
    return absl::FailedPreconditionError(
        "it has got new keys since it was imported, and keeps them");
  }
  json handles = json::array();
  handle_list list = {nullptr, 0};
  if (handle_list_of(entry.get(), nullptr, &list) != 0) {
    return absl::ResourceExhaustedError("out of memory");
  }
  absl::Cleanup release = [&] { handle_list_free(&list); };
  const auto add = [&](const uint8_t* handle) {
    handles.push_back(ToHex(std::string(reinterpret_cast<const char*>(handle), kHandleBytes)));
  };
  for (size_t i = 0; i < list.count; ++i) add(list.handles[i]);
  const std::optional<KadmData> data =
      ParseKadmData(TlDataOf(entry.get(), KRB5_TL_KADM_DATA));
  for (const OldPassword& password : data.value_or(KadmData{}).old) {
    for (const OldKey& old : password) {
      krb5_key_data form = {};
      form.key_data_length[0] = static_cast<krb5_ui_2>(old.contents.size());
      form.key_data_contents[0] =
          reinterpret_cast<krb5_octet*>(const_cast<char*>(old.contents.data()));
      if (handle_in(&form) != nullptr) add(handle_in(&form));
    }
  }
  const json answer = {{"handles", handles}};
  if (!record->converted) {
    const krb5_error_code code = krb5_db_delete_principal(target().context(), entry->princ);
    if (code != 0) return target().Error(code, "deleting the entry");
    return answer;
  }
  RETURN_IF_ERROR(PutKeys(record->keys, entry.get()));
  if (record->kadm_data.empty()) {
    RemoveTlData(KRB5_TL_KADM_DATA, entry.get());
  } else {
    RETURN_IF_ERROR(
        PutTlData(target().context(), KRB5_TL_KADM_DATA, record->kadm_data, entry.get()));
  }
  RemoveTlData(kImportTlType, entry.get());
  RETURN_IF_ERROR(Put(entry.get(), /*fresh=*/false));
  return answer;
}

absl::Status ImportSession::Commit(const std::string& principal) {
  ASSIGN_OR_RETURN(EntryPtr entry, GetHere(principal));
  if (!ReadRecord(entry.get()).has_value()) return absl::OkStatus();
  RemoveTlData(kImportTlType, entry.get());
  return Put(entry.get(), /*fresh=*/false);
}

}  // namespace mpckdc::kdbtool
