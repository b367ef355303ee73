// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/aes/aes_template.h"
#include "mpc-server/circuit/bitslice/word_portable.h"
#include "mpc-server/circuit/hash/bit_template.h"

namespace mpckdc {
constexpr AesKernels kAesKernelsPortable = AesStages<WordPortable, 2>::Kernels();
constexpr SboxRecordKernels kSboxRecordFew = MakeSboxRecordKernels<WordPortable, 8>();
constexpr SboxRecords kSboxRecordsPortable = {MakeSboxRecordKernels<WordPortable, 64>(),
                                              MakeSboxRecordKernels<WordPortable, 64>()};
constexpr BitKernels kBitKernelsFew = BitRunner<WordPortable, 2, 8>::Kernels();
constexpr BitRecordFunction kBitRecordFewOfMany = BitRunner<WordPortable, 2, 64>::Record<8>;
constexpr BitKernels kBitKernelsPortable = BitRunner<WordPortable, 2, 64>::Kernels();
}  // namespace mpckdc
