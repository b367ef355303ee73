// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/aes/aes_template.h"
#include "mpc-server/circuit/bitslice/word_avx2.h"
#include "mpc-server/circuit/hash/bit_template.h"

namespace mpckdc {
constexpr AesKernels kAesKernelsAvx2 = AesStages<WordAvx2, 2>::Kernels();
constexpr SboxRecords kSboxRecordsAvx2 = {MakeSboxRecordKernels<WordAvx2, 64>(),
                                          MakeSboxRecordKernels<WordAvx2, 64>()};
constexpr BitKernels kBitKernelsAvx2 = BitRunner<WordAvx2, 2, 64>::Kernels();
}  // namespace mpckdc
