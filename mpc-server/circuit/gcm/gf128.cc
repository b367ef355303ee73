// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/gcm/gf128.h"

namespace mpckdc {

using GfMultiplier = void(const uint8_t a[16], const uint8_t b[16], uint8_t out[16]);
GfMultiplier GfMultiplyPclmul;  // gf128_pclmul.cc

namespace {

uint64_t LoadBigEndian(const uint8_t* p) {
  uint64_t v = 0;
  for (int i = 0; i < 8; ++i) v = v << 8 | p[i];
  return v;
}
void StoreBigEndian(uint64_t v, uint8_t* p) {
  for (int i = 7; i >= 0; --i, v >>= 8) p[i] = static_cast<uint8_t>(v);
}

// SP 800-38D, algorithm 1, with masks for its two branches. As a big-endian number the coefficient
// of x^0 is the top bit, so multiplying by x shifts right; x^128 = x^7 + x^2 + x + 1 is 0xE1 at
// the top.
void GfMultiplyPortable(const uint8_t a[16], const uint8_t b[16], uint8_t out[16]) {
  uint64_t z_high = 0, z_low = 0;
  uint64_t v_high = LoadBigEndian(b), v_low = LoadBigEndian(b + 8);
  const uint64_t bits[2] = {LoadBigEndian(a), LoadBigEndian(a + 8)};
  for (int i = 0; i < 128; ++i) {
    const uint64_t take = -(bits[i / 64] >> (63 - i % 64) & 1);
    z_high ^= v_high & take;
    z_low ^= v_low & take;
    const uint64_t reduce = -(v_low & 1);
    v_low = v_low >> 1 | v_high << 63;
    v_high = v_high >> 1 ^ (reduce & 0xE100000000000000);
  }
  StoreBigEndian(z_high, out);
  StoreBigEndian(z_low, out + 8);
}

const IsaTable<GfMultiplier>& AllGfMultipliers() {
  static const IsaTable<GfMultiplier> all = {
      {"portable", Isa::kPortable, GfMultiplyPortable},
#if defined(__x86_64__)
      {"pclmul", Isa::kAvx2, GfMultiplyPclmul},
#endif
  };
  return all;
}

}  // namespace

Block GfMultiply(const Block& a, const Block& b, Isa isa) {
  Block r;
  AllGfMultipliers().For(isa)(a.data(), b.data(), r.data());
  return r;
}

Block GfSquare(const Block& a, Isa isa) { return GfMultiply(a, a, isa); }

Block GfOne() {
  Block one{};
  one[0] = 0x80;
  return one;
}

}  // namespace mpckdc
