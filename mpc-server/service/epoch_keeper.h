// SPDX-License-Identifier: Apache-2.0
//
// A server's share epochs (agree/epoch_duties.h) in a thread of their own: the engine's does not
// wait for the disk.
#ifndef MPC_SERVER_SERVICE_EPOCH_KEEPER_H_
#define MPC_SERVER_SERVICE_EPOCH_KEEPER_H_

#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "mpc-server/agree/epoch_duties.h"
#include "mpc-server/audit/audit_log.h"
#include "mpc-server/base/steady_wait.h"

namespace mpckdc {

class EpochKeeper {
 public:
  // Not owned; must outlive this. `every`: infinite for never by itself.
  EpochKeeper(ShareStore* store, JobEngine* engine, AuditLog* audit, Clock* clock,
              absl::Duration every);
  ~EpochKeeper() { Stop(); }
  // Before the engine stops, which still answers what this has asked.
  void Stop();

  EpochProgress Progress() const { return duties_.Progress(); }
  absl::Duration every() const { return duties_.options().every; }

 private:
  // Sleeps; false: it is stopping.
  bool Pause(absl::Duration duration);
  absl::Status Ended(const EpochState& state, const EpochProgress& done);

  AuditLog& audit_;
  EpochDuties duties_;
  SteadyNotification stopping_;
  std::thread thread_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_EPOCH_KEEPER_H_
