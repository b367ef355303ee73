// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_ADMIN_ENROLL_H_
#define MPC_SERVER_ADMIN_ENROLL_H_

#include <array>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "mpc-server/admin/exit_code.h"
#include "mpc-server/admin/kdb.h"
#include "mpc-server/admin/session.h"
#include "mpc-server/enroll/keytab.h"
#include "mpc-server/package/package.h"

namespace mpckdc::admin {

// What ends a command that is to be given again.
inline constexpr char kAgain[] = "run the same command again: it goes on where it stopped";

// How a principal gets keys:
//   KDB: plan -> servers: stage x3, commit x3 -> KDB: set handles [-> servers: delete the old ones]
// The KDB is written last: until then nothing refers to the new keys, and a failure takes them away
// again. When it cannot be told whether the KDB was written, it is read; when that fails too, the
// new keys stay (at worst unused) and the error says so.

// A principal's next keys; an empty base: the servers draw it.
using NewKeys = std::vector<enroll::KeyToShare>;

// {"principal", "kvno", "keys": [{"enctype", "handle"}]}
void to_json(nlohmann::json& out, const KdbNewKeys& keys);

// What the servers let all new keys of a principal do.
struct Powers {
  v1::Gate gate = v1::GATE_TIMESTAMP;
  v1::KeyClass key_class = v1::KEY_CLASS_USER;
  bool differ = false;  // the servers do not agree on either of the present keys
};

// What each server says of a principal's newest key; nothing: that it has none.
using NewestKeys = std::array<std::optional<v1::KeyInfo>, 3>;
using NewestByPrincipal = std::map<std::string, NewestKeys>;
// Of a principal, or of all. All servers are asked: what one alone says might make a gate wider.
// `but`: handles that are not looked at.
absl::StatusOr<NewestByPrincipal> ListNewest(Session& session, const std::string& principal,
                                             const std::set<std::string>& but = {});

// As the options say; else as its present keys have it, with the strictest gate (strictest_gate.h)
// and the class of the name if the servers do not agree; else as the name says.
Powers PowersFor(const Options& options, const std::string& principal, const NewestKeys& present);
// Tells the administrator that they do not agree.
void RemarkDifference(Session& session, const std::string& principal, const Powers& powers);

// Draws the keys' handles and says what else the servers and `fresh`, for the database, are to know
// of them.
void GiveHandles(const Powers& powers, NewKeys* keys, KdbNewKeys* fresh);

// After the KDB command failed as a whole: for each principal OK when the database has its new
// handles all the same, else `why`. `bulk`: they are a part of many.
absl::StatusOr<std::vector<absl::Status>> Settle(Session& session,
                                                 absl::Span<const KdbNewKeys> principals, bool bulk,
                                                 const absl::Status& why);

std::vector<std::string> HandlesOf(const KdbEntries& entries, const std::string& principal);

// What the plan and the database, which was read after it, say that the principal has.
KdbNewKeys::Expected ExpectedOf(const KdbPlan& plan, std::vector<std::string> handles);

// After the database names them: keys that somebody deleted before it did are in use again
// (RestoreNamed). Trouble is a remark: the keys are good for the grace time.
void KeepInUse(Session& session, const std::string& principal,
               const std::set<std::string>& handles);

// A keytab's keys for the planned ones.
absl::StatusOr<NewKeys> KeysOfKeytab(const std::vector<v1::KeyInfo>& planned,
                                     const std::string& principal, enroll::KeytabKeys keytab);
// krbtgt's keys are drawn, never enrolled.
absl::Status RefuseKrbtgt(const std::string& principal);

// What becomes of the keys that are replaced.
enum class OldKeys {
  kAsOptionsSay,
  kStayInUse,  // the database goes on naming them
};

// rotate-krbtgt, import-realm: the servers draw the principal's next keys, of this version at least.
// Returns what `randkey --json` would print.
absl::StatusOr<nlohmann::json> DrawNext(Session& session, const std::string& principal,
                                        OldKeys old_keys = OldKeys::kStayInUse,
                                        uint32_t at_least = 0);
// The administrator's, for share packages.
absl::StatusOr<enroll::PackageSigner> LoadSigner(const Session& session);

// Those of the plan's enctypes that the servers hold, narrowed by --enctype. A ticket-granting key
// meets no client: without --enctype it gets the gcm enctypes alone.
absl::StatusOr<std::vector<v1::KeyInfo>> PlannedKeys(const Session& session, const KdbPlan& plan);

// enroll --all: a keytab's principals, limits::kBulkPrincipals of them at a time, in the
// order above. The database is written while the next ones are on their way to the
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

#endif  // MPC_SERVER_ADMIN_ENROLL_H_
