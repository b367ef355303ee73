// SPDX-License-Identifier: Apache-2.0
// Bytes in rows of bits, for the stages of aes_template.h: how they are loaded, opened and stored,
// and how one enters the S-box. A value has C planes of rows, `plane` bytes apart.
//
// The opened value's components are (sent ^ received, sent), or just `sent` when C = 1: then nobody
// looks at `received`.
#ifndef MPC_SERVER_CIRCUIT_AES_BYTE_ROWS_H_
#define MPC_SERVER_CIRCUIT_AES_BYTE_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "mpc-server/circuit/aes/sbox.h"

namespace mpckdc {

template <class W, int C>
struct ByteRows {
  using T = typename W::T;
  using Sbox = SboxOfByte<W, C>;
  static constexpr size_t kRow = 64;
  static constexpr size_t kBlockPlane = 128 * kRow;

  MPCKDC_INLINE static void Load(const uint8_t* rows, size_t plane, T (*out)[8]) {
    for (int c = 0; c < C; ++c) {
      for (size_t k = 0; k < 8; ++k) out[c][k] = W::Load(rows + c * plane + k * kRow);
    }
  }
  MPCKDC_INLINE static void Add(const uint8_t* rows, size_t plane, T (*v)[8]) {
    for (int c = 0; c < C; ++c) {
      for (size_t k = 0; k < 8; ++k) {
        v[c][k] = W::Xor(v[c][k], W::Load(rows + c * plane + k * kRow));
      }
    }
  }
  MPCKDC_INLINE static void Store(const T (*v)[8], uint8_t* rows, size_t plane) {
    for (int c = 0; c < C; ++c) {
      for (size_t k = 0; k < 8; ++k) W::Store(rows + c * plane + k * kRow, v[c][k]);
    }
  }
  // XORs a public byte's bits into the last component.
  MPCKDC_INLINE static void AddConstant(int constant, T* v) {
    for (int k = 0; k < 8; ++k) {
      if (constant >> k & 1) v[k] = W::Not(v[k]);
    }
  }
  MPCKDC_INLINE static void AddToMessage(const T* y, uint8_t* msg) {
    for (size_t k = 0; k < 8; ++k) {
      W::Store(msg + k * kRow, W::Xor(y[k], W::Load(msg + k * kRow)));
    }
  }

  // kCount rows from `at` on.
  template <size_t kCount>
  MPCKDC_INLINE static void Opened(const uint8_t* sent, const uint8_t* received, size_t at,
                                   T (*out)[kCount]) {
#pragma GCC unroll 10
    for (size_t k = 0; k < kCount; ++k) {
      const T s = W::Load(sent + at + k * kRow);
      if constexpr (C == 2) {
        out[0][k] = W::Xor(s, W::Load(received + at + k * kRow));
        out[1][k] = s;
      } else {
        out[0][k] = s;
      }
    }
  }

  // A byte's value in the AES basis becomes S-box input: tower basis (by Map) into `state`, norm
  // into msg.
  template <class Map = typename Sbox::ToTowerMap>
  MPCKDC_INLINE static void EnterSbox(const T (*in)[8], uint8_t* state, size_t plane,
                                      uint8_t* msg) {
    T x[C][8], r[4];
    for (int c = 0; c < C; ++c) Sbox::template Apply<Map>(in[c], x[c]);
    Store(x, state, plane);
    for (size_t k = 0; k < 4; ++k) r[k] = W::Load(msg + k * kRow);
    Sbox::Norm(x, r);
    for (size_t k = 0; k < 4; ++k) W::Store(msg + k * kRow, r[k]);
  }
};

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_AES_BYTE_ROWS_H_
