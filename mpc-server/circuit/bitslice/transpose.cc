// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/bitslice/transpose.h"

#include <cstring>

#include "mpc-server/circuit/bitslice/transpose_isa.h"

namespace mpckdc {
namespace {

bool Always() { return true; }
#if defined(__x86_64__)
bool HasGfni() { return __builtin_cpu_supports("gfni"); }
bool HasGfniAndVbmi() { return HasGfni() && __builtin_cpu_supports("avx512vbmi"); }
#endif

// Of each tier the best last.
constexpr TransposeVariant kVariants[] = {
    {"portable", Isa::kPortable, Always, {transpose_portable::ToRows, transpose_portable::ToPairs}},
#if defined(__x86_64__)
    {"avx2", Isa::kAvx2, Always, {transpose_avx2::ToRows, transpose_avx2::ToPairs}},
    {"avx2_gfni", Isa::kAvx2, HasGfni, {transpose_gfni256::ToRows, transpose_gfni256::ToPairs}},
    {"avx512", Isa::kAvx512, Always, {transpose_avx512::ToRows, transpose_avx512::ToPairs}},
    {"avx512_gfni", Isa::kAvx512, HasGfniAndVbmi,
     {transpose_gfni512::ToRows, transpose_gfni512::ToPairs}},
#endif
};

}  // namespace

std::vector<TransposeVariant> SupportedTransposes() {
  std::vector<TransposeVariant> found;
  for (const TransposeVariant& v : kVariants) {
    if (IsaSupported(v.tier) && v.supported()) found.push_back(v);
  }
  return found;
}

const TransposeFunctions& TransposeFunctionsFor(Isa isa) {
  const TransposeVariant* best = &kVariants[0];
  for (const TransposeVariant& v : kVariants) {
    if (v.tier == isa && v.supported()) best = &v;
  }
  return best->functions;
}

void CompactRows(const uint8_t* rows, size_t count, size_t row_bytes, uint8_t* wire) {
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(wire + i * row_bytes, rows + i * kRowBytes, row_bytes);
  }
}

void ExpandRows(const uint8_t* wire, size_t count, size_t row_bytes, uint8_t* rows) {
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(rows + i * kRowBytes, wire + i * row_bytes, row_bytes);
  }
}

}  // namespace mpckdc
