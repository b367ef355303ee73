// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/bitslice/transpose_template.h"
#include "mpc-server/circuit/bitslice/word_avx512.h"

namespace mpckdc {
constexpr TransposeFunctions kTransposeAvx512 = Transposer<WordAvx512>::Functions();
}  // namespace mpckdc
