// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_ADMIN_REPLACE_KEYS_H_
#define MPC_SERVER_ADMIN_REPLACE_KEYS_H_

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "mpc-server/admin/exit_code.h"
#include "mpc-server/admin/kdb.h"
#include "mpc-server/admin/session.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/enroll/keytab.h"
#include "mpc-server/package/package_signer.h"

namespace mpckdc::admin {

// One key of a principal's next version.
struct NewKey {
  KdbKey kdb;        // the handle is drawn by ReplaceKeys()
  SecretBytes base;  // empty: the servers draw it
};

struct ReplacedKeys {
  KdbNewKeys now;
  size_t old_keys = 0;      // handles that the KDB referred to before
  bool old_deleted = false;
};

// How a principal gets keys:
//   KDB: plan -> servers: stage x3, commit x3 -> KDB: set handles [-> servers: delete the old ones]
// The KDB is written last: until then nothing refers to the new keys, and a failure takes them away
// again. When it cannot be told whether the KDB was written, it is read; when that fails too, the
// new keys stay (at worst unused) and the error says so.
absl::StatusOr<ReplacedKeys> ReplaceKeys(Session& session, const enroll::PackageSigner& signer,
                                         const KdbPlan& plan, uint32_t kvno,
                                         std::vector<NewKey> keys);

// {"principal", "kvno", "keys": [{"enctype", "handle"}]}
nlohmann::json ToJson(const KdbNewKeys& keys);

// What the servers let all new keys of a principal do.
struct Powers {
  v1::Gate gate = v1::GATE_TIMESTAMP;
  v1::KeyClass key_class = v1::KEY_CLASS_USER;
};

// As the options say; else as its present keys, the newest, have it; else as the name says.
Powers PowersFor(const Options& options, const std::string& principal,
                 absl::Span<const v1::KeyInfo> present);

// What the servers are told about one new key.
v1::KeyInfo InfoOf(const std::string& principal, uint32_t kvno, const Powers& powers,
                   const KdbKey& key);

// How many of the handles of a change the database has.
size_t CountThere(const std::vector<std::string>& wanted, const std::vector<std::string>& present);
std::vector<std::string> HandlesOf(const KdbEntries& entries, const std::string& principal);

// A keytab's keys for the planned ones.
absl::StatusOr<std::vector<NewKey>> KeysOfKeytab(const std::vector<KdbKey>& planned,
                                                 const std::string& principal,
                                                 enroll::KeytabKeys keytab);
// krbtgt's keys are drawn, never enrolled.
absl::Status RefuseKrbtgt(const std::string& principal);

// The plan for `principal`, refused when the principal has protected keys and `replace` is false.
absl::StatusOr<KdbPlan> PlanFor(Session& session, const std::string& principal, bool replace);

// Those of the plan's enctypes that the servers hold, narrowed by --enctype. A ticket-granting key
// meets no client: without --enctype it gets the gcm enctypes alone.
absl::StatusOr<std::vector<KdbKey>> PlannedKeys(const Session& session, const KdbPlan& plan);

absl::StatusOr<enroll::PackageSigner> LoadSigner(const Session& session);

// enroll --all: a keytab's principals, limits::kBulkPrincipals of them at a time, in the
// order of ReplaceKeys(). The database is written while the next ones are on their way to the
// servers:
//
//     chunk 1   plan, package, stage x3, commit x3 | KDB
//     chunk 2                                      | plan, package, stage x3, commit x3 | KDB
//
// A chunk's keys are on all three servers before its handles go into the KDB, and each principal's
// handles go there in one write: however it ends, a principal has its new keys or is as it was.
// Principals that have protected keys are passed over (without --replace), so the same command,
// given again, goes on where an earlier one stopped.
absl::StatusOr<ExitCode> EnrollMany(Session& session, const enroll::PackageSigner& signer,
                                    std::map<std::string, enroll::KeytabKeys> keytab);

}  // namespace mpckdc::admin

#endif  // MPC_SERVER_ADMIN_REPLACE_KEYS_H_
