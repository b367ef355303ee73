// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/garble/evaluator_side.h"

#include <cassert>

namespace mpckdc::garble {

void EvaluatorSide::Stream::Give(absl::Span<const Label> labels) {
  assert(left_.empty());
  left_ = labels;
  mac_.Add({reinterpret_cast<const uint8_t*>(labels.data()), labels.size() * sizeof(Label)});
}

const Label* EvaluatorSide::Stream::Next(size_t labels) {
  assert(labels <= left_.size());
  const Label* const next = left_.data();
  left_.remove_prefix(labels);
  return next;
}

EvaluatorSide::EvaluatorSide(const RunKey& mac_key, const RunInput& input, const Shares& shares,
                             Label start, Isa isa)
    : PlanRun(input),
      shares_(shares),
      stream_(mac_key),
      functions_(AllHalfGates().For(isa)),
      counter_({start.low, start.high}),
      evaluator_(counter_, input.lanes, stream_, isa) {
  stream_.mac().Add({reinterpret_cast<const uint8_t*>(&start), sizeof(start)});
}

void EvaluatorSide::Give(absl::Span<const Label> stream, absl::Span<const Label> labels_u,
                         absl::Span<const Label> labels_w) {
  stream_.Give(stream);
  labels_u_ = labels_u;
  labels_w_ = labels_w;
}

// Whether each label's hash is the commitment at its bit's place. All are compared, whatever the
// bits are.
bool EvaluatorSide::Fit(absl::Span<const uint8_t> bits, absl::Span<const Label> labels, size_t side,
                        const Label* commitments) {
  SecretVector<Label> hashed(labels.size());
  functions_.hash(counter_.start(), counter_.TakeTweaks(labels.size()), labels.data(),
                  labels.size(), hashed.data());
  Label wrong{};
  for (size_t i = 0; i < labels.size(); ++i) {
    const Label zero = commitments[CommitmentAt(i, side, 0)];
    const Label one = commitments[CommitmentAt(i, side, 1)];
    const Label difference = hashed[i] ^ zero ^ (zero ^ one).If(bits[i] != 0);
    wrong = {wrong.low | difference.low, wrong.high | difference.high};
  }
  Declassify(&wrong, sizeof(wrong));  // whether it is zero: a sender of a wrong label knows it
  return wrong == Label{};
}

Wires EvaluatorSide::Input(size_t rows) {
  const size_t count = rows * lanes();
  const auto u = shares_.u.subspan(inputs_done_, count), w = shares_.w.subspan(inputs_done_, count);
  inputs_done_ += count;
  const auto labels_u = labels_u_.first(count), labels_w = labels_w_.first(count);
  labels_u_.remove_prefix(count);
  labels_w_.remove_prefix(count);
  const Label* const commitments = stream_.Next(kInputRows * count);
  fits_g1_ = Fit(u, labels_u, 0, commitments) && fits_g1_;
  fits_g2_ = Fit(w, labels_w, 1, commitments) && fits_g2_;
  Wires held(rows, lanes());
  for (size_t i = 0; i < count; ++i) held.labels()[i] = labels_u[i] ^ labels_w[i];
  return held;
}

void EvaluatorSide::Show(absl::Span<const Label> labels) {
  std::vector<uint8_t> permute(labels.size());
  UnpackColours(stream_.Next(PackedLabels(labels.size())), absl::MakeSpan(permute));
  shown_.insert(shown_.end(), labels.begin(), labels.end());
  for (size_t i = 0; i < labels.size(); ++i) {
    shown_bits_.push_back(permute[i] ^ (labels[i].colour() ? 1 : 0));
  }
}

// Tokens H(label) + colour * R, added up.
void EvaluatorSide::Output(absl::Span<const Label> labels) {
  SecretVector<Label> tokens(labels.size());
  functions_.hash(counter_.start(), counter_.TakeTweaks(labels.size()), labels.data(),
                  labels.size(), tokens.data());
  const Label* const rows = stream_.Next(labels.size());
  for (size_t i = 0; i < labels.size(); ++i) {
    outputs_.colours.push_back(labels[i].colour() ? 1 : 0);
    outputs_.sum = outputs_.sum ^ tokens[i] ^ rows[i].If(labels[i].colour());
  }
}

EvaluatorSide::Fault EvaluatorSide::Check(const MacTag& from_g2) {
  const bool same = ConstantTimeEqual(stream_.mac().Finish(), from_g2);
  Declassify(&same, sizeof(same));
  if (!same) return Fault::kMac;
  if (!fits_g1_) return Fault::kLabelOfG1;
  return fits_g2_ ? Fault::kNone : Fault::kLabelOfG2;
}

}  // namespace mpckdc::garble
