// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/aes_template.h"
#include "mpc-server/circuit/bit_template.h"
#include "mpc-server/circuit/bitslice/word_avx2.h"

namespace mpckdc {
constexpr AesKernels kAesKernelsAvx2 = AesStages<WordAvx2, 2>::Kernels();
constexpr BitKernels kBitKernelsAvx2 = BitRunner<WordAvx2, 2, 64>::Kernels();
}  // namespace mpckdc
