// SPDX-License-Identifier: Apache-2.0
// Eight blocks at once by GF2P8AFFINEQB: byte i of the blocks in all of a register's eight words,
// times the eight matrices that send it to eight bytes of the images. Needs GFNI and AVX512-VBMI
// beyond the tier's instructions.
#include <immintrin.h>

#include "mpc-server/proof/ghash_kernels.h"

namespace mpckdc::proof {
namespace {

constexpr size_t kAtOnce = 8;

// matrix[i][o]: of byte i of a block, to byte o of its image. Bit 7 - k%8 of byte k/8 stands for
// x^k; the matrix' byte 7 - b tells which bits are added in bit b.
struct Plan {
  uint64_t matrix[16][16];
};
static_assert(sizeof(Plan) <= kGhashPlanBytes);

void MakePlan(const GhashImages& images, uint8_t* memory) {
  auto& plan = *reinterpret_cast<Plan*>(memory);
  for (size_t i = 0; i < 16; ++i) {
    for (size_t o = 0; o < 16; ++o) {
      uint64_t matrix = 0;
      for (size_t t = 0; t < 8; ++t) {
        const F& image = images.of[8 * i + 7 - t];
        const uint64_t byte = (o < 8 ? image.low.v : image.high.v) >> (8 * (o % 8)) & 0xFF;
        for (size_t b = 0; b < 8; ++b) matrix |= (byte >> b & 1) << (8 * (7 - b) + t);
      }
      plan.matrix[i][o] = matrix;
    }
  }
}

// Of two registers with 16 bytes of each of eight blocks: byte 8 * i + c takes byte i of block c,
// for i < 8 and i >= 8; and back.
struct Turns {
  alignas(64) uint8_t there[2][64], back[2][64];
};
constexpr Turns MakeTurns() {
  Turns turns{};
  for (int i = 0; i < 16; ++i) {
    for (int c = 0; c < 8; ++c) {
      turns.there[i / 8][8 * (i % 8) + c] = static_cast<uint8_t>(16 * c + i);
      turns.back[c / 4][16 * (c % 4) + i] = static_cast<uint8_t>(8 * i + c);
    }
  }
  return turns;
}
constexpr Turns kTurns = MakeTurns();

inline __attribute__((always_inline)) __m512i Pick(const uint8_t* from, __m512i a, __m512i b) {
  return _mm512_permutex2var_epi8(a, _mm512_load_si512(from), b);
}

void MapEight(const Plan& plan, const uint8_t* blocks, uint8_t* out) {
  const __m512i first = _mm512_loadu_si512(blocks), second = _mm512_loadu_si512(blocks + 64);
  alignas(64) uint64_t bytes[16];
  _mm512_store_si512(bytes, Pick(kTurns.there[0], first, second));
  _mm512_store_si512(bytes + 8, Pick(kTurns.there[1], first, second));
  __m512i low = _mm512_setzero_si512(), high = low;
  for (size_t i = 0; i < 16; ++i) {
    const __m512i of_all = _mm512_set1_epi64(static_cast<long long>(bytes[i]));
    const auto apply = [&](size_t o) __attribute__((always_inline)) {
      return _mm512_gf2p8affine_epi64_epi8(of_all, _mm512_load_si512(plan.matrix[i] + o), 0);
    };
    low = _mm512_xor_si512(low, apply(0));
    high = _mm512_xor_si512(high, apply(8));
  }
  _mm512_storeu_si512(out, Pick(kTurns.back[0], low, high));
  _mm512_storeu_si512(out + 64, Pick(kTurns.back[1], low, high));
}

void Map(const uint8_t* memory, const uint8_t* blocks, size_t n, F* out) {
  const auto& plan = *reinterpret_cast<const Plan*>(memory);
  size_t i = 0;
  for (; i + kAtOnce <= n; i += kAtOnce) {
    MapEight(plan, blocks + 16 * i, reinterpret_cast<uint8_t*>(out + i));
  }
  if (i == n) return;
  alignas(64) uint8_t rest[16 * kAtOnce] = {}, images[16 * kAtOnce];
  __builtin_memcpy(rest, blocks + 16 * i, 16 * (n - i));
  MapEight(plan, rest, images);
  __builtin_memcpy(out + i, images, 16 * (n - i));
}

}  // namespace

constexpr GhashKernels kGhashGfni512 = {MakePlan, Map};

}  // namespace mpckdc::proof
