// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/bit_kernels_isa.h"
#include "mpc-server/circuit/bit_template.h"
#include "mpc-server/circuit/bitslice/word_avx512.h"

namespace mpckdc {
constexpr BitKernels kBitKernelsAvx512 = BitRunner<WordAvx512, 2, 64>::Kernels();
}  // namespace mpckdc
