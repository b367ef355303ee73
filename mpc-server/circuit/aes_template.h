// SPDX-License-Identifier: Apache-2.0
// AES once, over a word type W (bitslice/word_*.h) and a number C of components per value: C = 1
// computes on plain bits, C = 2 on both halves of a share. Nothing here knows which.
//
// The S-box is sbox17's: 17 opened bits in four rounds. With the input byte (a, b) = a + b*theta in
// the tower basis (tower_field.h):
//
//   norm     N = x^17 = a^2 + ab + nu*b^2           4 bits   quadratic in (a, b)
//   helper   q = n0*n1 + n2*n3                      1 bit    quadratic in N
//   inverse  M = N^-1 = q*L(N) + Q'(N)              4 bits   quadratic in (N, q)
//   product  ((a+b)*M, b*M)                         8 bits   quadratic in (a, b, M)
//
// Each stage is a quadratic polynomial f without constant. A stage adds f of every component to its
// message, which on entry holds the zero share:   msg ^= f(c_0) ^ .. ^ f(c_{C-1}).
// The opened value's components are then (sent ^ received, sent), or just `sent` when C = 1.
// The product stage applies the affine map's linear part, ShiftRows and MixColumns before sending.
//
// Memory: rows of 64 bytes (bitslice/slices.h). A buffer of a value has C planes of rows. Every
// function works on the first `width` bytes of each row, rounded up to whole words.
#ifndef MPC_SERVER_CIRCUIT_AES_TEMPLATE_H_
#define MPC_SERVER_CIRCUIT_AES_TEMPLATE_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "mpc-server/circuit/aes_kernels.h"
#include "mpc-server/circuit/tower_field.h"

// The stages must be one body each: values stay in registers.
#define MPCKDC_INLINE inline __attribute__((always_inline))

namespace mpckdc {

template <class W, int C>
struct AesStages {
  using T = typename W::T;
  static constexpr size_t kRow = 64;

  // --- linear maps -----------------------------------------------------------------------------
  struct ToTowerMap {
    static constexpr tower::XorProgram kProgram = tower::Straighten(tower::ToTower());
  };
  struct TowerToSboxMap {
    static constexpr tower::XorProgram kProgram = tower::Straighten(tower::TowerToSbox());
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

  // --- the four stages of one byte -------------------------------------------------------------
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

  MPCKDC_INLINE static void Norm(const T (*x)[8], T* msg4) {
    T e[7] = {msg4[0], msg4[1], msg4[2], msg4[3], W::Zero(), W::Zero(), W::Zero()};
    for (int c = 0; c < C; ++c) MulAdd(x[c], x[c] + 4, e);
    Reduce(e);
    T sum[8];
    for (int k = 0; k < 8; ++k) sum[k] = C == 2 ? W::Xor(x[0][k], x[C - 1][k]) : x[0][k];
    AddSquares(sum, e);
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
  MPCKDC_INLINE static void Inverse(const T (*n)[4], const T* q, T* msg4) {
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
      msg4[0] = W::AndXor(q[c], W::Xor(n[c][1], n[c][2]), msg4[0]);
      msg4[1] = W::AndXor(q[c], n[c][3], msg4[1]);
      msg4[2] = W::AndXor(q[c], n[c][0], msg4[2]);
      msg4[3] = W::AndXor(q[c], n[c][1], msg4[3]);
    }
    const T cubic = W::Xor3(p01, p02, p12);
    const T n123 = W::Xor3(n1, n2, n3);
    const T p13_23 = W::Xor(p13, p23);
    msg4[0] = W::Xor3(msg4[0], W::Xor3(cubic, p23, n0), n123);
    msg4[1] = W::Xor3(msg4[1], W::Xor(cubic, p13_23), n3);
    msg4[2] = W::Xor3(msg4[2], W::Xor3(p02, p03, n2), n3);
    msg4[3] = W::Xor3(msg4[3], W::Xor3(p01, p03, p13_23), n123);
  }

