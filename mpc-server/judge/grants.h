// SPDX-License-Identifier: Apache-2.0
//
// Who has passed the gate lately. A job that passes its principal's gate leaves a grant;
// SEAL_GRANTED jobs of the same KDC session name it and use up its budget (budget.h), which jobs
// with the same pre-auth share. Each server keeps its own grants; they agree because they judge the
// same batches. One thread at a time.
#ifndef MPC_SERVER_JUDGE_GRANTS_H_
#define MPC_SERVER_JUDGE_GRANTS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "mpc-server/job/job.h"
#include "mpc-server/judge/budget.h"

namespace mpckdc {

struct Grant {
  PrincipalId principal{};
  absl::Time origin;        // the batch's time in which the gate was passed
  JobId origin_job = 0;
  std::shared_ptr<Budget> budget;  // never null
  absl::Time expires;
};

class Grants {
 public:
  using Key = std::pair<KdcIdentity, JobId>;

  // Forgets the oldest when limits::kMaxGrants are kept.
  void Add(const Key& key, const Grant& grant);

  // nullptr when there is none or it has expired.
  const Grant* Find(const Key& key, absl::Time now) const;

  // Whether `job` (SEAL_GRANTED) may use its grant, `already` being used by jobs before it in the
  // same batch, as far as this process knows.
  Judgement Check(const KdcIdentity& kdc, const Job& job, const PrincipalId& principal,
                  const GrantUse& already, absl::Time now) const;

  void Prune(absl::Time now);
  size_t size() const { return grants_.size(); }

 private:
  absl::flat_hash_map<Key, Grant> grants_;
  std::deque<std::pair<absl::Time, Key>> by_age_;
};

// Why the job may not use the budget of the grant that it names; OK if it may.
Judgement CheckBudget(const Budget& budget, const GrantUse& already, const Job& job);

}  // namespace mpckdc

#endif  // MPC_SERVER_JUDGE_GRANTS_H_
