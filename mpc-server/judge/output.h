// SPDX-License-Identifier: Apache-2.0
//
// What of a job's result leaves this server: its shares of keystream and tags, masked under keys
// that follow from the hash of the job as received (key/output_format.h), and what stays for the
// tag requests.
#ifndef MPC_SERVER_JUDGE_OUTPUT_H_
#define MPC_SERVER_JUDGE_OUTPUT_H_

#include <memory>
#include <vector>

#include "mpc-server/compute/batch_work.h"
#include "mpc-server/judge/pending_seals.h"

namespace mpckdc {

// For the tags of the present batch's seals, which may outlive the session.
OutputKeys TagKeysOf(const PartyContext& party);

// The results of a job that this server judged OK.
JobResult OutputOf(OutputMasks& masks, uint32_t number, const BatchWork& batch,
                   const JobWork& work);
// What the tags of its seals will take. `seals` is the batch's; the masks are added to it.
PendingJob PendingOf(const BatchWork& batch, const JobWork& work, SealBatch& seals);

}  // namespace mpckdc

#endif  // MPC_SERVER_JUDGE_OUTPUT_H_
