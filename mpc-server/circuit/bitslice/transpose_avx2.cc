// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/bitslice/transpose_template.h"
#include "mpc-server/circuit/bitslice/word_avx2.h"

namespace mpckdc {
constexpr TransposeFunctions kTransposeAvx2 = Transposer<WordAvx2>::Functions();
}  // namespace mpckdc
