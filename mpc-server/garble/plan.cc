// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/garble/plan.h"

#include <cassert>
#include <utility>

#include "mpc-server/garble/program_run.h"
#include "mpc-server/garble/run_format.h"

namespace mpckdc::garble {

Plan::Reg Plan::Add(Step step, size_t rows) {
  step.out = static_cast<Reg>(views_.size());
  step.rows = rows;
  views_.push_back({step.out, 0, rows});
  steps_.push_back(std::move(step));
  return steps_.back().out;
}

Plan::Reg Plan::Input(size_t rows) {
  input_rows_ += rows;
  return Add({.kind = StepKind::kInput}, rows);
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

Plan::Reg Plan::Run(const BitProgram& program, std::vector<Reg> inputs, size_t output_rows,
                    std::optional<PublicRows> publics) {
  const size_t gates = AndGatesOf(program);
  gates_ += gates;
  return Add({.kind = StepKind::kProgram,
              .in = std::move(inputs),
              .program = &program,
              .gates = gates,
              .publics = publics},
             output_rows);
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

size_t Plan::LabelsOf(const Step& step, const Plan& plan, size_t lanes) {
  switch (step.kind) {
    case StepKind::kInput:
      return kInputRows * step.rows * lanes;
    case StepKind::kProgram:
      return kAndRows * step.gates * lanes;
    case StepKind::kShow:
      return PackedLabels(plan.rows(step.in[0]) * lanes);
    case StepKind::kOutput:
      return plan.rows(step.in[0]) * lanes;
    default:
      return 0;
  }
}

size_t Plan::Labels(size_t lanes) const {
  size_t all = 0;
  for (const Step& step : steps_) all += LabelsOf(step, *this, lanes);
  return all;
}

}  // namespace mpckdc::garble
