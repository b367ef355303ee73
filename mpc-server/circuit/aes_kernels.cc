// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/aes_kernels.h"

#include "mpc-server/circuit/aes_kernels_isa.h"
#include "mpc-server/randomness/isa.h"

namespace mpckdc {

const AesKernels& SharedAesKernels(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx512) return kAesKernelsAvx512;
  if (isa == Isa::kAvx2) return kAesKernelsAvx2;
#endif
  static_cast<void>(isa);
  return kAesKernelsPortable;
}

}  // namespace mpckdc
