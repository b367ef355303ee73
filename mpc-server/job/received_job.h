// SPDX-License-Identifier: Apache-2.0
//
// A job as this server received it: from whom, when, and the digest by which the three servers
// compare what they were sent.
#ifndef MPC_SERVER_JOB_RECEIVED_JOB_H_
#define MPC_SERVER_JOB_RECEIVED_JOB_H_

#include "absl/time/time.h"
#include "mpc-server/job/digest.h"
#include "mpc-server/job/job.h"

namespace mpckdc {

struct ReceivedJob {
  KdcIdentity kdc;
  Job job;
  Digest digest{};  // JobDigest(kdc, job)
  absl::Time received, deadline;
  CertificateFinding certificate;  // of the job's proof, once it is verified
};

}  // namespace mpckdc

#endif  // MPC_SERVER_JOB_RECEIVED_JOB_H_
