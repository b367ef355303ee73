// SPDX-License-Identifier: Apache-2.0
#include "kdc-plugin/kdb-tool/source_db.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc::kdbtool {
namespace {

constexpr char kProfileVariable[] = "KRB5_KDC_PROFILE";

// While it lives, libkrb5's new contexts read another kdc.conf.
class OtherProfile {
 public:
  explicit OtherProfile(const std::string& path) {
    const char* before = getenv(kProfileVariable);
    if (before != nullptr) before_ = before;
    setenv(kProfileVariable, path.c_str(), 1);
  }
  ~OtherProfile() {
    if (before_.has_value()) {
      setenv(kProfileVariable, before_->c_str(), 1);
    } else {
      unsetenv(kProfileVariable);
    }
  }

 private:
  std::optional<std::string> before_;
};

}  // namespace

std::string UnparsedName(krb5_context context, krb5_const_principal principal) {
  char* text = nullptr;
  if (krb5_unparse_name(context, principal, &text) != 0) return "";
  std::string name = text;
  krb5_free_unparsed_name(context, text);
  return name;
}

std::vector<krb5_key_salt_tuple> ParseKeySalts(const char* text) {
  std::vector<krb5_key_salt_tuple> list;
  for (absl::string_view pair : absl::StrSplit(text, absl::ByAnyChar(", \t"), absl::SkipEmpty())) {
    const std::vector<std::string> parts = absl::StrSplit(pair, ':');
    krb5_key_salt_tuple tuple = {0, KRB5_KDB_SALTTYPE_NORMAL};
    std::string enctype = parts[0];
    if (krb5_string_to_enctype(enctype.data(), &tuple.ks_enctype) != 0) continue;
    if (parts.size() > 1) {
      std::string salt_type = parts[1];
      if (krb5_string_to_salttype(salt_type.data(), &tuple.ks_salttype) != 0) continue;
    }
    list.push_back(tuple);
  }
  return list;
}

absl::Status SourceDb::Error(long code, const std::string& what) {
  const char* text = krb5_get_error_message(context_, static_cast<krb5_error_code>(code));
  const std::string message = absl::StrCat("the realm to be imported: ", what, ": ", text);
  krb5_free_error_message(context_, text);
  return code == KRB5_KDB_NOENTRY ? absl::NotFoundError(message)
                                  : absl::FailedPreconditionError(message);
}

absl::StatusOr<std::unique_ptr<SourceDb>> SourceDb::Open(const std::string& profile,
                                                         const std::string& realm) {
  if (access(profile.c_str(), R_OK) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(profile, " cannot be read: it should be the imported realm's own kdc.conf"));
  }
  auto db = std::unique_ptr<SourceDb>(new SourceDb);
  const OtherProfile other(profile);
  long code = kadm5_init_krb5_context(&db->context_);
  if (code != 0) {
    return absl::FailedPreconditionError(absl::StrCat("cannot read krb5.conf and ", profile));
  }
  kadm5_config_params wanted = {};
  if (!realm.empty()) {
    wanted.mask = KADM5_CONFIG_REALM;
    wanted.realm = const_cast<char*>(realm.c_str());
    code = krb5_set_default_realm(db->context_, realm.c_str());
    if (code != 0) return db->Error(code, realm);
  }
  code = kadm5_get_config_params(db->context_, 1, &wanted, &db->params_);
  if (code == 0) code = krb5_set_default_realm(db->context_, db->params_.realm);
  if (code != 0) return db->Error(code, profile);
  code = krb5_db_open(db->context_, nullptr, KRB5_KDB_OPEN_RO | KRB5_KDB_SRV_TYPE_OTHER);
  if (code != 0) return db->Error(code, absl::StrCat("opening the database of ", profile));
  db->open_ = true;
  code = krb5_db_setup_mkey_name(db->context_, db->params_.mkey_name, db->params_.realm, nullptr,
                                 &db->master_);
  if (code != 0) return db->Error(code, "naming the master key");
  db->restricting_ = ReadKeySalts(db->context_);  // now, not while all principals are read
  return db;
}

void SourceDb::ForgetKeys() {
  history_keys_.clear();
  if (context_ != nullptr) krb5_free_keyblock_contents(context_, &master_key_);
}

SourceDb::~SourceDb() {
  ForgetKeys();
  if (context_ == nullptr) return;
  krb5_free_principal(context_, master_);
  if (open_) krb5_db_fini(context_);
  kadm5_free_config_params(context_, &params_);
  krb5_free_context(context_);
}

absl::Status SourceDb::FetchMasterKeys() {
  krb5_kvno kvno = 0;  // whichever the stash file has
  krb5_error_code code =
      krb5_db_fetch_mkey(context_, master_, params_.enctype, FALSE, FALSE, params_.stash_file,
                         &kvno, nullptr, &master_key_);
  if (code != 0) {
    return Error(code, absl::StrCat("reading the master key of the stash file ",
                                    params_.stash_file == nullptr ? "" : params_.stash_file,
                                    " (kdb5_util stash -f makes one)"));
  }
  code = krb5_db_fetch_mkey_list(context_, master_, &master_key_);
  return code == 0 ? absl::OkStatus()
                   : Error(code, "the stashed master key is not this database's");
}

absl::StatusOr<EntryPtr> SourceDb::Get(const std::string& name) {
  krb5_principal principal = nullptr;
  krb5_error_code code = krb5_parse_name(context_, name.c_str(), &principal);
  if (code != 0) return Error(code, name);
  absl::Cleanup release = [&] { krb5_free_principal(context_, principal); };
  krb5_db_entry* entry = nullptr;
  code = krb5_db_get_principal(context_, principal, 0, &entry);
  if (code != 0) return Error(code, name);
  return EntryPtr(entry, FreeEntry{context_});
}