  // y = affine part of ((a+b)*M + b*M*theta), summed over the components.
  MPCKDC_INLINE static void Product(const T (*x)[8], const T (*m)[4], T* y) {
    const T zero = W::Zero();
    T low[7] = {zero, zero, zero, zero, zero, zero, zero};
    T high[7] = {zero, zero, zero, zero, zero, zero, zero};
    for (int c = 0; c < C; ++c) {
      T sum[4];
      for (int k = 0; k < 4; ++k) sum[k] = W::Xor(x[c][k], x[c][4 + k]);
      MulAdd(sum, m[c], low);
      MulAdd(x[c] + 4, m[c], high);
    }
    Reduce(low);
    Reduce(high);
    const T tower[8] = {low[0], low[1], low[2], low[3], high[0], high[1], high[2], high[3]};
    Apply<TowerToSboxMap>(tower, y);
  }

  // --- rows ------------------------------------------------------------------------------------
  // Components of the opened value of one row.
  MPCKDC_INLINE static void Opened(const uint8_t* sent, const uint8_t* received, T* out) {
    const T s = W::Load(sent);
    if constexpr (C == 2) {
      out[0] = W::Xor(s, W::Load(received));
      out[1] = s;
    } else {
      static_cast<void>(received);
      out[0] = s;
    }
  }
  template <int kCount>
  MPCKDC_INLINE static void OpenedRows(const uint8_t* sent, const uint8_t* received,
                                       T (*out)[kCount]) {
#pragma GCC unroll 8
    for (int k = 0; k < kCount; ++k) {
      T v[C];
      Opened(sent + k * kRow, C == 2 ? received + k * kRow : nullptr, v);
      for (int c = 0; c < C; ++c) out[c][k] = v[c];
    }
  }
  // XORs a public byte's bits into the last component.
  MPCKDC_INLINE static void AddConstant(int constant, T* v) {
    for (int k = 0; k < 8; ++k) {
      if (constant >> k & 1) v[k] = W::Not(v[k]);
    }
  }

  // A byte's value in the AES basis becomes S-box input: tower basis into `state`, norm into msg.
  MPCKDC_INLINE static void EnterSbox(const T (*in)[8], uint8_t* state, size_t plane,
                                      uint8_t* msg) {
    T x[C][8];
    for (int c = 0; c < C; ++c) {
      Apply<ToTowerMap>(in[c], x[c]);
      for (size_t k = 0; k < 8; ++k) W::Store(state + c * plane + k * kRow, x[c][k]);
    }
    T r[4];
    for (size_t k = 0; k < 4; ++k) r[k] = W::Load(msg + k * kRow);
    Norm(x, r);
    for (size_t k = 0; k < 4; ++k) W::StoreMessage(msg + k * kRow, r[k]);
  }

  MPCKDC_INLINE static void LoadByte(const uint8_t* rows, size_t plane, T (*out)[8]) {
    for (int c = 0; c < C; ++c) {
      for (size_t k = 0; k < 8; ++k) out[c][k] = W::Load(rows + c * plane + k * kRow);
    }
  }
  MPCKDC_INLINE static void AddByte(const uint8_t* rows, size_t plane, T (*v)[8]) {
    for (int c = 0; c < C; ++c) {
      for (size_t k = 0; k < 8; ++k) {
        v[c][k] = W::Xor(v[c][k], W::Load(rows + c * plane + k * kRow));
      }
    }
  }

  // --- whole stages: the functions of AesKernels -----------------------------------------------
  static constexpr size_t kBlockPlane = 128 * kRow;

  static void Start(const uint8_t* input, const uint8_t* key, uint8_t* state, uint8_t* msg,
                    size_t width) {
    for (size_t o = 0; o < width; o += W::kBytes) {
      for (size_t i = 0; i < 16; ++i) {
        T v[C][8];
        LoadByte(input + 8 * i * kRow + o, kBlockPlane, v);
        AddByte(key + 8 * i * kRow + o, kBlockPlane, v);
        EnterSbox(v, state + 8 * i * kRow + o, kBlockPlane, msg + 4 * i * kRow + o);
      }
    }
  }

