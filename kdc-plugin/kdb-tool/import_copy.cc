// SPDX-License-Identifier: Apache-2.0
//
// What is copied into a database that was made anew: policies, and entries whose keys are encrypted
// under the new master key.
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "kdc-plugin/kdb-tool/import_record.h"
#include "kdc-plugin/kdb-tool/import_session.h"
#include "mpc-server/base/status_macros.h"

extern "C" {
#include "kdc-plugin/kdb-module/classify.h"
}

namespace mpckdc::kdbtool {
namespace {

using nlohmann::json;

bool SamePolicy(const osa_policy_ent_rec& a, const osa_policy_ent_rec& b) {
  const auto text = [](const char* s) { return std::string(s == nullptr ? "" : s); };
  return a.pw_min_life == b.pw_min_life && a.pw_max_life == b.pw_max_life &&
         a.pw_min_length == b.pw_min_length && a.pw_min_classes == b.pw_min_classes &&
         a.pw_history_num == b.pw_history_num && a.pw_max_fail == b.pw_max_fail &&
         a.pw_failcnt_interval == b.pw_failcnt_interval &&
         a.pw_lockout_duration == b.pw_lockout_duration && a.attributes == b.attributes &&
         a.max_life == b.max_life && a.max_renewable_life == b.max_renewable_life &&
         text(a.allowed_keysalts) == text(b.allowed_keysalts);
}

}  // namespace

absl::StatusOr<json> ImportSession::CopyPolicies() {
  if (source_ == nullptr) return json{{"different", json::array()}};
  // Names first: db2 has one lock for all databases of a process.
  std::vector<std::string> names;
  RETURN_IF_ERROR(source_->ForEachPolicy(
      [&](osa_policy_ent_t policy) { names.emplace_back(policy->name); }));
  json different = json::array();
  for (std::string& name : names) {
    ASSIGN_OR_RETURN(const bool same, CopyPolicy(name.data()));
    if (!same) different.push_back(name);
  }
  return json{{"different", different}};
}

// False: there is another one of this name.
absl::StatusOr<bool> ImportSession::CopyPolicy(char* name) {
  osa_policy_ent_t there = nullptr, here = nullptr;
  krb5_error_code code = krb5_db_get_policy(source_->context(), name, &there);
  if (code != 0) return source_->Error(code, absl::StrCat("policy ", name));
  absl::Cleanup free_there = [&] { krb5_db_free_policy(source_->context(), there); };
  if (krb5_db_get_policy(target().context(), name, &here) == 0) {
    absl::Cleanup free_here = [&] { krb5_db_free_policy(target().context(), here); };
    return SamePolicy(*there, *here);
  }
  code = krb5_db_create_policy(target().context(), there);
  if (code != 0) return target().Error(code, absl::StrCat("policy ", name));
  return true;
}

// The one that is in use now.
absl::Status ImportSession::FindMasterKey(krb5_kvno* kvno, krb5_keyblock** key) {
  krb5_context context = target().context();
  krb5_principal name = nullptr;
  krb5_actkvno_node* list = nullptr;
  krb5_error_code code = krb5_db_setup_mkey_name(context, target().params().mkey_name,
                                                 target().params().realm, nullptr, &name);
  if (code == 0) code = krb5_dbe_fetch_act_key_list(context, name, &list);
  if (code == 0) code = krb5_dbe_find_act_mkey(context, list, kvno, key);
  krb5_dbe_free_actkvno_list(context, list);
  krb5_free_principal(context, name);
  return code == 0 ? absl::OkStatus() : target().Error(code, "finding the new master key");
}

absl::Status ImportSession::ReencryptKeys(const krb5_db_entry* source, krb5_db_entry* entry) {
  krb5_kvno mkvno = 0;
  krb5_keyblock* master = nullptr;
  RETURN_IF_ERROR(FindMasterKey(&mkvno, &master));
  krb5_error_code code = 0;
  for (int i = 0; i < source->n_key_data; ++i) {
    krb5_key_data& data = entry->key_data[i];
    ASSIGN_OR_RETURN(KeyblockPtr key, source_->Decrypt(source, source->key_data[i]));
    krb5_keysalt salt = {};
    const bool salted = data.key_data_ver > 1;
    salt.type = salted ? data.key_data_type[1] : static_cast<krb5_int16>(KRB5_KDB_SALTTYPE_NORMAL);
    const std::string bytes =
        salted ? std::string(reinterpret_cast<char*>(data.key_data_contents[1]),
                             data.key_data_length[1])
               : "";
    salt.data.data = const_cast<char*>(bytes.data());
    salt.data.length = static_cast<unsigned int>(bytes.size());
    code = krb5_dbe_def_encrypt_key_data(target().context(), master, key.get(), &salt,
                                         data.key_data_kvno, &data);
    if (code != 0) return target().Error(code, "encrypting a key");
  }
  code = krb5_dbe_update_mkvno(target().context(), entry, mkvno);
  return code == 0 ? absl::OkStatus() : target().Error(code, "naming the master key");
}

// kadmin/history is replaced: the old passwords of those who are not protected are under it.
absl::Status ImportSession::Copy(const std::string& principal, bool bare) {
  absl::StatusOr<EntryPtr> here = GetHere(principal);
  ASSIGN_OR_RETURN(EntryPtr source, source_->Get(principal));
  const bool replaces = is_history_principal(source->princ) != 0;
  if (here.ok() && !replaces) return absl::AlreadyExistsError("it is in the new database already");
  if (!here.ok() && !absl::IsNotFound(here.status())) return here.status();
  ASSIGN_OR_RETURN(EntryPtr entry, source_->Get(principal));
  if (bare) {
    RETURN_IF_ERROR(PutKeys({}, entry.get()));
    RemoveTlData(KRB5_TL_MKVNO, entry.get());
  } else {
    RETURN_IF_ERROR(ReencryptKeys(source.get(), entry.get()));
  }
  RETURN_IF_ERROR(Put(entry.get(), /*fresh=*/!here.ok()));
  to_remember_.push_back(principal);
  return absl::OkStatus();
}

}  // namespace mpckdc::kdbtool
