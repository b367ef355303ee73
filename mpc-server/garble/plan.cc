// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/garble/plan.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "mpc-server/garble/run_format.h"

namespace mpckdc::garble {
namespace {

constexpr size_t kInputStepRows = 64;

}  // namespace

Plan::Reg Plan::Add(Step step, size_t rows) {
  step.out = static_cast<Reg>(views_.size());
  step.rows = rows;
  views_.push_back({step.out, 0, rows});
  steps_.push_back(std::move(step));
  return steps_.back().out;
}

// Of sixteen lanes such a step is 80 KB with its labels: a key's bits in one would be megabytes,
// and they would have to pass in one round.
Plan::Reg Plan::Input(size_t rows) {
  input_rows_ += rows;
  std::vector<Reg> parts;
  for (size_t at = 0; at < rows; at += kInputStepRows) {
    parts.push_back(Add({.kind = StepKind::kInput}, std::min(rows - at, kInputStepRows)));
  }
  return Join(std::move(parts));
}

Plan::String Plan::AddString(size_t bytes) {
  strings_.push_back(bytes);
  return static_cast<String>(strings_.size() - 1);
}

Plan::Reg Plan::Public(String string, size_t first, size_t bytes) {
  assert(first + bytes <= strings_[string]);
  return Add({.kind = StepKind::kPublic, .publics = PublicRows{string, first, bytes}}, 8 * bytes);
}

Plan::Reg Plan::Constant(std::vector<uint8_t> bytes) {
  const size_t rows = 8 * bytes.size();
  return Add({.kind = StepKind::kConstant, .constant = std::move(bytes)}, rows);
}

Plan::Reg Plan::Rows(Reg from, size_t first, size_t count) {
  assert(first + count <= rows(from));
  if (first == 0 && count == rows(from)) return from;
  const View of = view(from);
  views_.push_back({of.base, of.first + first, count});
  return static_cast<Reg>(views_.size() - 1);
}

Plan::Reg Plan::Join(std::vector<Reg> parts) {
  if (parts.size() == 1) return parts[0];
  size_t all = 0;
  for (const Reg part : parts) all += rows(part);
  return Add({.kind = StepKind::kJoin, .in = std::move(parts)}, all);
}

Plan::Reg Plan::Xor(Reg a, Reg b) {
  assert(rows(a) == rows(b));
  return Add({.kind = StepKind::kXor, .in = {a, b}}, rows(a));
}

Plan::Reg Plan::Permute(Reg from, absl::Span<const uint16_t> order) {
  assert(rows(from) % order.size() == 0);
  return Add({.kind = StepKind::kPermute, .in = {from}, .order = order}, rows(from));
}

Plan::Reg Plan::Run(const Tape& tape, std::vector<Reg> inputs, size_t copies,
                    std::optional<PublicRows> publics) {
  gates_ += tape.gates() * copies;
  return Add({.kind = StepKind::kTape,
              .in = std::move(inputs),
              .tape = &tape,
              .copies = copies,
              .publics = publics},
             tape.outputs().size() * copies);
}

void Plan::Show(Reg wires) {
  shown_rows_ += rows(wires);
  steps_.push_back({.kind = StepKind::kShow, .in = {wires}});
}

void Plan::Output(Reg wires) {
  output_rows_ += rows(wires);
  steps_.push_back({.kind = StepKind::kOutput, .in = {wires}});
}

void Plan::Finish() {
  std::vector<bool> seen(registers());
  for (size_t i = steps_.size(); i-- > 0;) {
    for (const Reg in : steps_[i].in) {
      const Reg reg = view(in).base;
      if (seen[reg]) continue;
      seen[reg] = true;
      steps_[i].last.push_back(reg);
    }
  }
}

size_t Plan::UnitsOf(const Step& step, size_t lanes) {
  if (step.kind != StepKind::kTape) return 1;
  return TapeShape{step.tape, step.copies, lanes}.units();
}

size_t Plan::LabelsOf(const Step& step, size_t unit, size_t lanes) const {
  switch (step.kind) {
    case StepKind::kInput:
      return kInputRows * step.rows * lanes;
    case StepKind::kTape:
      return kAndRows * TapeShape{step.tape, step.copies, lanes}.GatesOf(unit) * lanes;
    case StepKind::kShow:
      return PackedLabels(rows(step.in[0]) * lanes);
    case StepKind::kOutput:
      return rows(step.in[0]) * lanes;
    default:
      return 0;
  }
}

size_t Plan::Labels(size_t lanes) const {
  size_t all = 0;
  for (const Step& step : steps_) {
    for (size_t unit = 0; unit < UnitsOf(step, lanes); ++unit) all += LabelsOf(step, unit, lanes);
  }
  return all;
}

}  // namespace mpckdc::garble
