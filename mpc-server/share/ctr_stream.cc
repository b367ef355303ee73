// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/share/ctr_stream.h"

#include "mpc-server/share/ctr_isa.h"
#include "mpc-server/share/ctr_variants.h"

namespace mpckdc {
namespace {

bool Always() { return true; }
#if defined(__x86_64__)
bool HasVaes() { return __builtin_cpu_supports("vaes"); }
#endif

// Of each tier the best last.
constexpr CtrVariant kVariants[] = {
    {"portable", Isa::kPortable, Always,
     {ctr_portable::Expand, ctr_portable::FillXor, ctr_portable::Fill}},
#if defined(__x86_64__)
    {"avx2_aesni", Isa::kAvx2, Always, {ctr_aesni::Expand, ctr_aesni::FillXor, ctr_aesni::Fill}},
    {"avx2_vaes", Isa::kAvx2, HasVaes,
     {ctr_aesni::Expand, ctr_vaes256::FillXor, ctr_vaes256::Fill}},
    {"avx512_vaes", Isa::kAvx512, Always,
     {ctr_aesni::Expand, ctr_vaes512::FillXor, ctr_vaes512::Fill}},
#endif
};

}  // namespace

std::vector<CtrVariant> SupportedCtrs() {
  std::vector<CtrVariant> found;
  for (const CtrVariant& v : kVariants) {
    if (IsaSupported(v.tier) && v.supported()) found.push_back(v);
  }
  return found;
}

const CtrFunctions& CtrFunctionsFor(Isa isa) {
  const CtrVariant* best = &kVariants[0];
  for (const CtrVariant& v : kVariants) {
    if (v.tier == isa && v.supported()) best = &v;
  }
  return best->functions;
}

CtrKey ExpandCtrKey(const CtrFunctions& ctr, const uint8_t key[16]) {
  CtrKey expanded;
  ctr.expand(key, &expanded);
  return expanded;
}

}  // namespace mpckdc
