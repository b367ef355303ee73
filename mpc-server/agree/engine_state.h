// SPDX-License-Identifier: Apache-2.0
//
// What the steps of a batch share: one idea each, and which of them other threads may use.
#ifndef MPC_SERVER_AGREE_ENGINE_STATE_H_
#define MPC_SERVER_AGREE_ENGINE_STATE_H_

#include <atomic>
#include <list>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "mpc-server/agree/answers.h"
#include "mpc-server/agree/clock_watch.h"
#include "mpc-server/agree/different_records.h"
#include "mpc-server/agree/hand_over.h"
#include "mpc-server/agree/job_engine.h"
#include "mpc-server/agree/job_quotas.h"
#include "mpc-server/agree/key_rounds.h"
#include "mpc-server/agree/line_trial.h"
#include "mpc-server/agree/lines.h"
#include "mpc-server/agree/long_ring.h"
#include "mpc-server/agree/quarantine.h"
#include "mpc-server/agree/sealing.h"
#include "mpc-server/judge/grants.h"
#include "mpc-server/judge/judge.h"
#include "mpc-server/judge/pending_seals.h"
#include "mpc-server/judge/replay_cache.h"

namespace mpckdc {

// That a party be replaced, which the next session may do.
struct ReplaceWish {
  int party;
  absl::Time deadline;
  std::shared_ptr<JobEngine::DrawCallback> done;
};

// What other threads asked for and was not answered. The engine's thread sleeps on the mutex
// (Executor::Wait) and is woken when something is put in.
struct WaitingWork {
  mutable absl::Mutex mu;
  JobQueue jobs ABSL_GUARDED_BY(mu);
  std::list<KeyRoundPtr> key_rounds ABSL_GUARDED_BY(mu);
  std::optional<ReplaceWish> replace ABSL_GUARDED_BY(mu);
  std::atomic<bool> closed{false};  // the engine stops: nothing more is put in
};

struct EngineState {
  EngineState(const EngineOptions& options, const EngineTools& tools);

  absl::Time Now() const { return clock->Now(); }
  bool stopping() const { return waiting.closed; }
  // This server's own. Garbling needs keys that two servers share, which exchanged randomness is
  // there to do without.
  ProtocolSetting protocol() const {
    return options.randomness == Randomness::kKeyed ? options.protocol
                                                    : ProtocolSetting::kReplicated;
  }

  const EngineOptions options;
  ShareStore* const store;
  Clock* const clock;
  RandomSource* const random;
  PeerLink* const peers;
  Executor* const executor;
  EngineObserver* const observer;  // never null
  CertificateVerifier* const certificates;  // null: none
  const StoreMeta meta;
  const int party;

  // Any thread's.
  SharedStatus status;
  std::atomic<bool> catch_up{false};  // the session is to end: the next one hands keys over
  std::atomic<bool> wants_keys{false};  // in this triple, by an administrator's call
  WaitingWork waiting;
  PendingSeals pending;
  Quarantine quarantine;

  // The engine's thread's, but for what their own comments say.
  LongRing long_ring;
  RecentHandles recent;
  WantedHandles wanted;
  absl::Time refresh_until = absl::InfinitePast();  // what was agreed on is tried for so long
  std::optional<absl::Time> behind_since;  // of a party that another triple brings into its epoch
  bool took_over = false;       // the steps of epochs: the next session opens at once
  bool refresh_agreed = false;  // by all three: the next session opens at once, in the next epoch
  absl::Time refresh_after = absl::InfinitePast();  // the next attempt, after one that failed
  absl::Duration refresh_pause;                     // before it
  std::optional<LineTrial> trial;                   // of the session before
  absl::Time replies_until = absl::InfinitePast();  // the second jobs of many logins come till then
  absl::Time deep_after = absl::InfinitePast();     // the next batch of deep jobs
  absl::Duration round_time;  // of the last batch of rounds, which ended then:
  absl::Time round_time_at = absl::InfinitePast();
  ClockWatch clocks;
  Lines lines;
  Sealing sealing;
  DifferentRecords different;
  JobQuotas quotas;
  Grants grants;
  ReplayCache replays;
  Judge judge;
  Answers answers;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_AGREE_ENGINE_STATE_H_
