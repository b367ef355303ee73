// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/randomness/ctr_stream.h"

#include "mpc-server/randomness/ctr_isa.h"
#include "mpc-server/randomness/isa.h"

namespace mpckdc {
namespace {

#if defined(__x86_64__)
constexpr CtrFunctions kAesni = {ctr_aesni::Expand, ctr_aesni::FillXor, ctr_aesni::Fill};
constexpr CtrFunctions kVaes512 = {ctr_aesni::Expand, ctr_vaes512::FillXor, ctr_vaes512::Fill};
#endif
constexpr CtrFunctions kPortable = {ctr_portable::Expand, ctr_portable::FillXor,
                                    ctr_portable::Fill};

}  // namespace

const CtrFunctions& CtrFunctionsFor(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx512) return kVaes512;
  if (isa == Isa::kAvx2) return kAesni;
#endif
  static_cast<void>(isa);
  return kPortable;
}

CtrKey ExpandCtrKey(const CtrFunctions& ctr, const uint8_t key[16]) {
  CtrKey expanded;
  ctr.expand(key, &expanded);
  return expanded;
}

}  // namespace mpckdc
