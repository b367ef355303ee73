// SPDX-License-Identifier: Apache-2.0
// The tables that SharedAesKernels() chooses from; for tests. (Not in aes_kernels.h: the files of
// the instruction sets include plain C headers only.) Internal to circuit/.
#ifndef MPC_SERVER_CIRCUIT_AES_KERNEL_VARIANTS_H_
#define MPC_SERVER_CIRCUIT_AES_KERNEL_VARIANTS_H_

#include <vector>

#include "mpc-server/base/isa.h"
#include "mpc-server/circuit/aes_kernels.h"

namespace mpckdc {

// A tier (Isa) may have several, because some of its CPUs have more instructions than it asks for.
struct AesKernelVariant {
  const char* name;
  Isa tier;
  bool (*supported)();  // beyond the tier's own instructions
  const AesKernels& kernels;
};
// All that this CPU can run, the best of a tier last.
std::vector<AesKernelVariant> SupportedAesKernels();

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_AES_KERNEL_VARIANTS_H_
