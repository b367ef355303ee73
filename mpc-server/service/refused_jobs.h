// SPDX-License-Identifier: Apache-2.0
//
// Which refused jobs are written down each, in the audit log. Whoever floods the realm with what
// the servers refuse before they compute anything must not fill their disks: of one kind (KDC,
// operation, verdict) the first limits::kRefusalLinesPerSecond of a second are, the others are
// counted. Not synchronised: the engine's thread.
#ifndef MPC_SERVER_SERVICE_REFUSED_JOBS_H_
#define MPC_SERVER_SERVICE_REFUSED_JOBS_H_

#include <compare>
#include <cstdint>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "mpc-server/agree/batch_report.h"
#include "mpc-server/audit/audit_log.h"
#include "mpc-server/base/clock.h"

namespace mpckdc {

// As a line spells it: "LOGIN".
std::string OperationText(Operation operation);

class RefusedJobs {
 public:
  explicit RefusedJobs(Clock* clock) : clock_(*clock) {}

  // False: the job is counted instead. `time` says of which second it is: that of its batch, so
  // that the three servers write down the same ones.
  bool Lists(const BatchJob& job, absl::Time time);
  // What a line of kind "counted" says; null when nothing was counted.
  AuditLog::Fields Counts() const;
  // It is written down.
  void Forget();

 private:
  struct Name {
    std::string kdc;
    Operation operation{};
    Verdict verdict{};
    auto operator<=>(const Name&) const = default;
  };
  struct Kind {
    int64_t second = 0;
    size_t listed = 0;  // in that second
    uint64_t counted = 0;
    PrincipalId principal{};  // of the last one that was counted
  };
  Kind& KindOf(const BatchJob& job);

  Clock& clock_;
  std::map<Name, Kind> kinds_;
  int64_t second_ = 0;                         // of the last job
  absl::Time since_ = absl::InfiniteFuture();  // the first one that was counted
};

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_REFUSED_JOBS_H_
