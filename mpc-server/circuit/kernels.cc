// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/base/isa.h"
#include "mpc-server/circuit/aes/aes_kernels.h"
#include "mpc-server/circuit/hash/bit_program.h"

namespace mpckdc {

const IsaTable<AesKernels>& AllAesKernels() {
  static const IsaTable<AesKernels> all = {
      {"portable", Isa::kPortable, kAesKernelsPortable},
#if defined(__x86_64__)
      {"avx2", Isa::kAvx2, kAesKernelsAvx2},
      {"avx2_vaes", Isa::kAvx2, kAesKernelsAvx2Vaes, __builtin_cpu_supports("vaes") != 0},
      {"avx512_vaes", Isa::kAvx512, kAesKernelsAvx512},
#endif
  };
  return all;
}

const IsaTable<SboxRecords>& AllSboxRecords() {
  static const IsaTable<SboxRecords> all = {
    {"portable", Isa::kPortable, kSboxRecordsPortable},
#if defined(__x86_64__)
    {"avx2", Isa::kAvx2, kSboxRecordsAvx2},
    {"avx512", Isa::kAvx512, kSboxRecordsAvx512},
#endif
  };
  return all;
}

const IsaTable<BitKernels>& AllBitKernels() {
  static const IsaTable<BitKernels> all = {
      {"portable", Isa::kPortable, kBitKernelsPortable},
#if defined(__x86_64__)
      {"avx2", Isa::kAvx2, kBitKernelsAvx2},
      {"avx512", Isa::kAvx512, kBitKernelsAvx512},
#endif
  };
  return all;
}

}  // namespace mpckdc
