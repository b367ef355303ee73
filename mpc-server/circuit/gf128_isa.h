// SPDX-License-Identifier: Apache-2.0
// Multiplication in GF(2^128) per instruction set. Internal.
#ifndef MPC_SERVER_CIRCUIT_GF128_ISA_H_
#define MPC_SERVER_CIRCUIT_GF128_ISA_H_

#include <cstdint>

namespace mpckdc {
void GfMultiplyPortable(const uint8_t a[16], const uint8_t b[16], uint8_t out[16]);
void GfMultiplyPclmul(const uint8_t a[16], const uint8_t b[16], uint8_t out[16]);
}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_GF128_ISA_H_
