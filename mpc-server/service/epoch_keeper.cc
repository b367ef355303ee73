// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/epoch_keeper.h"

#include "mpc-server/agree/executor.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/service/log.h"

namespace mpckdc {

EpochKeeper::EpochKeeper(ShareStore* store, JobEngine* engine, AuditLog* audit, Clock* clock,
                         absl::Duration every)
    : audit_(*audit),
      duties_(
          store, engine, clock, {.every = every},
          [this](const EpochState& state, const EpochProgress& done) { return Ended(state, done); },
          [](const std::string& trouble) { Log().error("{}", trouble); }) {
  thread_ = std::thread([this] {
    YieldToOthers(limits::kRefreshNiceness);
    while (Pause(duties_.Step())) {
    }
  });
}

void EpochKeeper::Stop() {
  stopping_.Notify();
  if (thread_.joinable()) thread_.join();
}

bool EpochKeeper::Pause(absl::Duration duration) {
  return !stopping_.WaitFor(duration);
}

absl::Status EpochKeeper::Ended(const EpochState& state, const EpochProgress& done) {
  Log().info("share epoch {}: {} records written, {} damaged; the key of epoch {} is erased",
             state.epoch, done.written - done.damaged, done.damaged, state.epoch - 1);
  return audit_.Append("epoch", {{"epoch", state.epoch},
                                 {"written", done.written},
                                 {"damaged", done.damaged},
                                 {"erased", state.epoch - 1}});
}

}  // namespace mpckdc
