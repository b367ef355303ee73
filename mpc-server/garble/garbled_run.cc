// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/garble/garbled_run.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/isa.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/share/deviation.h"
#include "mpc-server/share/hash_prf.h"

namespace mpckdc::garble {
namespace {

constexpr size_t kLeastPieceLabels = 512;

constexpr size_t PackedBytes(size_t bits) { return (bits + 7) / 8; }

uint8_t* PutBytes(const void* bytes, size_t size, uint8_t* to) {
  if (size != 0) std::memcpy(to, bytes, size);  // nothing may lie nowhere
  return to + size;
}
uint8_t* PutLabels(absl::Span<const Label> labels, uint8_t* to) {
  return PutBytes(labels.data(), labels.size() * sizeof(Label), to);
}
uint8_t* PutBits(absl::Span<const uint8_t> bits, uint8_t* to) {
  std::fill_n(to, PackedBytes(bits.size()), uint8_t{0});
  for (size_t i = 0; i < bits.size(); ++i) to[i / 8] |= static_cast<uint8_t>(bits[i] << i % 8);
  return to + PackedBytes(bits.size());
}

bool IsAligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % alignof(Label) == 0; }

// Takes fields off the front of a message, whose length is what was declared.
struct Reader {
  absl::Span<const uint8_t> left;

  void Take(void* to, size_t size) {
    std::memcpy(to, left.data(), size);
    left.remove_prefix(size);
  }
  SecretVector<Label> Labels(size_t count) {
    SecretVector<Label> labels(count);
    if (count != 0) Take(labels.data(), count * sizeof(Label));
    return labels;
  }
  // Where they are, or copied to `place` if they may not be read there.
  absl::Span<const Label> View(size_t count, SecretVector<Label>& place) {
    const absl::Span<const uint8_t> here = left.first(count * sizeof(Label));
    left.remove_prefix(here.size());
    if (IsAligned(here.data())) return {reinterpret_cast<const Label*>(here.data()), count};
    if (place.size() < count) place.resize(count);
    std::memcpy(place.data(), here.data(), here.size());
    return absl::MakeConstSpan(place).first(count);
  }
  SecretVector<uint8_t> Bits(size_t count) {
    SecretVector<uint8_t> bits(count);
    for (size_t i = 0; i < count; ++i) bits[i] = left[i / 8] >> i % 8 & 1;
    left.remove_prefix(PackedBytes(count));
    return bits;
  }
};

// The key that follows from this one by the hash.
void Follow(const Digest& hash, RunKey& key) {
  const CtrFunctions& ctr = AllCtrs().For(BestIsa());
  Secret<CtrKey> expanded;
  ctr.expand(key.data(), &expanded.Get());
  HashPrf(ctr, expanded.Get(), hash, key.data());
}

}  // namespace

// From a word to the next one, or to the end, pass half of `quick_bytes` and at most all of it and
// a piece.
Pace PaceOf(size_t quick_bytes) {
  Pace pace;
  if (quick_bytes / sizeof(Label) >= pace.unawaited_labels) return pace;
  const size_t half = quick_bytes / 2 / sizeof(Label);
  pace.piece_labels = std::clamp(half, kLeastPieceLabels, pace.piece_labels);
  pace.word_labels = std::clamp(half, pace.piece_labels, pace.word_labels);
  pace.unawaited_labels = std::max(half, pace.piece_labels);
  pace.among_inputs = true;
  return pace;
}

Secret<NeighbourKeys> DrawNeighbourKeys(PartyContext& party, uint32_t number,
                                        const Digest& agreed) {
  Secret<NeighbourKeys> drawn;
  NeighbourKeys& keys = drawn.Get();
  static_assert(sizeof(keys.own) == 32);
  party.streams().FillGarbling({party.batch(), number, 0}, {keys.own[0].data(), sizeof(keys.own)},
                               {keys.next[0].data(), sizeof(keys.next)});
  for (auto* pair : {&keys.own, &keys.next}) {
    for (RunKey& key : *pair) Follow(agreed, key);
  }
  return drawn;
}

