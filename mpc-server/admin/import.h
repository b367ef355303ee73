// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_ADMIN_IMPORT_H_
#define MPC_SERVER_ADMIN_IMPORT_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "mpc-server/admin/exit_code.h"
#include "mpc-server/admin/import_kdb.h"
#include "mpc-server/admin/import_report.h"
#include "mpc-server/admin/session.h"

namespace mpckdc::admin {

// How an import goes on when it is given again.
inline constexpr char kImportAgain[] = "run the same command again: it does what is left";

// Keys go through the three steps of enroll.h, with mpc-kdb in place of a keytab: it decrypts,
// splits and seals on the KDC's host, we sign and send what we cannot open.
//
//     chunk 1   seal | stage x3, commit x3 | KDB
//     chunk 2          seal                | stage x3, commit x3 | KDB
//     chunk 3                                seal                | stage ...
//
// Each principal's entry is written once: it has its handles and the record for a rollback, or is
// as it was. What a killed run has left on the servers and nothing names, the next one deletes.

// The keys on the servers of these principals that the database does not name: of a run that was
// killed.
absl::Status DeleteLeftovers(Session& session, const std::set<std::string>& principals);

// The realm's krbtgt: the servers draw the next key, and the old one's shares open old tickets
// until `rotate-krbtgt --finish`. Again: does what is left. Returns a sentence.
absl::StatusOr<std::string> ImportKrbtgt(Session& session, const ImportKdb& kdb,
                                         const ImportScan& scan);

// import_end.cc
absl::StatusOr<ExitCode> RollbackImport(Session& session, const ImportKdb& kdb,
                                        const ImportScan& scan);
absl::StatusOr<ExitCode> CommitImport(Session& session, const ImportKdb& kdb,
                                      const ImportScan& scan);
absl::StatusOr<ExitCode> ScrubImport(Session& session, ImportKdb& kdb);

// Of the scan those that the command names; all without operands.
absl::StatusOr<std::vector<Scanned>> Chosen(const Session& session, const ImportScan& scan);

// Where a dump's database is made.
std::string ScratchOf(const Options& options);

}  // namespace mpckdc::admin

#endif  // MPC_SERVER_ADMIN_IMPORT_H_
