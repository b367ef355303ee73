// SPDX-License-Identifier: Apache-2.0
// Which instruction set the hot loops use. Chosen at run time from what the CPU has; each set's
// code is in files of its own, compiled with that set's flags.
#ifndef MPC_SERVER_BASE_ISA_H_
#define MPC_SERVER_BASE_ISA_H_

#include <cstddef>
#include <initializer_list>
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

// F, a table of functions or a function, as compiled for a tier (Isa). A tier may have several,
// because some of its CPUs have more instructions than it asks for.
template <class F>
struct IsaVariant {
  const char* name;
  Isa tier;
  const F& functions;
  bool supported = true;  // beyond the tier's own instructions
};

// All variants of one F. A header that the instruction sets' own files include, which have plain C
// headers only, declares the class and the function that returns the table.
template <class F>
class IsaTable {
 public:
  // Ordered by tier, the best of a tier last; the first is portable.
  IsaTable(std::initializer_list<IsaVariant<F>> all) {
    for (const IsaVariant<F>& v : all) {
      if (!v.supported || !IsaSupported(v.tier)) continue;
      supported_.push_back(v);
      for (size_t t = static_cast<size_t>(v.tier); t < kTiers; ++t) best_[t] = &v.functions;
    }
  }
  // The best that this CPU can run of the tier, or of a lower one if the tier has none.
  const F& For(Isa tier) const { return *best_[static_cast<size_t>(tier)]; }
  // All that this CPU can run; for tests.
  const std::vector<IsaVariant<F>>& supported() const { return supported_; }

 private:
  static constexpr size_t kTiers = 3;
  std::vector<IsaVariant<F>> supported_;
  const F* best_[kTiers];
};

}  // namespace mpckdc

#endif  // MPC_SERVER_BASE_ISA_H_
