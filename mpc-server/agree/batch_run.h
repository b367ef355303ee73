// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_AGREE_BATCH_RUN_H_
#define MPC_SERVER_AGREE_BATCH_RUN_H_

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "mpc-server/judge/grants.h"

namespace mpckdc {

using GrantUses = absl::flat_hash_map<Grants::Key, GrantUse>;

// A batch that the three servers agreed on, until it is answered.
class BatchRun {
 public:
  virtual ~BatchRun() = default;

  // On shares, on the thread of the ring that computes it. Uses nothing of the engine but that ring
  // and what the batch itself has.
  virtual absl::Status Compute() = 0;
  // On the engine's thread, with what Compute() returned: judges and answers. An error ends the
  // session.
  virtual absl::Status Finish(const absl::Status& computed) = 0;
  // On the engine's thread: what Finish() will take from grants, if all goes well.
  virtual void AddGrantUses(GrantUses*) const {}
};

}  // namespace mpckdc

#endif  // MPC_SERVER_AGREE_BATCH_RUN_H_
