// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_ADMIN_BULK_ENROLL_H_
#define MPC_SERVER_ADMIN_BULK_ENROLL_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "mpc-server/admin/exit_code.h"
#include "mpc-server/admin/session.h"
#include "mpc-server/enroll/keytab.h"
#include "mpc-server/package/package_signer.h"

namespace mpckdc::admin {

// enroll --all: a keytab's principals, limits::kBulkPrincipals of them at a time, in the order of
// replace_keys.h. The database is written while the next ones are on their way to the servers:
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

#endif  // MPC_SERVER_ADMIN_BULK_ENROLL_H_