  // The end of a round: what the product stage opened, the constant and the round key.
  MPCKDC_INLINE static void RoundByte(const uint8_t* sent, const uint8_t* received,
                                      const uint8_t* key, T (*v)[8]) {
    OpenedRows<8>(sent, received, v);
    AddConstant(tower::kSboxConstant, v[C - 1]);
    AddByte(key, kBlockPlane, v);
  }

  static void Next(const uint8_t* sent, const uint8_t* received, const uint8_t* key,
                   uint8_t* state, uint8_t* msg, size_t width) {
    for (size_t o = 0; o < width; o += W::kBytes) {
      for (size_t i = 0; i < 16; ++i) {
        const size_t at = 8 * i * kRow + o;
        T v[C][8];
        RoundByte(sent + at, C == 2 ? received + at : nullptr, key + at, v);
        EnterSbox(v, state + at, kBlockPlane, msg + 4 * i * kRow + o);
      }
    }
  }

  static void Finish(const uint8_t* sent, const uint8_t* received, const uint8_t* key,
                     uint8_t* output, size_t width) {
    for (size_t o = 0; o < width; o += W::kBytes) {
      for (size_t i = 0; i < 16; ++i) {
        const size_t at = 8 * i * kRow + o;
        T v[C][8];
        RoundByte(sent + at, C == 2 ? received + at : nullptr, key + at, v);
        for (int c = 0; c < C; ++c) {
          for (size_t k = 0; k < 8; ++k) {
            W::Store(output + c * kBlockPlane + at + k * kRow, v[c][k]);
          }
        }
      }
    }
  }

  static void HelperStage(size_t bytes, const uint8_t* sent, const uint8_t* received,
                          uint8_t* norm, uint8_t* msg, size_t width) {
    const size_t plane = 4 * bytes * kRow;
    for (size_t o = 0; o < width; o += W::kBytes) {
      for (size_t i = 0; i < bytes; ++i) {
        const size_t at = 4 * i * kRow + o;
        T n[C][4];
        OpenedRows<4>(sent + at, C == 2 ? received + at : nullptr, n);
        for (int c = 0; c < C; ++c) {
          for (size_t k = 0; k < 4; ++k) W::Store(norm + c * plane + at + k * kRow, n[c][k]);
        }
        uint8_t* m = msg + i * kRow + o;
        W::StoreMessage(m, Helper(n, W::Load(m)));
      }
    }
  }

  static void InverseStage(size_t bytes, const uint8_t* norm, const uint8_t* sent,
                           const uint8_t* received, uint8_t* msg, size_t width) {
    const size_t plane = 4 * bytes * kRow;
    for (size_t o = 0; o < width; o += W::kBytes) {
      for (size_t i = 0; i < bytes; ++i) {
        const size_t at = 4 * i * kRow + o;
        T n[C][4], q[C], r[4];
        for (int c = 0; c < C; ++c) {
          for (size_t k = 0; k < 4; ++k) n[c][k] = W::Load(norm + c * plane + at + k * kRow);
        }
        Opened(sent + i * kRow + o, C == 2 ? received + i * kRow + o : nullptr, q);
        for (size_t k = 0; k < 4; ++k) r[k] = W::Load(msg + at + k * kRow);
        Inverse(n, q, r);
        for (size_t k = 0; k < 4; ++k) W::StoreMessage(msg + at + k * kRow, r[k]);
      }
    }
  }

  MPCKDC_INLINE static void ProductByte(const uint8_t* state, size_t plane, const uint8_t* sent,
                                 const uint8_t* received, T* y) {
    T x[C][8], m[C][4];
    LoadByte(state, plane, x);
    OpenedRows<4>(sent, received, m);
    Product(x, m, y);
  }
  MPCKDC_INLINE static void AddToMessage(const T* y, uint8_t* msg) {
    for (size_t k = 0; k < 8; ++k) {
      W::StoreMessage(msg + k * kRow, W::Xor(y[k], W::Load(msg + k * kRow)));
    }
  }

