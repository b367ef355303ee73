// SPDX-License-Identifier: Apache-2.0
#ifndef KDC_PLUGIN_KDB_TOOL_SOURCE_DB_H_
#define KDC_PLUGIN_KDB_TOOL_SOURCE_DB_H_

#include <krb5/krb5.h>

extern "C" {  // the headers lack it
#include <kadm5/admin.h>
#include <kdb.h>
}

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kdc-plugin/kdb-tool/kadm_data.h"

namespace mpckdc::kdbtool {

struct FreeEntry {
  krb5_context context;
  void operator()(krb5_db_entry* entry) const { krb5_db_free_principal(context, entry); }
};
using EntryPtr = std::unique_ptr<krb5_db_entry, FreeEntry>;

struct FreeKeyblock {
  krb5_context context;
  void operator()(krb5_keyblock* key) const { krb5_free_keyblock(context, key); }  // wipes it
};
using KeyblockPtr = std::unique_ptr<krb5_keyblock, FreeKeyblock>;

using KeySalts = std::vector<krb5_key_salt_tuple>;
// Of the policies that restrict them.
using KeySaltsByPolicy = std::map<std::string, KeySalts>;
KeySaltsByPolicy ReadKeySalts(krb5_context context);
// What the entry's policy allows, or else `otherwise`: supported_enctypes. A policy that is only a
// name restricts nothing.
KeySalts KeySaltsFor(const KeySaltsByPolicy& policies, const KadmData& data,
                     const KeySalts& otherwise);

// The database of a realm as MIT's krb5 has it, read through that realm's own kdc.conf: db2, klmdb
// or kldap, whatever it says. Nothing is ever written to it.
class SourceDb {
 public:
  // `profile`: the path of its kdc.conf.
  static absl::StatusOr<std::unique_ptr<SourceDb>> Open(const std::string& profile,
                                                        const std::string& realm);
  ~SourceDb();
  SourceDb(const SourceDb&) = delete;
  SourceDb& operator=(const SourceDb&) = delete;

  krb5_context context() const { return context_; }
  krb5_const_principal master() const { return master_; }
  std::string realm() const { return params_.realm; }
  // The path of its stash file; empty: its kdc.conf names none.
  std::string stash() const {
    return params_.stash_file == nullptr ? "" : params_.stash_file;
  }

  // Needed before Decrypt(): the master key of the stash file, and older ones.
  absl::Status FetchMasterKeys();
  void ForgetKeys();
  // NotFound: no such principal.
  absl::StatusOr<EntryPtr> Get(const std::string& name);
  // Stops at the first error of `visit`.
  absl::Status ForEach(absl::FunctionRef<absl::Status(krb5_db_entry*)> visit);
  absl::Status ForEachPolicy(absl::FunctionRef<void(osa_policy_ent_t)> visit);
  const KeySaltsByPolicy& restricting() const { return restricting_; }

  // A real key.
  absl::StatusOr<KeyblockPtr> Decrypt(const krb5_db_entry* entry, const krb5_key_data& data);
  // One of an old password. NotFound: kadmin/history has another key now.
  absl::StatusOr<KeyblockPtr> DecryptOld(const OldKey& key, uint32_t history_kvno);
  // Type and bytes of the salt that the key was made with.
  absl::StatusOr<std::string> SaltOf(krb5_const_principal principal, const krb5_key_data& data,
                                     int32_t* type);

  absl::Status Error(long code, const std::string& what);

 private:
  SourceDb() = default;
  absl::Status FetchHistoryKeys(uint32_t kvno);

  krb5_context context_ = nullptr;
  kadm5_config_params params_ = {};
  bool open_ = false;
  krb5_principal master_ = nullptr;
  krb5_keyblock master_key_ = {};
  KeySaltsByPolicy restricting_;
  std::optional<uint32_t> history_kvno_;  // of the keys below
  std::vector<KeyblockPtr> history_keys_;
};

std::string UnparsedName(krb5_context context, krb5_const_principal principal);

// "aes256-gcm:normal,..." of a policy, as tuples.
std::vector<krb5_key_salt_tuple> ParseKeySalts(const char* text);

}  // namespace mpckdc::kdbtool

#endif  // KDC_PLUGIN_KDB_TOOL_SOURCE_DB_H_
