// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/garble/evaluator_side.h"

#include "mpc-server/garble/run_format.h"

namespace mpckdc::garble {

const Label* EvaluatorSide::Rows::Next(size_t labels) {
  const auto bytes = from_.Next(labels * sizeof(Label));
  mac_.Add(bytes);
  return reinterpret_cast<const Label*>(bytes.data());
}

EvaluatorSide::EvaluatorSide(const HashKey& hash_start, const RunKey& mac_key, size_t lanes,
                             ChunkSource& from, Isa isa)
    : mac_(mac_key),
      rows_(from, mac_),
      functions_(AllHalfGates().For(isa)),
      counter_(hash_start),
      evaluator_(counter_, lanes, rows_, isa) {}

// Whether each label's hash is the commitment at its bit's place. All are compared, whatever the
// bits are.
bool EvaluatorSide::Fit(absl::Span<const uint8_t> bits, absl::Span<const Label> labels, size_t side,
                        uint64_t tweak, const Label* commitments) const {
  SecretVector<Label> hashed(labels.size());
  functions_.hash(counter_.start(), tweak, labels.data(), labels.size(), hashed.data());
  Label wrong{};
  for (size_t i = 0; i < labels.size(); ++i) {
    const Label zero = commitments[CommitmentAt(i, side, 0)];
    const Label one = commitments[CommitmentAt(i, side, 1)];
    const Label difference = hashed[i] ^ zero ^ (zero ^ one).If(bits[i] != 0);
    wrong = {wrong.low | difference.low, wrong.high | difference.high};
  }
  return wrong == Label{};
}

Wires EvaluatorSide::Input(absl::Span<const uint8_t> u, absl::Span<const uint8_t> w,
                           absl::Span<const Label> labels_u, absl::Span<const Label> labels_w) {
  const size_t count = u.size();
  const Label* const commitments = rows_.Next(kInputRows * count);
  const uint64_t tweak_u = counter_.TakeTweaks(count), tweak_w = counter_.TakeTweaks(count);
  fits_g1_ = Fit(u, labels_u, 0, tweak_u, commitments) && fits_g1_;
  fits_g2_ = Fit(w, labels_w, 1, tweak_w, commitments) && fits_g2_;
  Wires held(count / run().lanes(), run().lanes());
  for (size_t i = 0; i < count; ++i) held.labels()[i] = labels_u[i] ^ labels_w[i];
  return held;
}

SecretVector<uint8_t> EvaluatorSide::Show(const Wires& wires) {
  const auto labels = wires.labels();
  shown_.insert(shown_.end(), labels.begin(), labels.end());
  SecretVector<uint8_t> bits(labels.size());
  UnpackColours(rows_.Next(PackedLabels(labels.size())), absl::MakeSpan(bits));
  for (size_t i = 0; i < bits.size(); ++i) bits[i] ^= labels[i].colour() ? 1 : 0;
  return bits;
}

std::array<uint8_t, 32> EvaluatorSide::ShownHash() const { return HashOfLabels(shown_); }

// A token H(label) + colour * R each; T is their sum.
void EvaluatorSide::Output(const Wires& wires, EvaluatorOutput* out) {
  const auto labels = wires.labels();
  const size_t lanes = run().lanes(), count = labels.size();
  SecretVector<Label> tokens(count);
  functions_.hash(counter_.start(), counter_.TakeTweaks(count), labels.data(), count,
                  tokens.data());
  const Label* const rows = rows_.Next(count);
  out->colours.resize(count);
  out->sums.assign(lanes, Label{});
  for (size_t i = 0; i < count; ++i) {
    out->colours[i] = labels[i].colour() ? 1 : 0;
    Label& sum = out->sums[i % lanes];
    sum = sum ^ tokens[i] ^ rows[i].If(labels[i].colour());
  }
}

EvaluatorSide::Fault EvaluatorSide::Check(const MacTag& from_g2) {
  if (!ConstantTimeEqual(mac_.Finish(), from_g2)) return Fault::kMac;
  if (!fits_g1_) return Fault::kLabelOfG1;
  return fits_g2_ ? Fault::kNone : Fault::kLabelOfG2;
}

}  // namespace mpckdc::garble
