// SPDX-License-Identifier: Apache-2.0
// GF(2^8) of AES as GF((2^4)^2), at compile time.
//
// w is the first element of the subfield GF(16) with w^4 = w + 1 and order 15; theta the first
// element with theta^16 = theta + 1. A byte is (a, b) = a + b*theta, a in the low four bits, each
// in the basis 1, w, w^2, w^3. Then
//     x^17 = a^2 + a*b + nu*b^2 =: N in GF(16), nu = theta^17
//     x^-1 = ((a + b) + b*theta) * N^-1
#ifndef MPC_SERVER_CIRCUIT_AES_TOWER_FIELD_H_
#define MPC_SERVER_CIRCUIT_AES_TOWER_FIELD_H_

#include <cstddef>
#include <cstdint>

namespace mpckdc::tower {

constexpr int Multiply(int a, int b, int poly, int bits) {
  int r = 0;
  for (; b != 0; b >>= 1) {
    if (b & 1) r ^= a;
    a <<= 1;
    if (a >> bits & 1) a ^= poly;
  }
  return r;
}
constexpr int Mul256(int a, int b) { return Multiply(a, b, 0x11B, 8); }
constexpr int Mul16(int a, int b) { return Multiply(a, b, 0x13, 4); }
constexpr int Power(int x, int e) {
  int r = 1;
  for (; e > 0; --e) r = Mul256(r, x);
  return r;
}

constexpr int FindOmega() {
  for (int y = 2;; ++y) {
    if (Power(y, 4) == (y ^ 1) && Power(y, 3) != 1 && Power(y, 5) != 1) return y;
  }
}
constexpr int FindTheta() {
  for (int t = 2;; ++t) {
    if (Power(t, 16) == (t ^ 1)) return t;
  }
}

// An 8x8 matrix over GF(2) by columns: column k is the image of bit k.
struct Matrix {
  int column[8];
  constexpr int operator()(int v) const {
    int r = 0;
    for (int k = 0; k < 8; ++k) r ^= (v >> k & 1) != 0 ? column[k] : 0;
    return r;
  }
};

// Tower to AES basis.
constexpr Matrix FromTower() {
  Matrix m{};
  for (int k = 0; k < 4; ++k) {
    m.column[k] = Power(FindOmega(), k);
    m.column[4 + k] = Mul256(m.column[k], FindTheta());
  }
  return m;
}
// The inverse of an invertible matrix, by looking the unit vectors up.
constexpr Matrix Inverted(const Matrix& of) {
  Matrix m{};
  for (int v = 0; v < 256; ++v) {
    const int y = of(v);
    for (int k = 0; k < 8; ++k) {
      if (y == 1 << k) m.column[k] = v;
    }
  }
  return m;
}
// AES basis to tower.
constexpr Matrix ToTower() { return Inverted(FromTower()); }
// The linear part of the S-box's affine map (FIPS 197, 5.1.1), from the tower basis.
constexpr int AffineLinear(int v) {
  int r = 0;
  for (int i = 0; i < 8; ++i) {
    const int bit = v >> i ^ v >> (i + 4) % 8 ^ v >> (i + 5) % 8 ^ v >> (i + 6) % 8 ^
                    v >> (i + 7) % 8;
    r |= (bit & 1) << i;
  }
  return r;
}
constexpr Matrix TowerToSbox() {
  Matrix m = FromTower();
  for (int& c : m.column) c = AffineLinear(c);
  return m;
}
// Back: what the inverse S-box does before it inverts, once the constant is taken off.
constexpr Matrix SboxToTower() { return Inverted(TowerToSbox()); }
inline constexpr int kSboxConstant = 0x63;

// nu = theta^17 in the basis of GF(16).
constexpr int Nu16() { return ToTower()(Power(FindTheta(), 17)); }

// A straight-line program of XORs for a matrix: first each op makes a new variable v[8+i] = v[a] ^
// v[b] (Paar's greedy choice of the pair that most rows share), then output j is v[out[j]].
struct XorProgram {
  int a[64] = {};
  int b[64] = {};
  int ops = 0;
  int out[8] = {};
};

constexpr XorProgram Straighten(const Matrix& m) {
  bool row[8][72] = {};
  for (int j = 0; j < 8; ++j) {
    for (int k = 0; k < 8; ++k) row[j][k] = (m.column[k] >> j & 1) != 0;
  }
  XorProgram p;
  for (int vars = 8;; ++vars) {
    int best = 0, bi = 0, bj = 0;
    for (int i = 0; i < vars; ++i) {
      for (int j = i + 1; j < vars; ++j) {
        int shared = 0;
        for (int r = 0; r < 8; ++r) shared += row[r][i] && row[r][j];
        if (shared > best) best = shared, bi = i, bj = j;
      }
    }
    if (best == 0) break;
    p.a[p.ops] = bi;
    p.b[p.ops] = bj;
    ++p.ops;
    for (int r = 0; r < 8; ++r) {
      if (row[r][bi] && row[r][bj]) {
        row[r][bi] = row[r][bj] = false;
        row[r][vars] = true;
      }
    }
  }
  for (int j = 0; j < 8; ++j) {
    for (int k = 0; k < 72; ++k) {
      if (row[j][k]) p.out[j] = k;
    }
  }
  return p;
}

}  // namespace mpckdc::tower

#endif  // MPC_SERVER_CIRCUIT_AES_TOWER_FIELD_H_
