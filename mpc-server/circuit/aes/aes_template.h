// SPDX-License-Identifier: Apache-2.0
// AES once, over a word type W (bitslice/word_*.h) and a number C of components per value: C = 1
// computes on plain bits, C = 2 on both halves of a share. Nothing here knows which. The S-box is
// cut into stages that open a few bits each (sbox.h); this file runs them over rows.
//
// The opened value's components are (sent ^ received, sent), or just `sent` when C = 1. The last
// stage of an S-box applies the affine map's linear part, ShiftRows and MixColumns before sending.
//
// Decryption is the inverse cipher (FIPS 197, 5.3) under the same round keys, last one first. Its
// last stage applies InvShiftRows before sending; the next round's first stage adds the round key,
// applies InvMixColumns to the components, takes the constant off and applies the affine map's
// inverse.
//
// A message holds its zero share on entry, or `source` says how to make it while the stage runs: a
// whole group's only.
//
// Memory: rows of 64 bytes (circuit/bitslice/slices.h). A buffer of a value has C planes of rows.
// Every function works on the first `width` bytes of each row, rounded up to whole words.
#ifndef MPC_SERVER_CIRCUIT_AES_AES_TEMPLATE_H_
#define MPC_SERVER_CIRCUIT_AES_AES_TEMPLATE_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "mpc-server/circuit/aes/aes_kernels.h"
#include "mpc-server/circuit/aes/sbox.h"
#include "mpc-server/share/ctr_stream.h"

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

  // A byte's value in the AES basis becomes S-box input: tower basis (by Map) into `state`, norm
  // into msg.
  template <class Map = typename Byte::ToTowerMap>
  MPCKDC_INLINE static void EnterSbox(const T (*in)[8], uint8_t* state, size_t plane,
                                      uint8_t* msg) {
    T x[C][8];
    for (int c = 0; c < C; ++c) {
      Byte::template Apply<Map>(in[c], x[c]);
      for (size_t k = 0; k < 8; ++k) W::Store(state + c * plane + k * kRow, x[c][k]);
    }
    T r[4];
    for (size_t k = 0; k < 4; ++k) r[k] = W::Load(msg + k * kRow);
    Byte::Norm(x, r);
    for (size_t k = 0; k < 4; ++k) W::Store(msg + k * kRow, r[k]);
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

  // --- decryption --------------------------------------------------------------------------------
  MPCKDC_INLINE static void EnterInverseSbox(T (*v)[8], uint8_t* state, uint8_t* msg) {
    AddConstant(tower::kSboxConstant, v[C - 1]);
    EnterSbox<typename Byte::SboxToTowerMap>(v, state, kBlockPlane, msg);
  }

  static void DecryptStart(const uint8_t* input, const uint8_t* key, uint8_t* state, uint8_t* msg,
                           size_t width, const ZeroSource* source = nullptr) {
    Zeros zeros(source);
    for (size_t o = 0; o < width; o += W::kBytes) {
      for (size_t i = 0; i < 16; ++i) {
        const size_t at = 8 * i * kRow + o;
        if (o == 0) zeros.template Fill<4>(msg + 4 * i * kRow);
        T v[C][8];
        LoadByte(input + at, kBlockPlane, v);
        AddByte(key + at, kBlockPlane, v);
        EnterInverseSbox(v, state + at, msg + 4 * i * kRow + o);
      }
    }
  }

  // What the last stage opened, and the round key: one byte.
  MPCKDC_INLINE static void DecryptedByte(const uint8_t* sent, const uint8_t* received,
                                          const uint8_t* key, size_t at, T (*v)[8]) {
    OpenedRows<8>(sent + at, C == 2 ? received + at : nullptr, v);
    AddByte(key + at, kBlockPlane, v);
  }

  static void DecryptNext(const uint8_t* sent, const uint8_t* received, const uint8_t* key,
                          uint8_t* state, uint8_t* msg, size_t width,
                          const ZeroSource* source = nullptr) {
    Zeros zeros(source);
    for (size_t o = 0; o < width; o += W::kBytes) {
      for (size_t column = 0; column < 16; column += 4) {
        T y[C][4][8];
        for (size_t r = 0; r < 4; ++r) {
          T v[C][8];
          DecryptedByte(sent, received, key, 8 * (column + r) * kRow + o, v);
          for (int c = 0; c < C; ++c) {
            for (int k = 0; k < 8; ++k) y[c][r][k] = v[c][k];
          }
        }
        for (int c = 0; c < C; ++c) InvMixColumn(y[c]);
        for (size_t r = 0; r < 4; ++r) {
          const size_t i = column + r;
          if (o == 0) zeros.template Fill<4>(msg + 4 * i * kRow);
          T v[C][8];
          for (int c = 0; c < C; ++c) {
            for (int k = 0; k < 8; ++k) v[c][k] = y[c][r][k];
          }
          EnterInverseSbox(v, state + 8 * i * kRow + o, msg + 4 * i * kRow + o);
        }
      }
    }
  }

  static void DecryptFinish(const uint8_t* sent, const uint8_t* received, const uint8_t* key,
                            uint8_t* output, size_t width) {
    for (size_t o = 0; o < width; o += W::kBytes) {
      for (size_t i = 0; i < 16; ++i) {
        const size_t at = 8 * i * kRow + o;
        T v[C][8];
        DecryptedByte(sent, received, key, at, v);
        for (int c = 0; c < C; ++c) {
          for (size_t k = 0; k < 8; ++k) {
            W::Store(output + c * kBlockPlane + at + k * kRow, v[c][k]);
          }
        }
      }
    }
  }

  // --- the S-box's stages after the norm ---------------------------------------------------------
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
        W::Store(m, Byte::Helper(n, W::Load(m)));
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
        for (size_t k = 0; k < 4; ++k) W::Store(msg + at + k * kRow, r[k]);
      }
    }
  }

  template <class Map>
  MPCKDC_INLINE static void ProductByte(const uint8_t* state, size_t plane, const uint8_t* sent,
                                 const uint8_t* received, T* y) {
    T x[C][8], m[C][4];
    LoadByte(state, plane, x);
    OpenedRows<4>(sent, received, m);
    Byte::template Product<Map>(x, m, y);
  }
  MPCKDC_INLINE static void AddToMessage(const T* y, uint8_t* msg) {
    for (size_t k = 0; k < 8; ++k) {
      W::Store(msg + k * kRow, W::Xor(y[k], W::Load(msg + k * kRow)));
    }
  }

  // Bit k of 2*y.
  MPCKDC_INLINE static T Doubled(const T* y, int k) {
    const T shifted = y[(k + 7) % 8];
    return k == 1 || k == 3 || k == 4 ? W::Xor(shifted, y[7]) : shifted;
  }
  // MixColumns of one column: out_r = 2*(y_r + y_{r+1}) + y_{r+1} + (y_{r+2} + y_{r+3}).
  // take(r, out) gets the four in turn.
  template <class Take>
  MPCKDC_INLINE static void MixColumn(const T (*y)[8], Take take) {
    T t[4][8];
    for (int r = 0; r < 4; ++r) {
      for (int k = 0; k < 8; ++k) t[r][k] = W::Xor(y[r][k], y[(r + 1) % 4][k]);
    }
    for (int r = 0; r < 4; ++r) {
      T out[8];
      for (int k = 0; k < 8; ++k) {
        out[k] = W::Xor3(Doubled(t[r], k), y[(r + 1) % 4][k], t[(r + 2) % 4][k]);
      }
      take(r, out);
    }
  }
  MPCKDC_INLINE static void MixInto(const T (*y)[8], uint8_t* msg) {
    MixColumn(y, [msg](int r, const T* out) MPCKDC_LAMBDA_INLINE {
      AddToMessage(out, msg + 8 * static_cast<size_t>(r) * kRow);
    });
  }
  // In place. MixColumns is multiplication by m = 3x^3 + x^2 + x + 2 modulo x^4 + 1, and m^4 = 1;
  // its inverse is m * m^2, where m^2 = 5 + 4x^2: y_r += 4*(y_r + y_{r+2}), then MixColumns.
  MPCKDC_INLINE static void InvMixColumn(T (*y)[8]) {
    for (int r = 0; r < 2; ++r) {
      T sum[8], twice[8];
      for (int k = 0; k < 8; ++k) sum[k] = W::Xor(y[r][k], y[r + 2][k]);
      for (int k = 0; k < 8; ++k) twice[k] = Doubled(sum, k);
      for (int k = 0; k < 8; ++k) {
        const T quadruple = Doubled(twice, k);
        y[r][k] = W::Xor(y[r][k], quadruple);
        y[r + 2][k] = W::Xor(y[r + 2][k], quadruple);
      }
    }
    T mixed[4][8];
    MixColumn(y, [&mixed](int r, const T* out) MPCKDC_LAMBDA_INLINE {
      for (int k = 0; k < 8; ++k) mixed[r][k] = out[k];
    });
    for (int r = 0; r < 4; ++r) {
      for (int k = 0; k < 8; ++k) y[r][k] = mixed[r][k];
    }
  }

  // From the tower basis to what an S-box layer sends.
  template <bool kInverse>
  using LastMap = std::conditional_t<kInverse, typename Byte::FromTowerMap,
                                     typename Byte::TowerToSboxMap>;
  // The last stage of an S-box layer: byte_of(i, o, y) gives byte i's share at row offset o.
  template <bool kInverse, class ByteOf>
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
          const size_t from = kInverse ? c + 4 - r : c + r;
          byte_of(word ? r : 4 * (from % 4) + r, o, y[r]);  // ShiftRows or InvShiftRows
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

  template <bool kInverse>
  MPCKDC_INLINE static void Product(AesLinear linear, const uint8_t* state, const uint8_t* sent,
                                    const uint8_t* received, uint8_t* msg, size_t width,
                                    const ZeroSource* source) {
    const size_t plane = (linear == AesLinear::kWord ? 32 : 128) * kRow;
    LinearStage<kInverse>(
        linear, msg, width, source, [&](size_t i, size_t o, T* y) MPCKDC_LAMBDA_INLINE {
          ProductByte<LastMap<kInverse>>(state + 8 * i * kRow + o, plane, sent + 4 * i * kRow + o,
                                         C == 2 ? received + 4 * i * kRow + o : nullptr, y);
        });
  }
  static void ProductStage(AesLinear linear, const uint8_t* state, const uint8_t* sent,
                           const uint8_t* received, uint8_t* msg, size_t width,
                           const ZeroSource* source = nullptr) {
    if (linear == AesLinear::kInvShiftRows) {
      Product<true>(linear, state, sent, received, msg, width, source);
    } else {
      Product<false>(linear, state, sent, received, msg, width, source);
    }
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
        for (size_t k = 0; k < 10; ++k) W::Store(m + k * kRow, r[k]);
      }
    }
  }

  template <bool kInverse>
  MPCKDC_INLINE static void Scale(AesLinear linear, const uint8_t* sent, const uint8_t* received,
                                  uint8_t* msg, size_t width, const ZeroSource* source) {
    LinearStage<kInverse>(
        linear, msg, width, source, [&](size_t i, size_t o, T* y) MPCKDC_LAMBDA_INLINE {
          T uv[C][10];
          const size_t at = 10 * i * kRow + o;
          OpenedRows<10>(sent + at, C == 2 ? received + at : nullptr, uv);
          Byte::template Scale<LastMap<kInverse>>(uv, y);
        });
  }
  static void ScaleStage(AesLinear linear, const uint8_t* sent, const uint8_t* received,
                         uint8_t* msg, size_t width, const ZeroSource* source = nullptr) {
    if (linear == AesLinear::kInvShiftRows) {
      Scale<true>(linear, sent, received, msg, width, source);
    } else {
      Scale<false>(linear, sent, received, msg, width, source);
    }
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
    return {Start,        Next,         Finish,     DecryptStart, DecryptNext, DecryptFinish,
            HelperStage,  InverseStage, ProductStage, TwistStage, ScaleStage,  WordStart,
            WordFinish,   Zeros::kMakes};
  }
};

}  // namespace mpckdc

#undef MPCKDC_INLINE
#undef MPCKDC_LAMBDA_INLINE

#endif  // MPC_SERVER_CIRCUIT_AES_AES_TEMPLATE_H_
