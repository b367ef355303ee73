// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/bitslice/transpose_template.h"
#include "mpc-server/circuit/bitslice/word_portable.h"

namespace mpckdc {
constexpr TransposeFunctions kTransposePortable = Transposer<WordPortable>::Functions();
}  // namespace mpckdc
