// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/share/vaes512.h"

namespace mpckdc {
constexpr CtrFunctions kCtrVaes512 = AesCounter<Vaes512>::Functions();
}  // namespace mpckdc
