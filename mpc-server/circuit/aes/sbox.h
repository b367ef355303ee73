// SPDX-License-Identifier: Apache-2.0
// The AES S-box of one byte as stages of quadratic polynomials, over a word type W
// (bitslice/word_*.h) and a number C of components per value: C = 1 computes on plain bits, C = 2
// on both halves of a share. Nothing here knows which. The input byte is (a, b) = a + b*theta in
// the tower basis (tower_field.h), N = x^17 = a^2 + ab + nu*b^2 its norm in GF(16).
//
// Sbox::kThroughput, sbox17's: 17 opened bits in four rounds.
//
//   norm     N                                      4 bits   quadratic in (a, b)
//   helper   q = n0*n1 + n2*n3                      1 bit    quadratic in N
//   inverse  M = N^-1 = q*L(N) + Q'(N)              4 bits   quadratic in (N, q)
//   product  ((a+b)*M, b*M)                         8 bits   quadratic in (a, b, M)
//
// Sbox::kLatency: 22 opened bits in three rounds, because x^-1 = x^16 * N^14 = (x^16 * N^4) * N^10,
// N -> N^4 is linear, and N^10 = (N^2)(N^8) lies in GF(4) and is quadratic in N.
//
//   norm     N                                      4 bits   quadratic in (a, b)
//   twist    u = N^10, v = x^16 * N^4               10 bits  quadratic in (a, b, N)
//   scale    u*v                                    8 bits   quadratic in (u, v)
//
// The inverse S-box is S^-1(y) = (A^-1(y + 0x63))^-1: the same stages behind another linear map,
// and none after them but the change of basis.
//
// Each stage is a quadratic polynomial f without constant. A stage adds f of every component to its
// message, which on entry holds the zero share:   msg ^= f(c_0) ^ .. ^ f(c_{C-1}).
#ifndef MPC_SERVER_CIRCUIT_AES_SBOX_H_
#define MPC_SERVER_CIRCUIT_AES_SBOX_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "mpc-server/circuit/aes/tower_field.h"

// The stages must be one body each: values stay in registers.
#define MPCKDC_INLINE inline __attribute__((always_inline))
#define MPCKDC_LAMBDA_INLINE __attribute__((always_inline))

namespace mpckdc {

// Arithmetic of the tower field on the bits of one component.
template <class W>
struct TowerBits {
  using T = typename W::T;

  struct ToTowerMap {
    static constexpr tower::XorProgram kProgram = tower::Straighten(tower::ToTower());
  };
  struct TowerToSboxMap {
    static constexpr tower::XorProgram kProgram = tower::Straighten(tower::TowerToSbox());
  };
  // For the inverse S-box.
  struct SboxToTowerMap {
    static constexpr tower::XorProgram kProgram = tower::Straighten(tower::SboxToTower());
  };
  struct FromTowerMap {
    static constexpr tower::XorProgram kProgram = tower::Straighten(tower::FromTower());
  };

  template <class Map, size_t... I, size_t... J>
  MPCKDC_INLINE static void ApplyOps(const T* in, T* out, std::index_sequence<I...>,
                              std::index_sequence<J...>) {
    constexpr tower::XorProgram p = Map::kProgram;
    T v[8 + sizeof...(I)];
    ((v[J] = in[J]), ...);
    ((v[8 + I] = W::Xor(v[p.a[I]], v[p.b[I]])), ...);
    ((out[J] = v[p.out[J]]), ...);
  }
  template <class Map>
  MPCKDC_INLINE static void Apply(const T* in, T* out) {
    ApplyOps<Map>(in, out, std::make_index_sequence<Map::kProgram.ops>(),
                  std::make_index_sequence<8>());
  }

