// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/bitslice/transpose.h"

#include <cstring>

namespace mpckdc {

const IsaTable<TransposeFunctions>& AllTransposes() {
#if defined(__x86_64__)
  const bool gfni = __builtin_cpu_supports("gfni") != 0;
  const bool vbmi = __builtin_cpu_supports("avx512vbmi") != 0;
#endif
  static const IsaTable<TransposeFunctions> all = {
      {"portable", Isa::kPortable, kTransposePortable},
#if defined(__x86_64__)
      {"avx2", Isa::kAvx2, kTransposeAvx2},
      {"avx2_gfni", Isa::kAvx2, kTransposeGfni256, gfni},
      {"avx512", Isa::kAvx512, kTransposeAvx512},
      {"avx512_gfni", Isa::kAvx512, kTransposeGfni512, gfni && vbmi},
#endif
  };
  return all;
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
