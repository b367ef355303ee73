// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/garble/garbler_side.h"

namespace mpckdc::garble {
namespace {

HashKey DrawStart(Draws& draws) {
  Label s;
  draws.Labels(absl::MakeSpan(&s, 1));
  return {s.low, s.high};
}
SecretVector<Label> DrawDeltas(Draws& draws, size_t lanes) {
  SecretVector<Label> deltas(lanes);
  draws.Deltas(absl::MakeSpan(deltas));
  return deltas;
}

}  // namespace

GarblerSide::GarblerSide(GarblerNumber number, const RunKey& key, const RunInput& input,
                         const Shares& shares, Isa isa)
    : PlanRun(input),
      number_(number),
      shares_(shares),
      draws_(key),
      delta_(DrawDeltas(draws_, input.lanes)),
      functions_(AllHalfGates().For(isa)),
      counter_(DrawStart(draws_)),
      garbler_(counter_, delta_, stream_, isa) {}

// To both labels of U or W, in the order of the bit.
void GarblerSide::Commit(size_t side, const SecretVector<Label>& zero, Label* commitments) {
  const uint64_t tweak = counter_.TakeTweaks(zero.size());
  SecretVector<Label> labels = zero, hashed(zero.size());
  for (size_t bit = 0; bit < 2; ++bit) {
    functions_.hash(counter_.start(), tweak, labels.data(), labels.size(), hashed.data());
    for (size_t i = 0; i < labels.size(); ++i) {
      commitments[CommitmentAt(i, side, bit)] = hashed[i];
      labels[i] = labels[i] ^ delta_[i % delta_.size()];
    }
  }
}

Wires GarblerSide::Input(size_t rows) {
  const size_t count = rows * lanes();
  const auto m = shares_.m.subspan(inputs_done_, count);
  const auto own = shares_.own.subspan(inputs_done_, count);
  inputs_done_ += count;
  SecretVector<Label> u(count), w(count);
  draws_.Labels(absl::MakeSpan(u));
  draws_.Labels(absl::MakeSpan(w));
  Label* const commitments = stream_.Take(kInputRows * count);
  Commit(0, u, commitments);
  Commit(1, w, commitments);
  Wires zero(rows, lanes());
  const auto& mine = number_ == GarblerNumber::kG1 ? u : w;
  for (size_t i = 0; i < count; ++i) {
    const Label delta = delta_[i % lanes()];
    zero.labels()[i] = u[i] ^ w[i] ^ delta.If(m[i] != 0);
    own_labels_.push_back(mine[i] ^ delta.If(own[i] != 0));
  }
  return zero;
}

void GarblerSide::Show(absl::Span<const Label> labels) {
  PackColours(labels, stream_.Take(PackedLabels(labels.size())));
  shown_.insert(shown_.end(), labels.begin(), labels.end());
}

bool GarblerSide::Holds(absl::Span<const uint8_t> bits, const LabelsHash& labels) const {
  if (bits.size() != shown_.size()) return false;
  SecretVector<Label> named = shown_;
  for (size_t i = 0; i < named.size(); ++i) {
    named[i] = named[i] ^ delta_[i % delta_.size()].If(bits[i] != 0);
  }
  const bool same = ConstantTimeEqual(HashOfLabels(named), labels);
  Declassify(&same, sizeof(same));
  return same;
}

// A row R = H(label of colour 0) + H(label of colour 1) + alpha.
void GarblerSide::Output(absl::Span<const Label> zero) {
  const size_t count = zero.size();
  SecretVector<Label> at[2] = {SecretVector<Label>(count), SecretVector<Label>(count)};
  SecretVector<Label> alphas(count);
  draws_.Labels(absl::MakeSpan(alphas));
  for (size_t i = 0; i < count; ++i) {
    at[0][i] = zero[i] ^ delta_[i % lanes()].If(zero[i].colour());
    at[1][i] = at[0][i] ^ delta_[i % lanes()];
  }
  const uint64_t tweak = counter_.TakeTweaks(count);
  for (auto& labels : at) {
    functions_.hash(counter_.start(), tweak, labels.data(), count, labels.data());
  }
  Label* const rows = stream_.Take(count);
  for (size_t i = 0; i < count; ++i) {
    rows[i] = at[0][i] ^ at[1][i] ^ alphas[i];
    outputs_.permute.push_back(zero[i].colour() ? 1 : 0);
    outputs_.sum = outputs_.sum ^ at[0][i] ^ alphas[i].If(zero[i].colour());
  }
  outputs_.alphas.insert(outputs_.alphas.end(), alphas.begin(), alphas.end());
}

}  // namespace mpckdc::garble
