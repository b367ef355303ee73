// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/aes_kernels.h"

#include "mpc-server/circuit/aes_kernel_variants.h"
#include "mpc-server/circuit/aes_kernels_isa.h"

namespace mpckdc {
namespace {

bool Always() { return true; }
#if defined(__x86_64__)
bool HasVaes() { return __builtin_cpu_supports("vaes"); }
#endif

// Of each tier the best last.
constexpr AesKernelVariant kVariants[] = {
    {"portable", Isa::kPortable, Always, kAesKernelsPortable},
#if defined(__x86_64__)
    {"avx2", Isa::kAvx2, Always, kAesKernelsAvx2},
    {"avx2_vaes", Isa::kAvx2, HasVaes, kAesKernelsAvx2Vaes},
    {"avx512_vaes", Isa::kAvx512, Always, kAesKernelsAvx512},
#endif
};

}  // namespace

std::vector<AesKernelVariant> SupportedAesKernels() {
  std::vector<AesKernelVariant> found;
  for (const AesKernelVariant& v : kVariants) {
    if (IsaSupported(v.tier) && v.supported()) found.push_back(v);
  }
  return found;
}

const AesKernels& SharedAesKernels(Isa isa) {
  const AesKernelVariant* best = &kVariants[0];
  for (const AesKernelVariant& v : kVariants) {
    if (v.tier == isa && v.supported()) best = &v;
  }
  return best->kernels;
}

}  // namespace mpckdc
