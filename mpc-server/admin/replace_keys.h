// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_ADMIN_REPLACE_KEYS_H_
#define MPC_SERVER_ADMIN_REPLACE_KEYS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "mpc-server/admin/kdb.h"
#include "mpc-server/admin/session.h"
#include "mpc-server/enroll/package_signer.h"
#include "mpc-server/secret/secret.h"

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

// The plan for `principal`, refused when the principal has protected keys and `replace` is false.
absl::StatusOr<KdbPlan> PlanFor(Session& session, const std::string& principal, bool replace);

// The plan's gcm enctypes, narrowed by --enctype.
absl::StatusOr<std::vector<KdbKey>> PlannedKeys(const Session& session, const KdbPlan& plan);

absl::StatusOr<enroll::PackageSigner> LoadSigner(const Session& session);

}  // namespace mpckdc::admin

#endif  // MPC_SERVER_ADMIN_REPLACE_KEYS_H_
