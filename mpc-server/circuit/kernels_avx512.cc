// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/aes/aes_template.h"
#include "mpc-server/circuit/bitslice/word_avx512.h"
#include "mpc-server/circuit/hash/bit_template.h"
#include "mpc-server/share/vaes512.h"

namespace mpckdc {
constexpr AesKernels kAesKernelsAvx512 = AesStages<WordAvx512, 2, AesZeros<Vaes512>>::Kernels();
constexpr SboxRecords kSboxRecordsAvx512 = {MakeSboxRecordKernels<WordAvx512, 64>(),
                                            MakeSboxRecordKernels<WordAvx512Far, 64>()};
constexpr BitKernels kBitKernelsAvx512 =
    BitRunner<WordAvx512, 2, 64>::Kernels(BitRunner<WordAvx512Far, 2, 64>::Record<64>);
}  // namespace mpckdc
