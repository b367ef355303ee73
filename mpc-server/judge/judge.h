// SPDX-License-Identifier: Apache-2.0
//
// One server's own judgement of the jobs of a batch that was computed: tags, clock, replay, origin
// age, gate, and at last what is left of the grant. Nothing of a job leaves a server that did not
// judge it OK. One thread at a time.
#ifndef MPC_SERVER_JUDGE_JUDGE_H_
#define MPC_SERVER_JUDGE_JUDGE_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "mpc-server/compute/batch_work.h"
#include "mpc-server/job/verdict.h"
#include "mpc-server/judge/grants.h"
#include "mpc-server/judge/replay_cache.h"

namespace mpckdc {

struct JudgePolicy {
  absl::Duration max_renewable_life;
  absl::Duration clock_skew;
};

class Judge {
 public:
  Judge(const JudgePolicy& policy, Grants* grants, ReplayCache* replays)
      : policy_(policy), grants_(grants), replays_(replays) {}

  // One judgement per job, in order. Records grants, and what was presented and paid, the latter
  // durably before it returns; a job of which that cannot be recorded is UNAVAILABLE.
  // `agreed` is the batch's time (the same at the three), `now` this server's own.
  std::vector<Judgement> Decide(const std::vector<JobWork>& work, absl::Time agreed,
                                absl::Time now);

 private:
  // Ok: as far as the messages go. Whoever presents a pre-auth or a grant fills in `ask`.
  Judgement DecideJob(const JobWork& work, absl::Time now, BudgetAsk* ask) const;
  Judgement CheckPreauth(const JobWork& work, const OpenWork& open, absl::Time now,
                         BudgetAsk* ask) const;
  Judgement CheckCertificateNow(const JobWork& work, absl::Time now, BudgetAsk* ask) const;
  absl::Time EndOf(absl::Time time) const;
  Judgement CheckGrant(const JobWork& work, BudgetAsk* ask) const;
  Judgement CheckTicketAge(const OpenWork& open, absl::Time now) const;
  Judgement CheckChecksumAge(const VerifyMacWork& mac, absl::Time now) const;
  void LeaveGrant(const JobWork& work, const BudgetAsk* ask, absl::Time agreed, absl::Time now);

  const JudgePolicy policy_;
  Grants* const grants_;
  ReplayCache* const replays_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_JUDGE_JUDGE_H_