GarbledRun::GarbledRun(int party, int evaluator, Secret<NeighbourKeys> keys, const RunInput& input,
                       SharedBits inputs, const Pace& pace)
    : party_(party),
      role_(static_cast<Role>((party - evaluator + kParties) % kParties)),
      keys_(std::move(keys)),
      input_(input),
      pace_(pace),
      inputs_(std::move(inputs)) {
  Cut();
  const size_t outputs = input.plan->output_rows() * input.lanes;
  switch (role_) {
    case Role::kE:  // with G2, the previous party
      draws_.emplace(keys_.Get().own[1], outputs);
      break;
    case Role::kG1:  // with G2, the next one
      garbler_.emplace(GarblerNumber::kG1, keys_.Get().next[0], input,
                       GarblerSide::Shares{inputs_.own, inputs_.left});
      break;
    case Role::kG2:
      garbler_.emplace(GarblerNumber::kG2, keys_.Get().own[0], input,
                       GarblerSide::Shares{inputs_.left, inputs_.own});
      mac_.emplace(keys_.Get().next[0]);
      draws_.emplace(keys_.Get().next[1], outputs);
      break;
  }
}

void GarbledRun::Cut() {
  Piece piece = {0, 1, 0};  // the start
  for (const Plan::Step& step : input_.plan->steps()) {
    for (size_t unit = 0; unit < Plan::UnitsOf(step, input_.lanes); ++unit) {
      ++piece.units;
      piece.stream += input_.plan->LabelsOf(step, unit, input_.lanes);
      if (step.kind == Plan::StepKind::kInput) piece.inputs += step.rows * input_.lanes;
      if (piece.stream < pace_.piece_labels) continue;
      pieces_.push_back(std::exchange(piece, {}));
    }
  }
  if (piece.units != 0) pieces_.push_back(piece);
  MarkAwaited();
}

// Behind the inputs: E waits for G2's labels there, unless the line is slow anyway.
void GarbledRun::MarkAwaited() {
  size_t left = 0, since = 0;
  for (const Piece& piece : pieces_) left += piece.stream;
  for (auto piece = pieces_.begin(); piece != pieces_.end(); ++piece) {
    since += piece->stream;
    left -= piece->stream;
    if (since < pace_.word_labels || left < pace_.unawaited_labels) continue;
    const bool inputs_follow =
        std::any_of(piece, pieces_.end(), [](const Piece& p) { return p.inputs != 0; });
    if (inputs_follow && !pace_.among_inputs) continue;
    piece->awaited = true;
    since = 0;
  }
}

// ---- What is sent ----

GarbledRun::Sizes GarbledRun::SizesOf(size_t round) const {
  Sizes sizes;
  if (round < pieces_.size()) {
    const Piece& piece = pieces_[round];
    sizes.g1_to_e = (piece.stream + piece.inputs) * sizeof(Label);
    sizes.g2_to_e = piece.inputs * sizeof(Label);
    if (round + 1 == pieces_.size()) sizes.g2_to_e += sizeof(MacTag);
    sizes.e_to_g2 = piece.awaited ? 1 : 0;
    return sizes;
  }
  const size_t outputs = input_.plan->output_rows() * input_.lanes;
  sizes.e_to_g2 = PackedBytes(input_.plan->shown_rows() * input_.lanes) + sizeof(LabelsHash);
  sizes.e_to_g1 = sizes.e_to_g2 + PackedBytes(outputs) + sizeof(Label);
  sizes.g2_to_g1 = sizeof(Label);
  return sizes;
}

// G1 is the next one of E, G2 the previous one.
RoundShape GarbledRun::ShapeOf(size_t round) const {
  const Sizes s = SizesOf(round);
  RoundShape shape;
  shape.step = round < pieces_.size() ? "garbled/tables" : "garbled/result";
  RoundShape::Incoming& in = shape.in.emplace(RoundShape::Incoming{});
  switch (role_) {
    case Role::kE:
      shape.to_next = s.e_to_g1;
      shape.to_prev = s.e_to_g2;
      in = {s.g2_to_e, s.g1_to_e};
      break;
    case Role::kG1:
      shape.to_prev = s.g1_to_e;
      in = {s.e_to_g1, s.g2_to_g1};
      break;
    case Role::kG2:
      shape.to_next = s.g2_to_e;
      shape.to_prev = s.g2_to_g1;
      in = {0, s.e_to_g2};
      break;
  }
  shape.checked_to_next = shape.to_next;
  shape.checked_to_prev = shape.to_prev;
  return shape;
}

