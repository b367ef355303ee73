// SPDX-License-Identifier: Apache-2.0
//
// What a server does for its share epochs beside its engine: it asks for a refresh from time to
// time, and after each writes the records anew, a few at a time beside the logins, until the old
// epoch's key can be erased (store/epochs.h). Whoever has a thread, or a fiber, calls Step() again
// and again. What is left to do is read from the store, so it may stop anywhere. Of several
// machines of a party on one store one does it, and the old key stays until all have the new one
// (store/fellows.h).
#ifndef MPC_SERVER_AGREE_EPOCH_DUTIES_H_
#define MPC_SERVER_AGREE_EPOCH_DUTIES_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "mpc-server/agree/job_engine.h"
#include "mpc-server/agree/place_order.h"
#include "mpc-server/base/clock.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/store/share_store.h"

namespace mpckdc {

struct EpochProgress {
  size_t to_write = 0;  // records that there were when the refresh began, as far as they are listed
  size_t written = 0;   // of them are of the new epoch
  size_t damaged = 0;   // that could not be read; they stay so
  std::string trouble;  // empty, or why a refresh does not begin or end
  std::string waits;    // empty, or for which machines of the party the old key is kept
};

struct EpochDutyOptions {
  absl::Duration every = absl::InfiniteDuration();  // infinite: never by itself
  // A refresh ends no sooner: shares that somebody made for the epoch before are taken until then,
  // so that an enrolment under way does not fail over it.
  absl::Duration at_least = absl::Seconds(5);
  // The three clocks may differ, and one of the three servers may be down: so long a wish stands.
  absl::Duration wish = absl::Hours(1);
  // What a triple waits for the one whose turn it is to change the epoch.
  absl::Duration take_over = absl::Minutes(10);
  size_t keys_per_list = limits::kRefreshKeysPerList;
  size_t keys_per_write = limits::kRefreshKeysPerWrite;
};

class EpochDuties {
 public:
  // One refresh has ended here.
  using OnEnd = std::function<absl::Status(const EpochState&, const EpochProgress&)>;
  using OnTrouble = std::function<void(const std::string&)>;

  // Not owned; must outlive this. The engine must stop before this ends, as it answers it.
  EpochDuties(ShareStore* store, JobEngine* engine, Clock* clock, const EpochDutyOptions& options,
              OnEnd ended, OnTrouble trouble);

  // Does some of what there is to do. Returns how long to wait before the next call. One thread.
  absl::Duration Step();

  EpochProgress Progress() const;  // from any thread
  const EpochDutyOptions& options() const { return options_; }

 private:
  void KeepFellows();
  absl::StatusOr<bool> IsForeman();
  absl::StatusOr<bool> AllFollowed(const EpochState& state);
  void WriteNothing();
  void EraseOrAsk();
  void AskIfDue();
  bool IsDue(const EpochState& state, absl::Time now) const;
  absl::StatusOr<absl::Duration> WriteStep();
  absl::StatusOr<absl::Duration> ListSome();
  absl::Duration PauseSince(absl::Time start) const;
  absl::Duration RenewSome();
  absl::StatusOr<absl::Duration> WriteSome();
  absl::StatusOr<absl::Duration> End();
  void SetTrouble(const absl::Status& status, const char* what);

  ShareStore& store_;
  JobEngine& engine_;
  Clock& clock_;
  const EpochDutyOptions options_;
  const OnEnd ended_;
  const OnTrouble trouble_;

  // Of the refresh under way: first all keys are listed, then the records written in the order in
  // which they lie on the disk.
  void BeginAnew();
  uint64_t of_epoch_ = 0;
  PlaceOrder keys_;
  std::optional<Handle> list_from_ = Handle{};  // from which on keys are still to be listed
  std::vector<Handle> writing_;  // taken of keys_; they stay here until they are written
  ShareStore::Renewals renewals_;  // of the first of these
  absl::Time looked_ = absl::InfinitePast();  // what other machines have done
  absl::Time noted_ = absl::InfinitePast();   // that this machine is up
  uint64_t asked_for_ = 0;  // the epoch that the engine was asked to leave
  absl::Time ask_again_ = absl::InfinitePast();

  mutable absl::Mutex mutex_;
  EpochProgress progress_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> troubles_ ABSL_GUARDED_BY(mutex_);  // by what goes wrong
};

}  // namespace mpckdc

#endif  // MPC_SERVER_AGREE_EPOCH_DUTIES_H_
