// SPDX-License-Identifier: Apache-2.0
//
// After a deviation this server opens no session with the other two, across restarts, until an
// administrator says so. Only what this server saw itself counts: what a peer says of another could
// be a lie to have that one shut out.
//
//     a session ends with a deviation --> Enter: durable --> Readmit: durable --> sessions again
#ifndef MPC_SERVER_AGREE_QUARANTINE_H_
#define MPC_SERVER_AGREE_QUARANTINE_H_

#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "mpc-server/agree/batch_report.h"
#include "mpc-server/agree/deviation_report.h"
#include "mpc-server/agree/engine_status.h"
#include "mpc-server/store/share_store.h"

namespace mpckdc {

class Quarantine {
 public:
  Quarantine(ShareStore* store, SharedStatus* status, EngineObserver* observer)
      : store_(store), status_(status), observer_(observer) {}

  // What the store has of it; first of all calls. A record that cannot be read is an error: a
  // server that may be in quarantine does not start.
  absl::Status Load();

  // The engine's thread: what ended a session, if it is a deviation and the first. Where the store
  // does not take it, it holds until this process ends, and Save() tries again.
  void Enter(const DeviationReport& report);
  void Save();

  // Any thread: what another machine of the party has written.
  void Look();

  // Any thread. Empty, or why no session is opened: one sentence for logs and KDCs.
  std::string Reason() const;
  // Ends it; what was ended, or nothing if there was none. After an error nothing has changed.
  absl::StatusOr<std::optional<DeviationReport>> Readmit();

 private:
  void Show(const std::optional<DeviationReport>& report);

  ShareStore* const store_;
  SharedStatus* const status_;
  EngineObserver* const observer_;
  absl::Mutex store_mu_;    // held while the store is waited for; taken before mu_
  mutable absl::Mutex mu_;  // held for a moment: who sends jobs asks for the reason
  std::optional<DeviationReport> report_ ABSL_GUARDED_BY(mu_);
  bool saved_ ABSL_GUARDED_BY(mu_) = true;
};

// "quarantined: ...", as it is told to peers, KDCs and logs.
std::string ReasonOf(const DeviationReport& report);

// The item "quarantine" of the store (doc/share_store_format.md).
std::string EncodeReport(const DeviationReport& report);
absl::StatusOr<DeviationReport> DecodeReport(absl::Span<const uint8_t> bytes);

}  // namespace mpckdc

#endif  // MPC_SERVER_AGREE_QUARANTINE_H_
