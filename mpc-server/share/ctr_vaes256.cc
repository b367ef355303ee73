// SPDX-License-Identifier: Apache-2.0
// For CPUs that have VAES without AVX-512, or are asked for AVX2.
#include "mpc-server/share/vaes256.h"

namespace mpckdc {
constexpr CtrFunctions kCtrVaes256 = AesCounter<Vaes256>::Functions();
}  // namespace mpckdc
