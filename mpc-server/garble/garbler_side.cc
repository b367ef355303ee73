// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/garble/garbler_side.h"

#include "mpc-server/garble/run_format.h"

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

GarblerSide::GarblerSide(GarblerNumber number, const RunKey& key, size_t lanes, ChunkSink& to,
                         Isa isa)
    : number_(number),
      draws_(key),
      delta_(DrawDeltas(draws_, lanes)),
      stream_(to),
      functions_(AllHalfGates().For(isa)),
      counter_(DrawStart(draws_)),
      garbler_(counter_, delta_, stream_, isa) {}

Wires GarblerSide::Input(absl::Span<const uint8_t> m, absl::Span<const uint8_t> own) {
  const size_t lanes = delta_.size(), count = m.size();
  Wires zero(count / lanes, lanes);
  SecretVector<Label> part[2] = {SecretVector<Label>(count), SecretVector<Label>(count)};
  for (auto& p : part) draws_.Labels(absl::MakeSpan(p));
  Label* const commitments = stream_.Take(kInputRows * count);
  SecretVector<Label> one(count), hashed(count);
  for (size_t side = 0; side < 2; ++side) {
    const uint64_t tweak = counter_.TakeTweaks(count);
    for (size_t i = 0; i < count; ++i) one[i] = part[side][i] ^ delta_[i % lanes];
    for (size_t bit = 0; bit < 2; ++bit) {
      functions_.hash(counter_.start(), tweak, bit == 0 ? part[side].data() : one.data(), count,
                      hashed.data());
      for (size_t i = 0; i < count; ++i) commitments[CommitmentAt(i, side, bit)] = hashed[i];
    }
  }
  const auto& mine = part[number_ == GarblerNumber::kG1 ? 0 : 1];
  for (size_t i = 0; i < count; ++i) {
    const Label delta = delta_[i % lanes];
    zero.labels()[i] = part[0][i] ^ part[1][i] ^ delta.If(m[i] != 0);
    own_labels_.push_back(mine[i] ^ delta.If(own[i] != 0));
  }
  return zero;
}

void GarblerSide::Show(const Wires& wires) {
  const auto labels = wires.labels();
  PackColours(labels, stream_.Take(PackedLabels(labels.size())));
  shown_.insert(shown_.end(), labels.begin(), labels.end());
}

bool GarblerSide::Holds(absl::Span<const uint8_t> bits,
                        const std::array<uint8_t, 32>& labels_hash) const {
  if (bits.size() != shown_.size()) return false;
  SecretVector<Label> named = shown_;
  for (size_t i = 0; i < named.size(); ++i) {
    named[i] = named[i] ^ delta_[i % delta_.size()].If(bits[i] != 0);
  }
  return ConstantTimeEqual(HashOfLabels(named), labels_hash);
}

// Row R = H(label of colour 0) + H(label of colour 1) + alpha; K is the sum of H(label of colour 0)
// + permute * alpha.
void GarblerSide::Output(const Wires& wires, GarblerOutput* out) {
  const auto zero = wires.labels();
  const size_t lanes = delta_.size(), count = zero.size();
  SecretVector<Label> at[2] = {SecretVector<Label>(count), SecretVector<Label>(count)},
                      alpha(count);
  draws_.Fill(absl::MakeSpan(out->alpha_key));
  Draws(out->alpha_key).Labels(absl::MakeSpan(alpha));
  out->permute.resize(count);
  out->sums.assign(lanes, Label{});
  for (size_t i = 0; i < count; ++i) {
    out->permute[i] = zero[i].colour() ? 1 : 0;
    at[0][i] = zero[i] ^ delta_[i % lanes].If(zero[i].colour());
    at[1][i] = at[0][i] ^ delta_[i % lanes];
  }
  const uint64_t tweak = counter_.TakeTweaks(count);
  for (auto& labels : at) {
    functions_.hash(counter_.start(), tweak, labels.data(), count, labels.data());
  }
  Label* const rows = stream_.Take(count);
  for (size_t i = 0; i < count; ++i) {
    rows[i] = at[0][i] ^ at[1][i] ^ alpha[i];
    Label& sum = out->sums[i % lanes];
    sum = sum ^ at[0][i] ^ alpha[i].If(out->permute[i] != 0);
  }
}

}  // namespace mpckdc::garble
