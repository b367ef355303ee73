// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/aes/aes_template.h"
#include "mpc-server/circuit/bitslice/word_avx2.h"
#include "mpc-server/share/vaes256.h"

namespace mpckdc {
constexpr AesKernels kAesKernelsAvx2Vaes = AesStages<WordAvx2, 2, AesZeros<Vaes256>>::Kernels();
}  // namespace mpckdc
