// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bitslice/transpose.h"

#include <cstring>

#include "mpc-server/bitslice/transpose_isa.h"

namespace mpckdc {
namespace {

#if defined(__x86_64__)
constexpr TransposeFunctions kAvx2 = {transpose_avx2::ToRows, transpose_avx2::ToBlocks};
constexpr TransposeFunctions kAvx512 = {transpose_avx512::ToRows, transpose_avx512::ToBlocks};
#endif
constexpr TransposeFunctions kPortable = {transpose_portable::ToRows,
                                          transpose_portable::ToBlocks};

}  // namespace

const TransposeFunctions& TransposeFunctionsFor(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx512) return kAvx512;
  if (isa == Isa::kAvx2) return kAvx2;
#endif
  static_cast<void>(isa);
  return kPortable;
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
