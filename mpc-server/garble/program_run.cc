// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/garble/program_run.h"

#include <algorithm>
#include <cassert>

namespace mpckdc::garble {
namespace {

// Labels of a slot, if there are more copies: some 40 slots of them fit into a core's first cache.
constexpr size_t kMostWidth = 64;

template <class T>
void Grow(SecretVector<T>& vector, size_t size) {
  if (vector.size() < size) vector.resize(size);
}

// Few of them: not worth a call.
void CopyLabels(const Label* from, Label* to, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i] = from[i];
}

}  // namespace

size_t TapeShape::together() const {
  size_t together = copies;
  while (together % 2 == 0 && together * lanes > kMostWidth) together /= 2;
  return together;
}

void ProgramRun::AddPublics(absl::Span<const uint8_t> publics) {
  assert(publics.empty() || shape_.copies == 1);
  const std::vector<PublicSum>& sums = shape_.tape->public_sums();
  const size_t rows = shape_.tape->public_rows();
  public_.assign(publics.begin(), publics.end());
  public_.resize((rows + sums.size()) * lanes_);
  uint8_t* to = public_.data() + rows * lanes_;
  for (const PublicSum& sum : sums) {
    for (size_t lane = 0; lane < lanes_; ++lane, ++to) {
      *to = sum.complement ? 1 : 0;
      for (const uint32_t part : {sum.a, sum.b, sum.c}) {
        if (part != kNoPublic) *to ^= public_[part * lanes_ + lane];
      }
    }
  }
}

void ProgramRun::Begin(const Tape& tape, size_t copies,
                       absl::Span<const absl::Span<const Label>> inputs,
                       absl::Span<const uint8_t> publics) {
  shape_ = {&tape, copies, lanes_};
  unit_ = 0;
  inputs_.clear();
  for (const absl::Span<const Label>& part : inputs) {
    const size_t row = copies * lanes_;
    for (size_t at = 0; at < part.size(); at += row) inputs_.push_back(part.data() + at);
  }
  assert(inputs_.size() >= tape.input_rows());
  AddPublics(publics);
  Grow(slots_, tape.slots() * width());
  Grow(scratch_, 3 * kGroupGates * width());
}

void ProgramRun::Load(const TapeBlock& block, size_t first_copy) {
  for (const TapeLoad& load : block.inputs) {
    CopyLabels(inputs_[load.from] + first_copy * lanes_, Slot(load.slot), width());
  }
  for (const TapeLoad& load : block.labels) {
    SetPublic(absl::MakeConstSpan(public_).subspan(load.from * lanes_, lanes_), Slot(load.slot));
  }
  for (const TapeLoad& load : block.masks) {
    for (size_t lane = 0; lane < lanes_; ++lane) {
      Slot(load.slot)[lane] =
          Label{~uint64_t{0}, ~uint64_t{0}}.If(public_[load.from * lanes_ + lane] != 0);
    }
  }
}

void ProgramRun::RunUnit(Label* outputs) {
  const Tape& tape = *shape_.tape;
  const size_t blocks = tape.blocks().size(), together = shape_.together();
  const size_t at = unit_ % blocks, first_copy = unit_ / blocks * together;
  const TapeBlock& block = tape.blocks()[at];
  if (at == 0) {
    std::fill_n(Slot(kZeroSlot), width(), Label{});
    for (size_t i = 0; i < width(); ++i) Slot(kStepSlot)[i] = step_[i % lanes_];
  }
  Load(block, first_copy);
  BlockRun run = {};
  run.groups = block.groups.data();
  run.group_count = block.groups.size();
  run.xors = block.xors.data();
  run.scales = block.scales.data();
  run.gates = block.gates.data();
  run.copies = together;
  run.lanes = lanes_;
  run.slots = slots_.data();
  run.scratch = scratch_.data();
  RunBlock(run, block.gate_count * together);
  ++unit_;
  if (at + 1 < blocks) return;
  for (size_t row = 0; row < tape.outputs().size(); ++row) {
    CopyLabels(Slot(tape.outputs()[row]), outputs + (row * shape_.copies + first_copy) * lanes_,
               width());
  }
}

}  // namespace mpckdc::garble