  // e_0..e_6 ^= coefficients of u*v before reduction by w^4 = w + 1.
  MPCKDC_INLINE static void MulAdd(const T* u, const T* v, T* e) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) e[i + k] = W::AndXor(u[i], v[k], e[i + k]);
    }
  }
  // w^4 = w + 1, w^5 = w^2 + w, w^6 = w^3 + w^2.
  MPCKDC_INLINE static void Reduce(T* e) {
    e[0] = W::Xor(e[0], e[4]);
    e[1] = W::Xor3(e[1], e[4], e[5]);
    e[2] = W::Xor3(e[2], e[5], e[6]);
    e[3] = W::Xor(e[3], e[6]);
  }

  // a^2 + nu*b^2, linear; nu*b^2 with nu = w^3 + w + 1 (checked below).
  MPCKDC_INLINE static void AddSquares(const T* x, T* e) {
    static_assert(tower::Nu16() == 11);
    const T b0 = x[4], b1 = x[5], b2 = x[6], b3 = x[7];
    // nu times (1, w^2, w^4, w^6) = (w^3+w+1, w^3+w, w^3+w^2+w, w^3+w^2+1)
    static_assert(tower::Mul16(11, 4) == 10 && tower::Mul16(11, 3) == 14 &&
                  tower::Mul16(11, 12) == 13);
    const T b012 = W::Xor3(b0, b1, b2);
    e[0] = W::Xor3(e[0], W::Xor3(x[0], x[2], b0), b3);
    e[1] = W::Xor3(e[1], x[2], b012);
    e[2] = W::Xor3(e[2], W::Xor3(x[1], x[3], b2), b3);
    e[3] = W::Xor3(e[3], W::Xor(x[3], b3), b012);
  }

  // u = N^10 = u0 + u1*w^5 in GF(4), for one component:
  //   u0 = n0 + n1 + n3 + n0*(n1 + n2) + n1*(n2 + n3)
  //   u1 = n1 + n2 + n1*n2 + n3*(n0 + n1 + n2)
  MPCKDC_INLINE static void TenthPower(const T* n, T* u) {
    const T n12 = W::Xor(n[1], n[2]);
    u[0] =
        W::Xor(W::Xor3(n[0], n[1], n[3]), W::AndXor(n[0], n12, W::And(n[1], W::Xor(n[2], n[3]))));
    u[1] = W::Xor(n12, W::AndXor(n[1], n[2], W::And(n[3], W::Xor(n[0], n12))));
  }
  // N^4: w^4 = w + 1, w^8 = w^2 + 1, w^12 = w^3 + w^2 + w + 1.
  MPCKDC_INLINE static void FourthPower(const T* n, T* out) {
    const T n23 = W::Xor(n[2], n[3]);
    out[0] = W::Xor3(n[0], n[1], n23);
    out[1] = W::Xor(n[1], n[3]);
    out[2] = n23;
    out[3] = n[3];
  }
};

// The stages.
template <class W, int C>
struct SboxOfByte : TowerBits<W> {
  using F = TowerBits<W>;
  using T = typename W::T;

  MPCKDC_INLINE static void Norm(const T (*x)[8], T* msg4) {
    T e[7] = {msg4[0], msg4[1], msg4[2], msg4[3], W::Zero(), W::Zero(), W::Zero()};
    for (int c = 0; c < C; ++c) F::MulAdd(x[c], x[c] + 4, e);
    F::Reduce(e);
    T sum[8];
    for (int k = 0; k < 8; ++k) sum[k] = C == 2 ? W::Xor(x[0][k], x[C - 1][k]) : x[0][k];
    F::AddSquares(sum, e);
    for (int k = 0; k < 4; ++k) msg4[k] = e[k];
  }

  MPCKDC_INLINE static T Helper(const T (*n)[4], T msg) {
    for (int c = 0; c < C; ++c) {
      msg = W::AndXor(n[c][0], n[c][1], msg);
      msg = W::AndXor(n[c][2], n[c][3], msg);
    }
    return msg;
  }

  // M_j = q*L_j(N) + Q'_j(N):
  //   L = (n1+n2, n3, n0, n1)
  //   Q'_0 = n0 + n1 + n2 + n3 + n0n1 + n0n2 + n1n2 + n2n3
  //   Q'_1 = n3 + n0n1 + n0n2 + n1n2 + n1n3 + n2n3
  //   Q'_2 = n2 + n3 + n0n2 + n0n3
  //   Q'_3 = n1 + n2 + n3 + n0n1 + n0n3 + n1n3 + n2n3
  MPCKDC_INLINE static void Inverse(const T (*n)[4], const T (*q)[1], T* msg4) {
    T p01 = W::Zero(), p02 = p01, p12 = p01, p23 = p01, p13 = p01, p03 = p01;
    T n0 = p01, n1 = p01, n2 = p01, n3 = p01;
    for (int c = 0; c < C; ++c) {
      p01 = W::AndXor(n[c][0], n[c][1], p01);
      p02 = W::AndXor(n[c][0], n[c][2], p02);
      p12 = W::AndXor(n[c][1], n[c][2], p12);
      p23 = W::AndXor(n[c][2], n[c][3], p23);
      p13 = W::AndXor(n[c][1], n[c][3], p13);
      p03 = W::AndXor(n[c][0], n[c][3], p03);
      n0 = W::Xor(n0, n[c][0]);
      n1 = W::Xor(n1, n[c][1]);
      n2 = W::Xor(n2, n[c][2]);
      n3 = W::Xor(n3, n[c][3]);
      msg4[0] = W::AndXor(q[c][0], W::Xor(n[c][1], n[c][2]), msg4[0]);
      msg4[1] = W::AndXor(q[c][0], n[c][3], msg4[1]);
      msg4[2] = W::AndXor(q[c][0], n[c][0], msg4[2]);
      msg4[3] = W::AndXor(q[c][0], n[c][1], msg4[3]);
    }
    const T cubic = W::Xor3(p01, p02, p12);
    const T n123 = W::Xor3(n1, n2, n3);
    const T p13_23 = W::Xor(p13, p23);
    msg4[0] = W::Xor3(msg4[0], W::Xor3(cubic, p23, n0), n123);
    msg4[1] = W::Xor3(msg4[1], W::Xor(cubic, p13_23), n3);
    msg4[2] = W::Xor3(msg4[2], W::Xor3(p02, p03, n2), n3);
    msg4[3] = W::Xor3(msg4[3], W::Xor3(p01, p03, p13_23), n123);
  }

