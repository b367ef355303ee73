// SPDX-License-Identifier: Apache-2.0
// The stages at the edges of a round (see aes_template.h): round keys go in, S-boxes begin.
//
// Decryption is the inverse cipher (FIPS 197, 5.3) under the same round keys, last one first. Its
// S-box layer ends with InvShiftRows; the next round's first stage adds the round key, applies
// InvMixColumns to the components, takes the constant off and applies the affine map's inverse.
#ifndef MPC_SERVER_CIRCUIT_AES_CIPHER_STAGES_H_
#define MPC_SERVER_CIRCUIT_AES_CIPHER_STAGES_H_

#include "mpc-server/circuit/aes/byte_rows.h"
#include "mpc-server/circuit/aes/mix_columns.h"
#include "mpc-server/share/ctr_stream.h"

namespace mpckdc {

template <class W, int C, class Zeros>
struct CipherStages {
  using T = typename W::T;
  using Rows = ByteRows<W, C>;
  static constexpr size_t kRow = Rows::kRow;
  static constexpr size_t kPlane = Rows::kBlockPlane;

  static void Start(const uint8_t* input, const uint8_t* key, uint8_t* state, uint8_t* msg,
                    size_t width, const ZeroSource* source = nullptr) {
    Zeros zeros(source);
    for (size_t o = 0; o < width; o += W::kBytes) {
      for (size_t i = 0; i < 16; ++i) {
        const size_t at = 8 * i * kRow + o;
        if (o == 0) zeros.template Fill<4>(msg + 4 * i * kRow);
        T v[C][8];
        Rows::Load(input + at, kPlane, v);
        Rows::Add(key + at, kPlane, v);
        Rows::EnterSbox(v, state + at, kPlane, msg + 4 * i * kRow + o);
      }
    }
  }

  static void Next(const uint8_t* sent, const uint8_t* received, const uint8_t* key,
                   uint8_t* state, uint8_t* msg, size_t width, const ZeroSource* source = nullptr) {
    Zeros zeros(source);
    for (size_t o = 0; o < width; o += W::kBytes) {
      for (size_t i = 0; i < 16; ++i) {
        const size_t at = 8 * i * kRow + o;
        if (o == 0) zeros.template Fill<4>(msg + 4 * i * kRow);
        T v[C][8];
        RoundByte(sent, received, key, at, v);
        Rows::EnterSbox(v, state + at, kPlane, msg + 4 * i * kRow + o);
      }
    }
  }

  static void Finish(const uint8_t* sent, const uint8_t* received, const uint8_t* key,
                     uint8_t* output, size_t width) {
    for (size_t o = 0; o < width; o += W::kBytes) {
      for (size_t at = o; at < kPlane; at += 8 * kRow) {
        T v[C][8];
        RoundByte(sent, received, key, at, v);
        Rows::Store(v, output + at, kPlane);
      }
    }
  }

  static void DecryptStart(const uint8_t* input, const uint8_t* key, uint8_t* state, uint8_t* msg,
                           size_t width, const ZeroSource* source = nullptr) {
    Zeros zeros(source);
    for (size_t o = 0; o < width; o += W::kBytes) {
      for (size_t i = 0; i < 16; ++i) {
        const size_t at = 8 * i * kRow + o;
        if (o == 0) zeros.template Fill<4>(msg + 4 * i * kRow);
        T v[C][8];
        Rows::Load(input + at, kPlane, v);
        Rows::Add(key + at, kPlane, v);
        EnterInverseSbox(v, state + at, msg + 4 * i * kRow + o);
      }
    }
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
        for (int c = 0; c < C; ++c) MixColumns<W>::Unmix(y[c]);
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
      for (size_t at = o; at < kPlane; at += 8 * kRow) {
        T v[C][8];
        DecryptedByte(sent, received, key, at, v);
        Rows::Store(v, output + at, kPlane);
      }
    }
  }

 private:
  // The end of a round: what the last stage opened, the constant and the round key.
  MPCKDC_INLINE static void RoundByte(const uint8_t* sent, const uint8_t* received,
                                      const uint8_t* key, size_t at, T (*v)[8]) {
    Rows::Opened(sent, received, at, v);
    Rows::AddConstant(tower::kSboxConstant, v[C - 1]);
    Rows::Add(key + at, kPlane, v);
  }
  MPCKDC_INLINE static void DecryptedByte(const uint8_t* sent, const uint8_t* received,
                                          const uint8_t* key, size_t at, T (*v)[8]) {
    Rows::Opened(sent, received, at, v);
    Rows::Add(key + at, kPlane, v);
  }
  MPCKDC_INLINE static void EnterInverseSbox(T (*v)[8], uint8_t* state, uint8_t* msg) {
    Rows::AddConstant(tower::kSboxConstant, v[C - 1]);
    Rows::template EnterSbox<typename Rows::Sbox::SboxToTowerMap>(v, state, kPlane, msg);
  }
};

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_AES_CIPHER_STAGES_H_
