// SPDX-License-Identifier: Apache-2.0
//
// The canonical encoding of a job and its SHA-256. The three servers compare digests before they
// compute, and mask what they answer under them. Integers are big-endian.
//
//   job:      "mpc-kdc job v2" 00
//             kdc name length (2) | kdc name | session (16)
//             id (8) | operation (1) | deadline_ms (4)
//             has client (1: 0 or 1) | client (16; absent when 0) | grant (8)
//             number of opens (2)       | each: handle (16) | usage (4) | length (4) | message
//             number of seals (2)       | each: handle (16) | usage (4) | max_plaintext (4)
//                                               | length (2) | hashes of the text's components
//             number of make_macs (2)   | each: handle (16) | usage (4) | length (4) | data
//             number of verify_macs (2) | each: handle (16) | usage (4) | length (4) | data
//                                               | length (4) | checksum
//             source id (8) | proved (1: 0 or 1); absent when the KDC does not say the source and
//                 there is no proof by certificate
//             length (4) | PA-PK-AS-REQ | length (4) | KDC-REQ-BODY; absent when there is none
//   tag request: "mpc-kdc tag v2" 00 | job's digest (32) | seal's nonce (12) | seal (4)
//                                    | length (4) | ciphertext
//
// The encoding is injective: every field has a fixed length or is preceded by its length.
#ifndef MPC_SERVER_JOB_DIGEST_H_
#define MPC_SERVER_JOB_DIGEST_H_

#include <string>

#include "mpc-server/base/sha256.h"
#include "mpc-server/job/job.h"

namespace mpckdc {

std::string EncodeJob(const KdcIdentity& kdc, const Job& job);
Digest JobDigest(const KdcIdentity& kdc, const Job& job);

// The nonce is that of the seal which the batch gave to the job.
std::string EncodeTagRequest(const Digest& job_digest, const Nonce& nonce,
                             const TagRequest& request);
Digest TagRequestDigest(const Digest& job_digest, const Nonce& nonce, const TagRequest& request);

}  // namespace mpckdc

#endif  // MPC_SERVER_JOB_DIGEST_H_
