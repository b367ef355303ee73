// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_ADMIN_REPLACE_KEYS_H_
#define MPC_SERVER_ADMIN_REPLACE_KEYS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
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
  std::string principal;
  uint32_t kvno = 0;
  std::vector<KdbKey> keys;
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

// Whether the database has all of the handles of a change, or some.
bool AllThere(const std::vector<std::string>& wanted, const std::vector<std::string>& present);
bool AnyThere(const std::vector<std::string>& wanted, const std::vector<std::string>& present);
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

}  // namespace mpckdc::admin

#endif  // MPC_SERVER_ADMIN_REPLACE_KEYS_H_
