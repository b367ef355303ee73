// SPDX-License-Identifier: Apache-2.0
//
// Compares the audit logs of the three servers: every job, every batch and every change by an
// administrator must be in all three, and said in the same words. Reads the three side by side;
// memory holds what is not yet matched.
#ifndef MPC_SERVER_AUDIT_RECONCILE_H_
#define MPC_SERVER_AUDIT_RECONCILE_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpc-server/audit/chain.h"
#include "mpc-server/audit/files.h"
#include "mpc-server/audit/job_match.h"
#include "mpc-server/base/limits.h"

namespace mpckdc::audit {

struct ReconcileOptions {
  absl::Time since = absl::InfinitePast();  // of what is reported
  absl::Time until = absl::InfiniteFuture();
  std::function<void(uint64_t)> progress;   // bytes read so far; may be empty
  size_t max_unmatched = limits::kMaxUnmatchedJobs;  // more is an error: they are in memory
};

struct ServerLog {
  Verification chain;
  uint64_t batches = 0;
  uint64_t jobs = 0;
};

struct Reconciliation {
  std::string realm;
  std::array<ServerLog, kServers> servers;  // by party
  uint64_t jobs = 0;     // that all three tell alike
  uint64_t batches = 0;  // with the same view at all three
  std::vector<Finding> findings;            // by time; at most kMaxFindings
  uint64_t unexplained = 0;                 // all of them
  uint64_t left_out = 0;                    // findings beyond kMaxFindings
  std::map<std::string, uint64_t> explained;       // how often, by reason
  std::map<std::string, uint64_t> by_kdc;          // unexplained findings
  std::map<std::string, uint64_t> by_principal;    // the same, by principal id

  // Three intact chains that tell the same.
  bool clean() const;

  static constexpr size_t kMaxFindings = 10000;
};

// Three logs, in any order; which is whose, they say themselves.
absl::StatusOr<Reconciliation> Reconcile(const std::array<std::vector<LogFile>, kServers>& logs,
                                         const ReconcileOptions& options);

}  // namespace mpckdc::audit

#endif  // MPC_SERVER_AUDIT_RECONCILE_H_
