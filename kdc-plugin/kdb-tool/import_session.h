// SPDX-License-Identifier: Apache-2.0
//
// The KDC's side of `mpc-admin import-realm`: what is in the realm that is imported, and the
// entries that are written. There are two ways, which the master keys tell apart:
//
//   convert   the database has the master key of the imported one: it is the same, or was loaded
//             from its dump. Each protected principal's entry gets handles in place of its keys.
//   copy      the database was made anew. Entries are copied: those of protected principals with
//             handles, others' keys encrypted under the new master key.
//
// A principal is in one of these states, by its entry here alone:
//
//   old        it has no handles and no record (convert), or no entry (copy)
//   imported   it has the handles that an import wrote, and the record (import_record.h)
//   changed    it has the record, and has got other keys since
//   present    it has handles, or an entry (copy), and no record: committed, or never imported
//   gone       (copy) it was imported, and has no entry: deleted or renamed here since
#ifndef KDC_PLUGIN_KDB_TOOL_IMPORT_SESSION_H_
#define KDC_PLUGIN_KDB_TOOL_IMPORT_SESSION_H_

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kdc-plugin/kdb-tool/import_names.h"
#include "kdc-plugin/kdb-tool/kdb_session.h"
#include "kdc-plugin/kdb-tool/source_db.h"

extern "C" {
#include "kdc-plugin/kdb-module/config.h"
}

namespace mpckdc::kdbtool {

// A principal of import-write: the handles that its keys have on the servers.
struct ImportedKey {
  KeyForm form;
  uint32_t kvno = 0;
};
struct ImportedPrincipal {
  std::string principal;
  std::string was;  // FingerprintOf() the keys that were sealed
  std::vector<ImportedKey> keys;
  std::vector<std::vector<ImportedKey>> history;  // by old password; empty: its keys are left
  bool old_tgs = false;                           // an imported krbtgt
};

class ImportSession {
 public:
  // `profile`: the source's kdc.conf; "": a rollback and a commit need none. The source stays open
  // only if it is another database: LMDB's must not be opened twice in one process.
  static absl::StatusOr<std::unique_ptr<ImportSession>> Open(const std::string& realm,
                                                             const std::string& profile);
  ~ImportSession();

  KdbSession& target() { return *owned_target_; }
  SourceDb* source() { return source_.get(); }  // null where the database is converted

  bool converts() const { return converts_; }
  // Calls `print` with {"mode"}, then with a line for each principal of the source.
  absl::Status Scan(absl::FunctionRef<void(const nlohmann::json&)> print);
  // Copies the source's policies that are not here; returns the names of those that differ.
  absl::StatusOr<nlohmann::json> CopyPolicies();

  // Each is one write of one entry, whole or not at all. The caller locks the database.
  absl::Status Write(const ImportedPrincipal& principal);
  // A principal that is not protected; `bare`: without its keys.
  absl::Status Copy(const std::string& principal, bool bare);
  // Returns the handles that the principal had from the import.
  absl::StatusOr<nlohmann::json> Rollback(const std::string& principal);
  absl::Status Commit(const std::string& principal);
  // All that have a record, whatever they are called now.
  absl::StatusOr<std::vector<std::string>> Uncommitted();

  absl::Status Lock();
  absl::Status Unlock();
  // Before a rollback, which makes principals as if they had never been imported.
  absl::Status Forget(const std::vector<std::string>& principals);
  // After the entries: who was written, or is left by a rollback.
  absl::Status Remember();

 private:
  ImportSession() = default;
  absl::Status DecideHow(const std::string& there);
  absl::StatusOr<nlohmann::json> RollBackEntry(const std::string& principal);
  absl::StatusOr<bool> CopyPolicy(char* name);
  absl::StatusOr<EntryPtr> GetHere(const std::string& name);
  absl::StatusOr<std::map<std::string, std::string>> StatesHere();
  nlohmann::json LineOf(krb5_db_entry* entry, const KeySaltsByPolicy& policies,
                        const std::map<std::string, std::string>& states);
  absl::Status PutHandles(const ImportedPrincipal& principal, krb5_db_entry* entry);
  absl::Status PutHistory(const ImportedPrincipal& principal, krb5_db_entry* entry);
  absl::Status WriteOldTgs(const ImportedPrincipal& principal);
  absl::Status FindMasterKey(krb5_kvno* kvno, krb5_keyblock** key);
  absl::Status ReencryptKeys(const krb5_db_entry* source, krb5_db_entry* entry);
  absl::Status Put(krb5_db_entry* entry, bool fresh);

  std::unique_ptr<KdbSession> owned_target_;
  std::unique_ptr<SourceDb> source_;
  module_config* config_ = nullptr;
  ImportedNames names_;
  std::vector<std::string> to_remember_;
  std::set<std::string> forgotten_;
  bool converts_ = false;
  bool locked_ = false;
};

}  // namespace mpckdc::kdbtool

#endif  // KDC_PLUGIN_KDB_TOOL_IMPORT_SESSION_H_
