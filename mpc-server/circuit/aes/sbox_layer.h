// SPDX-License-Identifier: Apache-2.0
// The stages of an S-box layer after the norm (see sbox.h and aes_template.h). The last one applies
// the affine map's linear part, ShiftRows and MixColumns, or InvShiftRows, before sending.
#ifndef MPC_SERVER_CIRCUIT_AES_SBOX_LAYER_H_
#define MPC_SERVER_CIRCUIT_AES_SBOX_LAYER_H_

#include <type_traits>

#include "mpc-server/circuit/aes/aes_kernels.h"
#include "mpc-server/circuit/aes/byte_rows.h"
#include "mpc-server/circuit/aes/mix_columns.h"
#include "mpc-server/share/ctr_stream.h"

namespace mpckdc {

template <class W, int C, class Zeros>
struct SboxLayer {
  using T = typename W::T;
  using Rows = ByteRows<W, C>;
  using Sbox = typename Rows::Sbox;
  static constexpr size_t kRow = Rows::kRow;

  // --- the throughput S-box ----------------------------------------------------------------------
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
        Rows::Opened(sent, received, at, n);
        for (int c = 0; c < C; ++c) {
          for (size_t k = 0; k < 4; ++k) W::Store(norm + c * plane + at + k * kRow, n[c][k]);
        }
        uint8_t* m = msg + i * kRow + o;
        W::Store(m, Sbox::Helper(n, W::Load(m)));
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
        T n[C][4], q[C][1], r[4];
        for (int c = 0; c < C; ++c) {
          for (size_t k = 0; k < 4; ++k) n[c][k] = W::Load(norm + c * plane + at + k * kRow);
        }
        Rows::Opened(sent, received, i * kRow + o, q);
        for (size_t k = 0; k < 4; ++k) r[k] = W::Load(msg + at + k * kRow);
        Sbox::Inverse(n, q, r);
        for (size_t k = 0; k < 4; ++k) W::Store(msg + at + k * kRow, r[k]);
      }
    }
  }

  static void ProductStage(AesLinear linear, const uint8_t* state, const uint8_t* sent,
                           const uint8_t* received, uint8_t* msg, size_t width,
                           const ZeroSource* source = nullptr) {
    const size_t plane = (linear == AesLinear::kWord ? 32 : 128) * kRow;
    LastStage(linear, msg, width, source,
              [&](auto map, size_t i, size_t o, T* y) MPCKDC_LAMBDA_INLINE {
                T x[C][8], m[C][4];
                Rows::Load(state + 8 * i * kRow + o, plane, x);
                Rows::Opened(sent, received, 4 * i * kRow + o, m);
                Sbox::template Product<decltype(map)>(x, m, y);
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
        if (o == 0 && i % 2 == 0) zeros.template Fill<20>(msg + 10 * i * kRow);
        T x[C][8], n[C][4], r[10];
        Rows::Load(state + 8 * i * kRow + o, plane, x);
        Rows::Opened(sent, received, 4 * i * kRow + o, n);
        uint8_t* m = msg + 10 * i * kRow + o;
        for (size_t k = 0; k < 10; ++k) r[k] = W::Load(m + k * kRow);
        Sbox::Twist(x, n, r);
        for (size_t k = 0; k < 10; ++k) W::Store(m + k * kRow, r[k]);
      }
    }
  }

  static void ScaleStage(AesLinear linear, const uint8_t* sent, const uint8_t* received,
                         uint8_t* msg, size_t width, const ZeroSource* source = nullptr) {
    LastStage(linear, msg, width, source,
              [&](auto map, size_t i, size_t o, T* y) MPCKDC_LAMBDA_INLINE {
                T uv[C][10];
                Rows::Opened(sent, received, 10 * i * kRow + o, uv);
                Sbox::template Scale<decltype(map)>(uv, y);
              });
  }

 private:
  // byte_of(map, i, o, y) gives byte i's share at row offset o; `map` leads from the tower basis to
  // what the layer sends.
  template <class ByteOf>
  MPCKDC_INLINE static void LastStage(AesLinear linear, uint8_t* msg, size_t width,
                                      const ZeroSource* source, ByteOf byte_of) {
    if (linear == AesLinear::kInvShiftRows) {
      LinearStage<typename Sbox::FromTowerMap, true>(linear, msg, width, source, byte_of);
    } else {
      LinearStage<typename Sbox::TowerToSboxMap, false>(linear, msg, width, source, byte_of);
    }
  }
  template <class Map, bool kInverse, class ByteOf>
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
          byte_of(Map(), word ? r : 4 * (from % 4) + r, o, y[r]);  // ShiftRows or InvShiftRows
          if (o == 0) zeros.template Fill<4>(rows + 4 * kRow);
        }
        uint8_t* column = msg + 32 * c * kRow + o;
        const auto add = [column](int r, const T* out) MPCKDC_LAMBDA_INLINE {
          Rows::AddToMessage(out, column + 8 * static_cast<size_t>(r) * kRow);
        };
        if (linear == AesLinear::kMixColumns) {
          MixColumns<W>::Mix(y, add);
        } else {
          for (int r = 0; r < 4; ++r) add(r, y[r]);
        }
      }
    }
  }
};

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_AES_SBOX_LAYER_H_
