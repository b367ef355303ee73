// SPDX-License-Identifier: Apache-2.0
// GF(2^128) as in GCM (SP 800-38D, 6.3): bit 0 is the first byte's most significant bit,
// x^128 = x^7 + x^2 + x + 1. Constant time; carry-less multiply instruction where there is one.
#ifndef MPC_SERVER_CIRCUIT_GCM_GF128_H_
#define MPC_SERVER_CIRCUIT_GCM_GF128_H_

#include "mpc-server/base/isa.h"
#include "mpc-server/share/replicated_share.h"

namespace mpckdc {

Block GfMultiply(const Block& a, const Block& b, Isa isa = BestIsa());
// Linear over GF(2): applies to each component of a share.
Block GfSquare(const Block& a, Isa isa = BestIsa());
// The field's one.
Block GfOne();

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_GCM_GF128_H_
