// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/share/ctr_stream.h"

#include "mpc-server/base/isa.h"

namespace mpckdc {

const IsaTable<CtrFunctions>& AllCtrs() {
  static const IsaTable<CtrFunctions> all = {
      {"portable", Isa::kPortable, kCtrPortable},
#if defined(__x86_64__)
      {"avx2_aesni", Isa::kAvx2, kCtrAesni},
      {"avx2_vaes", Isa::kAvx2, kCtrVaes256, __builtin_cpu_supports("vaes") != 0},
      {"avx512_vaes", Isa::kAvx512, kCtrVaes512},
#endif
  };
  return all;
}

CtrKey ExpandCtrKey(const CtrFunctions& ctr, const uint8_t key[16]) {
  CtrKey expanded;
  ctr.expand(key, &expanded);
  return expanded;
}

}  // namespace mpckdc
