// SPDX-License-Identifier: Apache-2.0
// AES once, over a word type W (bitslice/word_*.h) and a number C of components per value: C = 1
// computes on plain bits, C = 2 on both halves of a share. Nothing here knows which. The S-box is
// cut into stages that open a few bits each (sbox.h); these files run them over rows:
//
//   cipher_stages.h   a round's end and the next one's beginning, up to the norm
//   sbox_layer.h     the rest of the S-box layer, with ShiftRows and MixColumns
//   here              the key schedule, and all of them as one table of functions
//   sbox_record.h     what of a layer is to be proved
//
// A message holds its zero share on entry, or `source` says how to make it while the stage runs: a
// whole group's only.
//
// Memory: rows of 64 bytes (circuit/bitslice/slices.h). A buffer of a value has C planes of rows.
// Every function works on the first `width` bytes of each row, rounded up to whole words.
#ifndef MPC_SERVER_CIRCUIT_AES_AES_TEMPLATE_H_
#define MPC_SERVER_CIRCUIT_AES_AES_TEMPLATE_H_

#include "mpc-server/circuit/aes/cipher_stages.h"
#include "mpc-server/circuit/aes/sbox_layer.h"
#include "mpc-server/circuit/aes/sbox_record.h"

namespace mpckdc {

// Where a message's zero share is there already.
struct NoZeros {
  static constexpr bool kMakes = false;
  explicit NoZeros(const ZeroSource*) {}
  template <size_t kRows>
  void Fill(uint8_t*) {}
};

template <class W, int C, class Zeros>
struct KeyScheduleStages {
  using T = typename W::T;
  using Rows = ByteRows<W, C>;
  static constexpr size_t kRow = Rows::kRow;

  // `words`: C planes of 32 rows per word; `plane` bytes apart.
  static void WordStart(const uint8_t* words, size_t plane, size_t i, bool rotate, uint8_t* state,
                        uint8_t* msg, size_t width, const ZeroSource* source = nullptr) {
    Zeros zeros(source);
    for (size_t o = 0; o < width; o += W::kBytes) {
      for (size_t b = 0; b < 4; ++b) {
        const size_t from = rotate ? (b + 1) % 4 : b;
        if (o == 0) zeros.template Fill<4>(msg + 4 * b * kRow);
        T v[C][8];
        Rows::Load(words + (32 * (i - 1) + 8 * from) * kRow + o, plane, v);
        Rows::EnterSbox(v, state + 8 * b * kRow + o, 32 * kRow, msg + 4 * b * kRow + o);
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
        Rows::Opened(sent, received, at, v);
        Rows::AddConstant(tower::kSboxConstant ^ (b == 0 ? rcon : 0), v[C - 1]);
        for (size_t j = i; j < end; ++j) {
          Rows::Add(words + 32 * (j - nk) * kRow + at, plane, v);
          Rows::Store(v, words + 32 * j * kRow + at, plane);
        }
      }
    }
  }
};

template <class W, int C, class Zeros = NoZeros>
struct AesStages : CipherStages<W, C, Zeros>,
                   SboxLayer<W, C, Zeros>,
                   KeyScheduleStages<W, C, Zeros> {
  static constexpr AesKernels Kernels() {
    using S = AesStages;
    return {S::Start,         S::Next,        S::Finish,       S::DecryptStart, S::DecryptNext,
            S::DecryptFinish, S::HelperStage, S::InverseStage, S::ProductStage, S::TwistStage,
            S::ScaleStage,    S::WordStart,   S::WordFinish,   Zeros::kMakes};
  }
};

}  // namespace mpckdc

#undef MPCKDC_INLINE
#undef MPCKDC_LAMBDA_INLINE

#endif  // MPC_SERVER_CIRCUIT_AES_AES_TEMPLATE_H_
