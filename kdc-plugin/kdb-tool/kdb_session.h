// SPDX-License-Identifier: Apache-2.0
#ifndef KDC_PLUGIN_KDB_TOOL_KDB_SESSION_H_
#define KDC_PLUGIN_KDB_TOOL_KDB_SESSION_H_

#include <krb5/krb5.h>

extern "C" {  // the headers lack it
#include <kadm5/admin.h>
#include <kdb.h>
}

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace mpckdc::kdbtool {

struct KeyForm {
  int32_t enctype = 0;
  int32_t salt_type = 0;
  std::string salt;
  std::string handle;  // 16 bytes; empty in a plan
};

struct Plan {
  std::string principal;
  bool exists = false;
  uint32_t kvno_next = 1;
  std::vector<KeyForm> keys;
};

// What the caller saw of a principal when he planned its next keys.
struct Expected {
  bool exists = false;
  uint32_t kvno = 0;              // the newest; 0: none
  std::set<std::string> handles;  // without those that a password history alone names
};

struct NewHandles {
  std::string principal;
  uint32_t kvno = 0;
  bool keep_old = false;
  std::vector<KeyForm> keys;
  std::optional<Expected> expected;  // something else is there: refused
};

struct StoredHandle {
  std::string principal;
  uint32_t kvno = 0;
  int32_t enctype = 0;
  std::string handle;
  bool history = false;  // of an old key that the password history names
  // Of an entry that is being renamed (kdb-module/renaming.h): the other name.
  std::string renamed_from{}, renamed_to{};
};

// How long tickets under a service's keys can be in use.
struct TicketLives {
  std::string principal;
  int64_t changed = 0;   // when its keys were last changed, or later; since 1970; 0: unknown
  uint32_t longest = 0;  // seconds that a ticket for it can live or be renewed; 0: no limit
};

// The realm's database, opened as kadmin.local opens it. NotFound: no such principal.
class KdbSession {
 public:
  // `realm` may be empty: the default realm.
  static absl::StatusOr<std::unique_ptr<KdbSession>> Open(const std::string& realm);
  ~KdbSession();
  KdbSession(const KdbSession&) = delete;
  KdbSession& operator=(const KdbSession&) = delete;

  // For what is done to entries themselves (import_session.h).
  krb5_context context() const { return context_; }
  const kadm5_config_params& params() const { return params_; }
  absl::Status Error(long code, const std::string& what);

  // What new keys of the principal should look like. Changes nothing.
  absl::StatusOr<Plan> MakePlan(const std::string& name, bool create);
  // Makes the principal if need be; takes it away again if the keys cannot be set.
  absl::Status SetHandles(const NewHandles& handles) { return Set(handles, false); }
  // The same for many principals, in their order, with one write each: a principal that does not
  // exist is made with its keys at once, and kadm5_hook modules do not see it. Where the database
  // can be locked (db2) it is for the whole time, and synced once.
  std::vector<absl::Status> SetHandlesOfMany(absl::Span<const NewHandles> principals);
  // Calls `visit` for each handle of the database, `keyless` for each principal without any key.
  absl::Status List(absl::FunctionRef<void(const StoredHandle&)> visit,
                    absl::FunctionRef<void(const std::string&)> keyless);
  absl::Status Delete(const std::string& name);
  // Of a service: what its own entry, kdc.conf and the entries of all clients allow together.
  absl::StatusOr<TicketLives> ReadTicketLives(const std::string& name);
  // Removes the keys of versions before `kvno`, as kadmin's purgekeys does.
  absl::Status Purge(const std::string& name, uint32_t kvno);

 private:
  KdbSession() = default;

  krb5_error_code VisitEntry(krb5_db_entry* entry,
                             absl::FunctionRef<void(const StoredHandle&)> visit,
                             absl::FunctionRef<void(const std::string&)> keyless);
  // The longest life and renewable life that an entry of the database has; 0: no limit, none.
  absl::Status LongestOfAll(uint32_t* life, uint32_t* renewable);
  absl::StatusOr<krb5_principal> Parse(const std::string& name);
  absl::StatusOr<std::string> Unparse(krb5_const_principal principal);
  // The entry's highest key version; NotFound without an entry.
  absl::StatusOr<uint32_t> Lookup(krb5_principal principal, std::string* policy);
  absl::StatusOr<std::vector<krb5_key_salt_tuple>> KeySalts(const std::string& policy);
  absl::StatusOr<std::string> SaltFor(krb5_const_principal principal, int32_t salt_type);
  absl::Status Set(const NewHandles& handles, bool at_once);
  absl::Status CreateThenKeys(krb5_principal principal, const NewHandles& handles);
  absl::Status CreateWithKeys(krb5_const_principal principal, const NewHandles& handles);
  uint32_t PasswordLife(const std::string& policy);  // seconds; 0: for ever
  absl::Status WriteKeys(krb5_principal principal, const NewHandles& handles,
                         uint32_t password_life);
  absl::Status CheckExpected(krb5_db_entry* entry, const NewHandles& handles);
  absl::Status PutWithKeys(krb5_db_entry* entry, const NewHandles& handles, uint32_t password_life);
  absl::Status ReplaceKeyData(krb5_db_entry* entry, const NewHandles& handles);

  krb5_context context_ = nullptr;
  void* handle_ = nullptr;  // of libkadm5srv
  kadm5_config_params params_ = {};
};

}  // namespace mpckdc::kdbtool

#endif  // KDC_PLUGIN_KDB_TOOL_KDB_SESSION_H_
