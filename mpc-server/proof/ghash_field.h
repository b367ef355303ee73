// SPDX-License-Identifier: Apache-2.0
// Elements of GCM's field as elements of F. Both fields have 2^128 elements, so there is a map that
// keeps sums and products: x of SP 800-38D goes to a root of x^128 + x^7 + x^2 + x + 1 in F.
#ifndef MPC_SERVER_PROOF_GHASH_FIELD_H_
#define MPC_SERVER_PROOF_GHASH_FIELD_H_

#include "absl/types/span.h"
#include "mpc-server/proof/field128.h"
#include "mpc-server/share/replicated_share.h"

namespace mpckdc::proof {

// Without a branch or an index that depends on the blocks.
void FromGhash(absl::Span<const Block> blocks, F* out);

}  // namespace mpckdc::proof

#endif  // MPC_SERVER_PROOF_GHASH_FIELD_H_
