// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/garble/half_gates.h"

#include "mpc-server/base/isa.h"

namespace mpckdc::garble {

const IsaTable<HalfGateFunctions>& AllHalfGates() {
  static const IsaTable<HalfGateFunctions> all = {
    {"portable", Isa::kPortable, kHalfGatesPortable},
#if defined(__x86_64__)
    {"aesni", Isa::kAvx2, kHalfGatesAesni},
    {"vaes256", Isa::kAvx2, kHalfGatesVaes256, __builtin_cpu_supports("vaes") != 0},
    {"vaes512", Isa::kAvx512, kHalfGatesVaes512},
#endif
  };
  return all;
}

}  // namespace mpckdc::garble