int GarbledRun::evaluator() const {
  return (party_ - static_cast<int>(role_) + kParties) % kParties;
}

Cost GarbledRun::DeclaredCost() const {
  Cost cost;
  for (size_t round = 0; round < rounds(); ++round) {
    const RoundShape shape = ShapeOf(round);
    cost = cost + Cost{1, shape.to_next, shape.to_prev};
  }
  return cost;
}

uint64_t GarbledRun::table_bytes() const {
  uint64_t bytes = 0;
  for (size_t round = 0; round < table_rounds(); ++round) bytes += SizesOf(round).g1_to_e;
  return bytes;
}

// ---- Tables ----

// G1 writes the stream where it is sent from.
void GarbledRun::Garble(absl::Span<uint8_t> out) {
  const Piece& piece = pieces_[produced_];
  const bool in_place = role_ == Role::kG1 && IsAligned(out.data());
  if (!in_place && stream_.size() < piece.stream) stream_.resize(piece.stream);
  const absl::Span<Label> stream(in_place ? reinterpret_cast<Label*>(out.data()) : stream_.data(),
                                 piece.stream);
  const size_t starts = produced_ == 0 ? 1 : 0;
  if (produced_ == 0) stream[0] = garbler_->start();
  garbler_->Give(stream.subspan(starts));
  for (size_t i = 0; i < piece.units; ++i) garbler_->RunUnit();
  const SecretVector<Label> own = garbler_->TakeOwnLabels();
  if (role_ == Role::kG1) {
    uint8_t* const end =
        in_place ? out.data() + stream.size() * sizeof(Label) : PutLabels(stream, out.data());
    PutLabels(own, end);
    return;
  }
  mac_->Add({reinterpret_cast<const uint8_t*>(stream.data()), stream.size() * sizeof(Label)});
  uint8_t* const end = PutLabels(own, out.data());
  if (produced_ + 1 < pieces_.size()) return;
  const MacTag tag = mac_->Finish();
  PutBytes(tag.data(), tag.size(), end);
}

void GarbledRun::Produce(ZeroShares&, RoundOut out) {
  if (produced_ == table_rounds()) {
    Tell(out);
  } else if (role_ != Role::kE) {
    Garble(role_ == Role::kG1 ? out.to_prev : out.to_next);
  } else {
    std::fill(out.to_prev.begin(), out.to_prev.end(), uint8_t{0});
  }
  ++produced_;
}

absl::Status GarbledRun::Evaluate(RoundIn in) {
  const Piece& piece = pieces_[consumed_];
  Reader g1{in.from_next}, g2{in.from_prev};
  if (consumed_ == 0) {
    Label start;
    g1.Take(&start, sizeof(start));
    evaluator_.emplace(keys_.Get().own[0], input_, EvaluatorSide::Shares{inputs_.own, inputs_.left},
                       start);
  }
  const size_t starts = consumed_ == 0 ? 1 : 0;
  const absl::Span<const Label> stream = g1.View(piece.stream - starts, stream_);
  const SecretVector<Label> u = g1.Labels(piece.inputs), w = g2.Labels(piece.inputs);
  evaluator_->Give(stream, u, w);
  for (size_t i = 0; i < piece.units; ++i) evaluator_->RunUnit();
  if (consumed_ + 1 < pieces_.size()) return absl::OkStatus();
  MacTag tag;
  g2.Take(tag.data(), tag.size());
  const int g1_party = NextParty(party_), g2_party = PrevParty(party_);
  switch (evaluator_->Check(tag)) {
    case EvaluatorSide::Fault::kNone:
      return absl::OkStatus();
    case EvaluatorSide::Fault::kMac:
      return Deviation(Suspects::Neighbours(party_),
                       absl::StrCat("the tables that P", g1_party, " sent are not those that P",
                                    g2_party, " signed"));
    case EvaluatorSide::Fault::kLabelOfG1:
      return Deviation(Suspects::One(g1_party),
                       absl::StrCat("P", g1_party, " sent a label of another share than this one"));
    case EvaluatorSide::Fault::kLabelOfG2:
      break;
  }
  return Deviation(Suspects::One(g2_party),
                   absl::StrCat("P", g2_party, " sent a label of another share than this one"));
}

