// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/base/isa.h"

#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace mpckdc {
namespace {

constexpr Isa kAll[] = {Isa::kPortable, Isa::kAvx2, Isa::kAvx512};

Isa ChooseBest() {
  const Isa best = SupportedIsas().back();
  const char* name = std::getenv("MPCKDC_ISA");
  if (name == nullptr || *name == '\0') return best;
  for (Isa isa : kAll) {
    if (IsaName(isa) == name) return isa < best ? isa : best;
  }
  std::fprintf(stderr, "MPCKDC_ISA=%s: no such instruction set\n", name);
  std::abort();
}

}  // namespace

absl::string_view IsaName(Isa isa) {
  switch (isa) {
    case Isa::kPortable:
      return "portable";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
  }
  return "?";
}

bool IsaSupported(Isa isa) {
#if defined(__x86_64__)
  switch (isa) {
    case Isa::kPortable:
      return true;
    case Isa::kAvx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("aes") &&
             __builtin_cpu_supports("pclmul");
    case Isa::kAvx512:
      return IsaSupported(Isa::kAvx2) && __builtin_cpu_supports("avx512f") &&
             __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("vaes");
  }
#endif
  return isa == Isa::kPortable;
}

std::vector<Isa> SupportedIsas() {
  std::vector<Isa> found;
  for (Isa isa : kAll) {
    if (IsaSupported(isa)) found.push_back(isa);
  }
  return found;
}

Isa BestIsa() {
  static const Isa best = ChooseBest();
  return best;
}

absl::StatusOr<Isa> ParseIsa(absl::string_view name) {
  if (name == "auto") return BestIsa();
  for (Isa isa : kAll) {
    if (IsaName(isa) != name) continue;
    if (IsaSupported(isa)) return isa;
    return absl::FailedPreconditionError(absl::StrCat("this CPU does not have ", name));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", name, "\" is none of auto, avx512, avx2, portable"));
}

}  // namespace mpckdc
