// SPDX-License-Identifier: Apache-2.0
//
// Who has passed the gate lately. A job that passes its principal's gate leaves a grant;
// SEAL_GRANTED jobs of the same KDC session name it and use up its budget
// (job/operation_table.h). Each server keeps its own grants; they agree because they judge the same
// batches. One thread at a time.
#ifndef MPC_SERVER_JUDGE_GRANTS_H_
#define MPC_SERVER_JUDGE_GRANTS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "mpc-server/job/job.h"

namespace mpckdc {

// Parts that a grant pays for.
struct GrantUse {
  uint8_t tickets = 0;
  uint8_t replies = 0;
  uint8_t checksums = 0;
  Handle ticket_key{};  // of the first ticket; all zero when there is none

  friend GrantUse operator+(const GrantUse& a, const GrantUse& b) {
    return {static_cast<uint8_t>(a.tickets + b.tickets),
            static_cast<uint8_t>(a.replies + b.replies),
            static_cast<uint8_t>(a.checksums + b.checksums),
            a.ticket_key != Handle{} ? a.ticket_key : b.ticket_key};
  }
};
// What the job's seals and make_macs take.
GrantUse UseOf(const Job& job);

struct Grant {
  PrincipalId principal{};
  absl::Time origin;        // the batch's time in which the gate was passed
  JobId origin_job = 0;
  GrantUse used;
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
  // same batch.
  Judgement Check(const KdcIdentity& kdc, const Job& job, const PrincipalId& principal,
                  const GrantUse& already, absl::Time now) const;
  void Use(const Key& key, const GrantUse& use);

  void Prune(absl::Time now);
  size_t size() const { return grants_.size(); }

 private:
  absl::flat_hash_map<Key, Grant> grants_;
  std::deque<std::pair<absl::Time, Key>> by_age_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_JUDGE_GRANTS_H_
