// SPDX-License-Identifier: Apache-2.0
// What each instruction set's transpose file defines. Internal.
#ifndef MPC_SERVER_BITSLICE_TRANSPOSE_ISA_H_
#define MPC_SERVER_BITSLICE_TRANSPOSE_ISA_H_

#include <cstddef>
#include <cstdint>

#define MPCKDC_DECLARE_TRANSPOSE(ISA)                                      \
  namespace ISA {                                                          \
  void ToRows(const uint8_t* blocks, uint8_t* rows, size_t lanes);         \
  void ToBlocks(const uint8_t* rows, uint8_t* blocks, size_t lanes);       \
  }

namespace mpckdc {
MPCKDC_DECLARE_TRANSPOSE(transpose_portable)
MPCKDC_DECLARE_TRANSPOSE(transpose_avx2)
MPCKDC_DECLARE_TRANSPOSE(transpose_avx512)
}  // namespace mpckdc

#undef MPCKDC_DECLARE_TRANSPOSE

#endif  // MPC_SERVER_BITSLICE_TRANSPOSE_ISA_H_