  // y = Map, as a rule the affine part, of ((a+b)*M + b*M*theta), summed over the components.
  template <class Map>
  MPCKDC_INLINE static void Product(const T (*x)[8], const T (*m)[4], T* y) {
    const T zero = W::Zero();
    T low[7] = {zero, zero, zero, zero, zero, zero, zero};
    T high[7] = {zero, zero, zero, zero, zero, zero, zero};
    for (int c = 0; c < C; ++c) {
      T sum[4];
      for (int k = 0; k < 4; ++k) sum[k] = W::Xor(x[c][k], x[c][4 + k]);
      F::MulAdd(sum, m[c], low);
      F::MulAdd(x[c] + 4, m[c], high);
    }
    F::Reduce(low);
    F::Reduce(high);
    const T tower[8] = {low[0], low[1], low[2], low[3], high[0], high[1], high[2], high[3]};
    F::template Apply<Map>(tower, y);
  }

  // msg: u0, u1, then v = x^16 * N^4 = ((a+b)*N^4, b*N^4).
  MPCKDC_INLINE static void Twist(const T (*x)[8], const T (*n)[4], T* msg) {
    const T zero = W::Zero();
    T low[7] = {msg[2], msg[3], msg[4], msg[5], zero, zero, zero};
    T high[7] = {msg[6], msg[7], msg[8], msg[9], zero, zero, zero};
    for (int c = 0; c < C; ++c) {
      T u[2], n4[4], sum[4];
      F::TenthPower(n[c], u);
      msg[0] = W::Xor(msg[0], u[0]);
      msg[1] = W::Xor(msg[1], u[1]);
      F::FourthPower(n[c], n4);
      for (int k = 0; k < 4; ++k) sum[k] = W::Xor(x[c][k], x[c][4 + k]);
      F::MulAdd(sum, n4, low);
      F::MulAdd(x[c] + 4, n4, high);
    }
    F::Reduce(low);
    F::Reduce(high);
    for (int k = 0; k < 4; ++k) {
      msg[2 + k] = low[k];
      msg[6 + k] = high[k];
    }
  }

  // y = Map, as a rule the affine part, of u*v, summed over the components. uv: u0, u1, v of each
  // component. w^5 times (1, w, w^2, w^3) = (w^2+w, w^3+w^2, w^3+w+1, w^2+1).
  template <class Map>
  MPCKDC_INLINE static void Scale(const T (*uv)[10], T* y) {
    static_assert(tower::Mul16(6, 2) == 12 && tower::Mul16(6, 4) == 11 &&
                  tower::Mul16(6, 8) == 5);
    T tower[8];
    for (T& t : tower) t = W::Zero();
    for (int c = 0; c < C; ++c) {
      const T u0 = uv[c][0], u1 = uv[c][1];
      for (int half = 0; half < 8; half += 4) {
        const T* v = uv[c] + 2 + half;
        const T turned[4] = {W::Xor(v[2], v[3]), W::Xor(v[0], v[2]), W::Xor3(v[0], v[1], v[3]),
                             W::Xor(v[1], v[2])};
        for (int k = 0; k < 4; ++k) {
          tower[half + k] = W::AndXor(u0, v[k], W::AndXor(u1, turned[k], tower[half + k]));
        }
      }
    }
    F::template Apply<Map>(tower, y);
  }
};

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_AES_SBOX_H_
