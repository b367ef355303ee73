// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/garble/output.h"

namespace mpckdc::garble {
namespace {

absl::Span<const uint8_t> BytesOf(const SecretVector<Label>& labels) {
  return {reinterpret_cast<const uint8_t*>(labels.data()), labels.size() * sizeof(Label)};
}

bool Same(const GarblerOutput& a, const GarblerOutput& b) {
  const bool permute = ConstantTimeEqual(a.permute, b.permute);
  const bool sums = ConstantTimeEqual(BytesOf(a.sums), BytesOf(b.sums));
  return ConstantTimeEqual(a.alpha_key, b.alpha_key) && permute && sums;
}

}  // namespace

CombinedOutput Combine(const EvaluatorOutput& e, const GarblerOutput& g1, const GarblerOutput& g2) {
  if (!Same(g1, g2)) return {OutputFault::kGarblersDiffer, {}};
  const size_t count = g1.permute.size(), lanes = g1.sums.size();
  if (e.colours.size() != count || e.sums.size() != lanes) return {OutputFault::kWrongSum, {}};
  SecretVector<Label> alpha(count), sums = g1.sums;
  Draws(g1.alpha_key).Labels(absl::MakeSpan(alpha));
  CombinedOutput out;
  out.bits.resize(count);
  for (size_t i = 0; i < count; ++i) {
    out.bits[i] = (e.colours[i] ^ g1.permute[i]) & 1;
    Label& sum = sums[i % lanes];
    sum = sum ^ alpha[i].If(out.bits[i] != 0);
  }
  if (!ConstantTimeEqual(BytesOf(sums), BytesOf(e.sums))) return {OutputFault::kWrongSum, {}};
  return out;
}

}  // namespace mpckdc::garble
