// SPDX-License-Identifier: Apache-2.0
// What each instruction set's kernel file defines. Internal.
#ifndef MPC_SERVER_CIRCUIT_AES_KERNELS_ISA_H_
#define MPC_SERVER_CIRCUIT_AES_KERNELS_ISA_H_

#include "mpc-server/circuit/aes_kernels.h"

namespace mpckdc {
extern const AesKernels kAesKernelsPortable;
extern const AesKernels kAesKernelsAvx2;
extern const AesKernels kAesKernelsAvx2Vaes;
extern const AesKernels kAesKernelsAvx512;
}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_AES_KERNELS_ISA_H_
