// SPDX-License-Identifier: Apache-2.0
// What each instruction set's transpose file defines. Internal.
#ifndef MPC_SERVER_CIRCUIT_BITSLICE_TRANSPOSE_ISA_H_
#define MPC_SERVER_CIRCUIT_BITSLICE_TRANSPOSE_ISA_H_

#include "mpc-server/circuit/bitslice/lane_pairs.h"

#define MPCKDC_DECLARE_TRANSPOSE(ISA)                                                          \
  namespace ISA {                                                                              \
  void ToRows(const LanePairs& from, uint8_t* x_rows, uint8_t* a_rows, uint8_t* scratch);      \
  void ToPairs(const uint8_t* x_rows, const uint8_t* a_rows, const PairTargets& to,            \
               uint8_t* scratch);                                                              \
  }

namespace mpckdc {
MPCKDC_DECLARE_TRANSPOSE(transpose_portable)
MPCKDC_DECLARE_TRANSPOSE(transpose_avx2)
MPCKDC_DECLARE_TRANSPOSE(transpose_avx512)
MPCKDC_DECLARE_TRANSPOSE(transpose_gfni256)
MPCKDC_DECLARE_TRANSPOSE(transpose_gfni512)
}  // namespace mpckdc

#undef MPCKDC_DECLARE_TRANSPOSE

// The body of each of these files.
#define MPCKDC_DEFINE_TRANSPOSE(ISA, ...)                                                      \
  namespace mpckdc::ISA {                                                                      \
  void ToRows(const LanePairs& from, uint8_t* x_rows, uint8_t* a_rows, uint8_t* scratch) {     \
    __VA_ARGS__::ToRows(from, x_rows, a_rows, scratch);                                        \
  }                                                                                            \
  void ToPairs(const uint8_t* x_rows, const uint8_t* a_rows, const PairTargets& to,            \
               uint8_t* scratch) {                                                             \
    __VA_ARGS__::ToPairs(x_rows, a_rows, to, scratch);                                         \
  }                                                                                            \
  }

#endif  // MPC_SERVER_CIRCUIT_BITSLICE_TRANSPOSE_ISA_H_
