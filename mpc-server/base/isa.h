// SPDX-License-Identifier: Apache-2.0
// Which instruction set the hot loops use. Chosen at run time from what the CPU has; each set's
// code is in files of its own, compiled with that set's flags.
#ifndef MPC_SERVER_BASE_ISA_H_
#define MPC_SERVER_BASE_ISA_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mpckdc {

enum class Isa {
  kPortable = 0,  // 64-bit words; AES by OpenSSL
  kAvx2 = 1,      // AVX2, AES-NI, PCLMULQDQ
  kAvx512 = 2,    // AVX-512 F, BW, DQ, VL and VAES, PCLMULQDQ
};

absl::string_view IsaName(Isa isa);  // "portable", "avx2", "avx512"
bool IsaSupported(Isa isa);
std::vector<Isa> SupportedIsas();    // slowest first

// The fastest supported one. The environment variable MPCKDC_ISA lowers it (tests under valgrind).
Isa BestIsa();
// "auto" or a name. InvalidArgument: unknown name; FailedPrecondition: this CPU lacks it.
absl::StatusOr<Isa> ParseIsa(absl::string_view name);

}  // namespace mpckdc

#endif  // MPC_SERVER_BASE_ISA_H_
