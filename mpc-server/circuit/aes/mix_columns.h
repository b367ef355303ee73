// SPDX-License-Identifier: Apache-2.0
// MixColumns (FIPS 197, 5.1.3) and its inverse on the bits of one column, four bytes y[0..3].
#ifndef MPC_SERVER_CIRCUIT_AES_MIX_COLUMNS_H_
#define MPC_SERVER_CIRCUIT_AES_MIX_COLUMNS_H_

#include "mpc-server/circuit/aes/sbox.h"

namespace mpckdc {

template <class W>
struct MixColumns {
  using T = typename W::T;

  // Bit k of 2*y.
  MPCKDC_INLINE static T Doubled(const T* y, int k) {
    const T shifted = y[(k + 7) % 8];
    return k == 1 || k == 3 || k == 4 ? W::Xor(shifted, y[7]) : shifted;
  }

  // out_r = 2*(y_r + y_{r+1}) + y_{r+1} + (y_{r+2} + y_{r+3}); take(r, out) gets the four in turn.
  template <class Take>
  MPCKDC_INLINE static void Mix(const T (*y)[8], Take take) {
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

  // In place. MixColumns is multiplication by m = 3x^3 + x^2 + x + 2 modulo x^4 + 1, and m^4 = 1;
  // its inverse is m * m^2, where m^2 = 5 + 4x^2: y_r += 4*(y_r + y_{r+2}), then MixColumns.
  MPCKDC_INLINE static void Unmix(T (*y)[8]) {
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
    Mix(y, [&mixed](int r, const T* out) MPCKDC_LAMBDA_INLINE {
      for (int k = 0; k < 8; ++k) mixed[r][k] = out[k];
    });
    for (int r = 0; r < 4; ++r) {
      for (int k = 0; k < 8; ++k) y[r][k] = mixed[r][k];
    }
  }
};

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_AES_MIX_COLUMNS_H_
