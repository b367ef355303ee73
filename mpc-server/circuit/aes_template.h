// SPDX-License-Identifier: Apache-2.0
// AES once, over a word type W (bitslice/word_*.h) and a number C of components per value: C = 1
// computes on plain bits, C = 2 on both halves of a share. Nothing here knows which. The S-box is
// cut into stages that open a few bits each (sbox.h); this file runs them over rows.
//
// The opened value's components are (sent ^ received, sent), or just `sent` when C = 1. The last
// stage of an S-box applies the affine map's linear part, ShiftRows and MixColumns before sending.
//
// A message holds its zero share on entry, or `source` says how to make it while the stage runs: a
// whole group's only.
//
// Memory: rows of 64 bytes (bitslice/slices.h). A buffer of a value has C planes of rows. Every
// function works on the first `width` bytes of each row, rounded up to whole words.
#ifndef MPC_SERVER_CIRCUIT_AES_TEMPLATE_H_
#define MPC_SERVER_CIRCUIT_AES_TEMPLATE_H_

#include <cstddef>
#include <cstdint>

#include "mpc-server/circuit/aes_kernels.h"
#include "mpc-server/circuit/sbox.h"
#include "mpc-server/randomness/ctr_stream.h"

namespace mpckdc {

// Where a message's zero share is there already.
struct NoZeros {
  static constexpr bool kMakes = false;
  explicit NoZeros(const ZeroSource*) {}
  template <size_t kRows>
  void Fill(uint8_t*) {}
};

template <class W, int C, class Zeros = NoZeros>
struct AesStages : SboxOfByte<W, C> {
  using Byte = SboxOfByte<W, C>;
  using T = typename W::T;
  static constexpr size_t kRow = 64;

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
#pragma GCC unroll 10
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
      Byte::template Apply<typename Byte::ToTowerMap>(in[c], x[c]);
      for (size_t k = 0; k < 8; ++k) W::Store(state + c * plane + k * kRow, x[c][k]);
    }
    T r[4];
    for (size_t k = 0; k < 4; ++k) r[k] = W::Load(msg + k * kRow);
    Byte::Norm(x, r);
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
                    size_t width, const ZeroSource* source = nullptr) {
    Zeros zeros(source);
    for (size_t o = 0; o < width; o += W::kBytes) {
      for (size_t i = 0; i < 16; ++i) {
        if (o == 0) zeros.template Fill<4>(msg + 4 * i * kRow);
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
                   uint8_t* state, uint8_t* msg, size_t width, const ZeroSource* source = nullptr) {
    Zeros zeros(source);
    for (size_t o = 0; o < width; o += W::kBytes) {
      for (size_t i = 0; i < 16; ++i) {
        const size_t at = 8 * i * kRow + o;
        if (o == 0) zeros.template Fill<4>(msg + 4 * i * kRow);
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
                          uint8_t* norm, uint8_t* msg, size_t width,
                          const ZeroSource* source = nullptr) {
    const size_t plane = 4 * bytes * kRow;
    Zeros zeros(source);
    for (size_t o = 0; o < width; o += W::kBytes) {
      for (size_t i = 0; i < bytes; ++i) {
        const size_t at = 4 * i * kRow + o;
        if (o == 0 && i % 4 == 0) zeros.template Fill<4>(msg + i * kRow);
        T n[C][4];
        OpenedRows<4>(sent + at, C == 2 ? received + at : nullptr, n);
        for (int c = 0; c < C; ++c) {
          for (size_t k = 0; k < 4; ++k) W::Store(norm + c * plane + at + k * kRow, n[c][k]);
        }
        uint8_t* m = msg + i * kRow + o;
        W::StoreMessage(m, Byte::Helper(n, W::Load(m)));
      }
    }
  }

  static void InverseStage(size_t bytes, const uint8_t* norm, const uint8_t* sent,
                           const uint8_t* received, uint8_t* msg, size_t width,
                           const ZeroSource* source = nullptr) {
    const size_t plane = 4 * bytes * kRow;
    Zeros zeros(source);
    for (size_t o = 0; o < width; o += W::kBytes) {
      for (size_t i = 0; i < bytes; ++i) {
        const size_t at = 4 * i * kRow + o;
        if (o == 0) zeros.template Fill<4>(msg + 4 * i * kRow);
        T n[C][4], q[C], r[4];
        for (int c = 0; c < C; ++c) {
          for (size_t k = 0; k < 4; ++k) n[c][k] = W::Load(norm + c * plane + at + k * kRow);
        }
        Opened(sent + i * kRow + o, C == 2 ? received + i * kRow + o : nullptr, q);
        for (size_t k = 0; k < 4; ++k) r[k] = W::Load(msg + at + k * kRow);
        Byte::Inverse(n, q, r);
        for (size_t k = 0; k < 4; ++k) W::StoreMessage(msg + at + k * kRow, r[k]);
      }
    }
  }

  MPCKDC_INLINE static void ProductByte(const uint8_t* state, size_t plane, const uint8_t* sent,
                                 const uint8_t* received, T* y) {
    T x[C][8], m[C][4];
    LoadByte(state, plane, x);
    OpenedRows<4>(sent, received, m);
    Byte::Product(x, m, y);
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

  // The last stage of an S-box layer: byte_of(i, o, y) gives byte i's share at row offset o.
  template <class ByteOf>
  MPCKDC_INLINE static void LinearStage(AesLinear linear, uint8_t* msg, size_t width,
                                        const ZeroSource* source, ByteOf byte_of) {
    const bool word = linear == AesLinear::kWord;
    const size_t columns = word ? 1 : 4;
    Zeros zeros(source);
    for (size_t o = 0; o < width; o += W::kBytes) {
      for (size_t c = 0; c < columns; ++c) {
        T y[4][8];
        for (size_t r = 0; r < 4; ++r) {
          uint8_t* rows = msg + (32 * c + 8 * r) * kRow;
          if (o == 0) zeros.template Fill<4>(rows);
          byte_of(word ? r : 4 * ((c + r) % 4) + r, o, y[r]);  // ShiftRows
          if (o == 0) zeros.template Fill<4>(rows + 4 * kRow);
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

  static void ProductStage(AesLinear linear, const uint8_t* state, const uint8_t* sent,
                           const uint8_t* received, uint8_t* msg, size_t width,
                           const ZeroSource* source = nullptr) {
    const size_t plane = (linear == AesLinear::kWord ? 32 : 128) * kRow;
    LinearStage(linear, msg, width, source, [&](size_t i, size_t o, T* y) MPCKDC_LAMBDA_INLINE {
      ProductByte(state + 8 * i * kRow + o, plane, sent + 4 * i * kRow + o,
                  C == 2 ? received + 4 * i * kRow + o : nullptr, y);
    });
  }

  // --- the latency S-box -----------------------------------------------------------------------
  static void TwistStage(size_t bytes, const uint8_t* state, const uint8_t* sent,
                         const uint8_t* received, uint8_t* msg, size_t width,
                         const ZeroSource* source = nullptr) {
    const size_t plane = 8 * bytes * kRow;
    Zeros zeros(source);
    for (size_t o = 0; o < width; o += W::kBytes) {
      for (size_t i = 0; i < bytes; ++i) {
        const size_t at = 4 * i * kRow + o;
        if (o == 0 && i % 2 == 0) zeros.template Fill<20>(msg + 10 * i * kRow);
        T x[C][8], n[C][4], r[10];
        LoadByte(state + 8 * i * kRow + o, plane, x);
        OpenedRows<4>(sent + at, C == 2 ? received + at : nullptr, n);
        uint8_t* m = msg + 10 * i * kRow + o;
        for (size_t k = 0; k < 10; ++k) r[k] = W::Load(m + k * kRow);
        Byte::Twist(x, n, r);
        for (size_t k = 0; k < 10; ++k) W::StoreMessage(m + k * kRow, r[k]);
      }
    }
  }

  static void ScaleStage(AesLinear linear, const uint8_t* sent, const uint8_t* received,
                         uint8_t* msg, size_t width, const ZeroSource* source = nullptr) {
    LinearStage(linear, msg, width, source, [&](size_t i, size_t o, T* y) MPCKDC_LAMBDA_INLINE {
      T uv[C][10];
      const size_t at = 10 * i * kRow + o;
      OpenedRows<10>(sent + at, C == 2 ? received + at : nullptr, uv);
      Byte::Scale(uv, y);
    });
  }

  // --- key schedule ----------------------------------------------------------------------------
  // `words`: C planes of 32 rows per word; `plane` bytes apart.
  static void WordStart(const uint8_t* words, size_t plane, size_t i, bool rotate, uint8_t* state,
                        uint8_t* msg, size_t width, const ZeroSource* source = nullptr) {
    Zeros zeros(source);
    for (size_t o = 0; o < width; o += W::kBytes) {
      for (size_t b = 0; b < 4; ++b) {
        const size_t from = rotate ? (b + 1) % 4 : b;
        if (o == 0) zeros.template Fill<4>(msg + 4 * b * kRow);
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
    return {Start,      Next,      Finish,    HelperStage, InverseStage, ProductStage,
            TwistStage, ScaleStage, WordStart, WordFinish,  W::kBytes, Zeros::kMakes};
  }
};

}  // namespace mpckdc

#undef MPCKDC_INLINE
#undef MPCKDC_LAMBDA_INLINE

#endif  // MPC_SERVER_CIRCUIT_AES_TEMPLATE_H_
