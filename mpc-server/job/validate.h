// SPDX-License-Identifier: Apache-2.0
//
// Judges a job by the closed table, before anything is computed. CheckShape needs nothing but the
// job, so the three servers agree about the same job; CheckKeys needs what this server knows about
// the keys.
#ifndef MPC_SERVER_JOB_VALIDATE_H_
#define MPC_SERVER_JOB_VALIDATE_H_

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "mpc-server/job/job.h"
#include "mpc-server/key/key_info.h"

namespace mpckdc {

// Operation, parts, usages and sizes. Kinds of refusal: MALFORMED for sizes and lengths that no
// honest KDC sends, BAD_TAG for a message whose form shows that no holder of the key made it (it
// came from the network, and its sender deserves no other answer), REFUSED for the table.
Judgement CheckShape(const Job& job);

// Whether what server `party` got of the texts to seal is what the job's hashes say: MALFORMED if
// not. The hashes are in the job's digest.
Judgement CheckTexts(const Job& job, int party);

// Whether the job has a proof by certificate that its client's gate asks for. Where the gate asks
// for none the servers have nothing to say about it.
bool ShowsCertificate(const Job& job, const KeyInfo& client);

// nullptr for an unknown handle.
using KeyLookup = absl::FunctionRef<const KeyInfo*(const Handle&)>;

// Classes of keys, whose principal they belong to, the principal's gate, tickets' headers. `realm`
// is this server's own: what another realm seals for it, it only opens.
Judgement CheckKeys(const Job& job, absl::string_view realm, KeyLookup lookup);

}  // namespace mpckdc

#endif  // MPC_SERVER_JOB_VALIDATE_H_
