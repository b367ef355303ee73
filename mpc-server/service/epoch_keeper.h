// SPDX-License-Identifier: Apache-2.0
//
// Refreshes the shares from time to time, and after each refresh writes the records anew, a few at
// a time beside the logins, until the old epoch's key can be erased (store/epochs.h). A thread of
// its own: the engine's does not wait for the disk. Of several machines on one store one writes,
// and the old key stays until all have the new one (store/fellows.h).
#ifndef MPC_SERVER_SERVICE_EPOCH_KEEPER_H_
#define MPC_SERVER_SERVICE_EPOCH_KEEPER_H_

#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "mpc-server/agree/job_engine.h"
#include "mpc-server/audit/audit_log.h"
#include "mpc-server/store/share_store.h"

namespace mpckdc {

struct EpochProgress {
  size_t to_write = 0;  // records of the epoch before when the refresh began
  size_t written = 0;   // of them
  size_t damaged = 0;   // that could not be read; they stay so
  std::string trouble;  // empty, or why a refresh does not begin or end
  std::string waits;    // empty, or for which machines of the party the old key is kept
};

class EpochKeeper {
 public:
  // Not owned; must outlive this. `every`: infinite for never by itself.
  EpochKeeper(ShareStore* store, JobEngine* engine, AuditLog* audit, Clock* clock,
              absl::Duration every);
  ~EpochKeeper() { Stop(); }
  // Before the engine stops, which still answers what this has asked.
  void Stop();

  EpochProgress Progress() const;
  absl::Duration every() const { return every_; }

 private:
  void Run();
  void KeepFellows();
  void EraseOrAsk();
  void AskIfDue();
  absl::Status WriteRecords();
  // Whether every machine of the party has the epoch's key, or is gone for good.
  absl::StatusOr<bool> AllFollowed();
  absl::StatusOr<bool> MayWrite();
  absl::Status WriteSome(absl::Span<const Handle> handles);
  // Sleeps; false: it is stopping.
  bool Pause(absl::Duration duration);
  void SetTrouble(const absl::Status& status, const char* what);

  ShareStore& store_;
  JobEngine& engine_;
  AuditLog& audit_;
  Clock& clock_;
  const absl::Duration every_;
  bool erase_failed_ = false;
  uint64_t asked_for_ = 0;  // the epoch that the engine was asked to leave
  absl::Time ask_again_ = absl::InfinitePast();
  absl::Time noted_ = absl::InfinitePast();  // that this machine is up

  mutable absl::Mutex mutex_;
  EpochProgress progress_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_EPOCH_KEEPER_H_
