// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/garble/conversion.h"

namespace mpckdc::garble {

ConversionDraws::ConversionDraws(const RunKey& key, size_t bits) : component(bits) {
  Draws draws(key);
  draws.Labels(absl::MakeSpan(&rho, 1));
  SecretVector<Label> packed(PackedLabels(bits));
  draws.Labels(absl::MakeSpan(packed));
  UnpackColours(packed.data(), absl::MakeSpan(component));
}

Label SumOf(absl::Span<const Label> alphas, absl::Span<const uint8_t> bits) {
  Label sum{};
  for (size_t i = 0; i < bits.size(); ++i) sum = sum ^ alphas[i].If(bits[i] != 0);
  return sum;
}

}  // namespace mpckdc::garble
