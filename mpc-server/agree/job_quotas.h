// SPDX-License-Identifier: Apache-2.0
//
// What a job takes from the quotas, and what it gets back (doc/jobs.md, "Quotas"). One thread at a
// time, but for SetRates.
#ifndef MPC_SERVER_AGREE_JOB_QUOTAS_H_
#define MPC_SERVER_AGREE_JOB_QUOTAS_H_

#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "mpc-server/agree/ballot.h"
#include "mpc-server/agree/job_queue.h"
#include "mpc-server/judge/quota.h"
#include "mpc-server/key/key_info.h"

namespace mpckdc {

class JobQuotas {
 public:
  JobQuotas(const QuotaRates& rates, absl::string_view realm)
      : quotas_(rates), anonymous_(PrincipalIdOf(AnonymousOf(realm))) {}

  void Advance(absl::Time now) { quotas_.Advance(now); }

  // Before the job runs: once, however often it is proposed.
  Judgement Take(WaitingJob& waiting, BatchRecords& records);
  // It was not computed.
  void GiveBack(WaitingJob& waiting);
  // It was computed and judged.
  void Settle(WaitingJob& waiting, Verdict verdict);

  // From any thread; takes effect with the next Housekeep().
  void SetRates(const QuotaRates& rates);
  void Housekeep();
  size_t buckets() const { return quotas_.size(); }
  size_t known() const { return quotas_.known(); }

 private:
  QuotaUse UseOf(const Job& job, const PrincipalId& principal) const;
  QuotaUse UseOf(const Job& job, BatchRecords& records, std::string* name) const;

  Quotas quotas_;
  const PrincipalId anonymous_;  // whom a client without a name logs in as
  absl::Mutex mu_;
  std::optional<QuotaRates> new_rates_ ABSL_GUARDED_BY(mu_);
};

}  // namespace mpckdc

#endif  // MPC_SERVER_AGREE_JOB_QUOTAS_H_