absl::Status SourceDb::ForEach(absl::FunctionRef<absl::Status(krb5_db_entry*)> visit) {
  struct Walk {
    absl::FunctionRef<absl::Status(krb5_db_entry*)> visit;
    absl::Status status;
  } walk = {visit, absl::OkStatus()};
  const krb5_error_code code = krb5_db_iterate(
      context_, nullptr,
      +[](krb5_pointer arg, krb5_db_entry* entry) -> int {
        auto* w = static_cast<Walk*>(arg);
        w->status = w->visit(entry);
        return w->status.ok() ? 0 : EINVAL;
      },
      &walk, 0);
  if (!walk.status.ok()) return walk.status;
  return code == 0 ? absl::OkStatus() : Error(code, "reading the database");
}

absl::Status SourceDb::ForEachPolicy(absl::FunctionRef<void(osa_policy_ent_t)> visit) {
  const krb5_error_code code = krb5_db_iter_policy(
      context_, const_cast<char*>("*"),
      +[](void* arg, osa_policy_ent_t policy) {
        (*static_cast<absl::FunctionRef<void(osa_policy_ent_t)>*>(arg))(policy);
      },
      &visit);
  return code == 0 ? absl::OkStatus() : Error(code, "reading the policies");
}

KeySaltsByPolicy ReadKeySalts(krb5_context context) {
  KeySaltsByPolicy policies;
  (void)krb5_db_iter_policy(
      context, const_cast<char*>("*"),
      +[](void* arg, osa_policy_ent_t policy) {
        if (policy->allowed_keysalts == nullptr) return;
        (*static_cast<KeySaltsByPolicy*>(arg))[policy->name] =
            ParseKeySalts(policy->allowed_keysalts);
      },
      &policies);
  return policies;
}

KeySalts KeySaltsFor(const KeySaltsByPolicy& policies, const KadmData& data,
                     const KeySalts& otherwise) {
  const auto found = policies.find(data.policy);
  return found == policies.end() ? otherwise : found->second;
}

absl::StatusOr<KeyblockPtr> SourceDb::Decrypt(const krb5_db_entry* entry,
                                              const krb5_key_data& data) {
  krb5_keyblock* master = nullptr;
  krb5_error_code code = krb5_dbe_find_mkey(context_, const_cast<krb5_db_entry*>(entry), &master);
  if (code != 0) return Error(code, "finding the master key of an entry");
  auto* key = static_cast<krb5_keyblock*>(calloc(1, sizeof(krb5_keyblock)));
  if (key == nullptr) return absl::ResourceExhaustedError("out of memory");
  KeyblockPtr result(key, FreeKeyblock{context_});
  code = krb5_dbe_def_decrypt_key_data(context_, master, &data, key, nullptr);
  if (code != 0) return Error(code, "decrypting a key");
  return result;
}

// libkadm5 tries all keys that kadmin/history has of its version.
absl::Status SourceDb::FetchHistoryKeys(uint32_t kvno) {
  if (history_kvno_ == kvno) return absl::OkStatus();
  history_keys_.clear();
  ASSIGN_OR_RETURN(EntryPtr entry, Get("kadmin/history"));
  for (int i = 0; i < entry->n_key_data; ++i) {
    if (entry->key_data[i].key_data_kvno != kvno) continue;
    ASSIGN_OR_RETURN(KeyblockPtr key, Decrypt(entry.get(), entry->key_data[i]));
    history_keys_.push_back(std::move(key));
  }
  history_kvno_ = kvno;
  return absl::OkStatus();
}

absl::StatusOr<KeyblockPtr> SourceDb::DecryptOld(const OldKey& key, uint32_t history_kvno) {
  RETURN_IF_ERROR(FetchHistoryKeys(history_kvno));
  krb5_key_data data = {};
  data.key_data_ver = 1;
  data.key_data_type[0] = static_cast<krb5_int16>(key.enctype);
  data.key_data_length[0] = static_cast<krb5_ui_2>(key.contents.size());
  data.key_data_contents[0] =
      reinterpret_cast<krb5_octet*>(const_cast<char*>(key.contents.data()));
  for (const KeyblockPtr& under : history_keys_) {
    auto* block = static_cast<krb5_keyblock*>(calloc(1, sizeof(krb5_keyblock)));
    if (block == nullptr) return absl::ResourceExhaustedError("out of memory");
    KeyblockPtr result(block, FreeKeyblock{context_});
    if (krb5_dbe_def_decrypt_key_data(context_, under.get(), &data, block, nullptr) == 0) {
      return result;
    }
  }
  return absl::NotFoundError("kadmin/history has no key for it any more");
}

absl::StatusOr<std::string> SourceDb::SaltOf(krb5_const_principal principal,
                                             const krb5_key_data& data, int32_t* type) {
  krb5_data* salt = nullptr;
  krb5_int16 salt_type = 0;
  const krb5_error_code code =
      krb5_dbe_compute_salt(context_, &data, principal, &salt_type, &salt);
  if (code != 0) return Error(code, "computing a salt");
  *type = salt_type;
  std::string text;
  if (salt->data != nullptr) text.assign(salt->data, salt->length);
  krb5_free_data(context_, salt);
  return text;
}

}  // namespace mpckdc::kdbtool