  // MixColumns of one column: out_r = 2*(y_r + y_{r+1}) + y_{r+1} + (y_{r+2} + y_{r+3}).
  MPCKDC_INLINE static void MixInto(const T (*y)[8], uint8_t* msg) {
    T t[4][8];
    for (int r = 0; r < 4; ++r) {
      for (int k = 0; k < 8; ++k) t[r][k] = W::Xor(y[r][k], y[(r + 1) % 4][k]);
    }
    for (int r = 0; r < 4; ++r) {
      T out[8];
      for (int k = 0; k < 8; ++k) {
        const T doubled = t[r][(k + 7) % 8];
        out[k] = W::Xor3(doubled, y[(r + 1) % 4][k], t[(r + 2) % 4][k]);
        if (k == 1 || k == 3 || k == 4) out[k] = W::Xor(out[k], t[r][7]);
      }
      AddToMessage(out, msg + 8 * static_cast<size_t>(r) * kRow);
    }
  }

  static void ProductStage(AesLinear linear, const uint8_t* state, const uint8_t* sent,
                           const uint8_t* received, uint8_t* msg, size_t width) {
    const bool word = linear == AesLinear::kWord;
    const size_t plane = (word ? 32 : 128) * kRow;
    const size_t columns = word ? 1 : 4;
    for (size_t o = 0; o < width; o += W::kBytes) {
      for (size_t c = 0; c < columns; ++c) {
        T y[4][8];
        for (size_t r = 0; r < 4; ++r) {
          const size_t i = word ? r : 4 * ((c + r) % 4) + r;  // ShiftRows
          ProductByte(state + 8 * i * kRow + o, plane, sent + 4 * i * kRow + o,
                      C == 2 ? received + 4 * i * kRow + o : nullptr, y[r]);
        }
        uint8_t* column = msg + 32 * c * kRow + o;
        if (linear == AesLinear::kMixColumns) {
          MixInto(y, column);
        } else {
          for (size_t r = 0; r < 4; ++r) AddToMessage(y[r], column + 8 * r * kRow);
        }
      }
    }
  }

  // --- key schedule ----------------------------------------------------------------------------
  // `words`: C planes of 32 rows per word; `plane` bytes apart.
  static void WordStart(const uint8_t* words, size_t plane, size_t i, bool rotate, uint8_t* state,
                        uint8_t* msg, size_t width) {
    for (size_t o = 0; o < width; o += W::kBytes) {
      for (size_t b = 0; b < 4; ++b) {
        const size_t from = rotate ? (b + 1) % 4 : b;
        T v[C][8];
        LoadByte(words + (32 * (i - 1) + 8 * from) * kRow + o, plane, v);
        EnterSbox(v, state + 8 * b * kRow + o, 32 * kRow, msg + 4 * b * kRow + o);
      }
    }
  }

  // w[i] = w[i-nk] ^ SubWord ^ rcon, then w[j] = w[j-nk] ^ w[j-1] for i < j < end.
  static void WordFinish(uint8_t* words, size_t plane, size_t nk, size_t i, size_t end, int rcon,
                         const uint8_t* sent, const uint8_t* received, size_t width) {
    for (size_t o = 0; o < width; o += W::kBytes) {
      for (size_t b = 0; b < 4; ++b) {
        T v[C][8];
        const size_t at = 8 * b * kRow + o;
        OpenedRows<8>(sent + at, C == 2 ? received + at : nullptr, v);
        AddConstant(tower::kSboxConstant ^ (b == 0 ? rcon : 0), v[C - 1]);
        for (size_t j = i; j < end; ++j) {
          AddByte(words + 32 * (j - nk) * kRow + at, plane, v);
          for (int c = 0; c < C; ++c) {
            for (size_t k = 0; k < 8; ++k) {
              W::Store(words + c * plane + 32 * j * kRow + at + k * kRow, v[c][k]);
            }
          }
        }
      }
    }
  }

  static constexpr AesKernels Kernels() {
    return {Start,       Next,      Finish,     HelperStage, InverseStage,
            ProductStage, WordStart, WordFinish, W::kBytes};
  }
};

}  // namespace mpckdc

#undef MPCKDC_INLINE

#endif  // MPC_SERVER_CIRCUIT_AES_TEMPLATE_H_