// ---- Result ----

void GarbledRun::Tell(RoundOut out) {
  if (role_ == Role::kG1) return;
  if (role_ == Role::kG2) {
    const GarblerOutputs& known = garbler_->outputs();
    const Label part = SumOf(known.alphas, draws_->component) ^ draws_->rho;
    PutLabels({&part, 1}, out.to_prev.data());
    outputs_ = {draws_->component, known.permute};
    return;
  }
  const EvaluatorOutputs& known = evaluator_->outputs();
  shown_ = evaluator_->shown();
  Declassify(shown_.data(), shown_.size());  // opened to the three
  const LabelsHash hash = evaluator_->ShownHash();
  for (uint8_t* to : {out.to_next.data(), out.to_prev.data()}) {
    PutBytes(hash.data(), hash.size(), PutBits(shown_, to));
  }
  outputs_.left = draws_->component;
  outputs_.own = known.colours;
  for (size_t i = 0; i < outputs_.own.size(); ++i) outputs_.own[i] ^= outputs_.left[i];
  const Label sum = known.sum ^ draws_->rho;
  PutLabels({&sum, 1}, PutBits(outputs_.own, out.to_next.data() + out.to_prev.size()));
}

absl::Status GarbledRun::HearOutputs(absl::Span<const uint8_t> from_e,
                                     absl::Span<const uint8_t> from_g2) {
  const GarblerOutputs& known = garbler_->outputs();
  Reader e{from_e}, g2{from_g2};
  outputs_ = {known.permute, e.Bits(known.permute.size())};
  Label of_e, of_g2;
  e.Take(&of_e, sizeof(of_e));
  g2.Take(&of_g2, sizeof(of_g2));
  const Label mine =
      known.sum ^ SumOf(known.alphas, outputs_.own) ^ SumOf(known.alphas, outputs_.left);
  const Label error = mine ^ of_e ^ of_g2;
  Declassify(&error, sizeof(error));  // whether it is zero is known; a liar knows it
  if (error == Label{}) return absl::OkStatus();
  return Deviation(Suspects::Neighbours(party_),
                   absl::StrCat("the outputs that P", PrevParty(party_), " gives and P",
                                NextParty(party_), "'s part of their sum do not fit"));
}

absl::Status GarbledRun::Hear(RoundIn in) {
  if (role_ == Role::kE) return absl::OkStatus();
  const bool g1 = role_ == Role::kG1;
  const int e_party = g1 ? PrevParty(party_) : NextParty(party_);
  Reader e{g1 ? in.from_prev : in.from_next};
  shown_ = e.Bits(input_.plan->shown_rows() * input_.lanes);
  LabelsHash hash;
  e.Take(hash.data(), hash.size());
  Declassify(shown_.data(), shown_.size());  // opened to the three
  if (!garbler_->Holds(shown_, hash)) {
    return Deviation(Suspects::One(e_party),
                     absl::StrCat("P", e_party, " names bits whose labels it does not have"));
  }
  return g1 ? HearOutputs(e.left, in.from_next) : absl::OkStatus();
}

absl::Status GarbledRun::Consume(RoundIn in) {
  if (consumed_ == table_rounds()) {
    RETURN_IF_ERROR(Hear(in));
  } else if (role_ == Role::kE) {
    RETURN_IF_ERROR(Evaluate(in));
  }
  ++consumed_;
  return absl::OkStatus();
}

}  // namespace mpckdc::garble
