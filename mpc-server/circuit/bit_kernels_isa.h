// SPDX-License-Identifier: Apache-2.0
// What each instruction set's kernel file defines. Internal.
#ifndef MPC_SERVER_CIRCUIT_BIT_KERNELS_ISA_H_
#define MPC_SERVER_CIRCUIT_BIT_KERNELS_ISA_H_

#include "mpc-server/circuit/bit_program.h"

namespace mpckdc {
extern const BitKernels kBitKernelsFew;  // rows of 8 bytes: at most 64 lanes
extern const BitKernels kBitKernelsPortable;
extern const BitKernels kBitKernelsAvx2;
extern const BitKernels kBitKernelsAvx512;
}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_BIT_KERNELS_ISA_H_
