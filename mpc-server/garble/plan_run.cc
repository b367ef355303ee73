// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/garble/plan_run.h"

#include <algorithm>
#include <utility>

#include "mpc-server/base/bytes.h"
#include "mpc-server/garble/hmac_padding.h"
#include "mpc-server/key/hash_plain.h"
#include "mpc-server/key/hash_template.h"

namespace mpckdc::garble {
namespace {

void PutLane(absl::Span<const uint8_t> bytes, size_t lane, size_t lanes,
             std::vector<uint8_t>& rows) {
  for (size_t i = 0; i < 8 * bytes.size(); ++i) rows[i * lanes + lane] = bytes[i / 8] >> i % 8 & 1;
}

}  // namespace

std::vector<uint8_t> PlanRun::RowsOf(const Plan::PublicRows& publics) const {
  const auto& strings = input_.strings[publics.string];
  if (!publics.schedule.has_value()) {
    std::vector<uint8_t> rows(8 * publics.bytes * lanes());
    for (size_t lane = 0; lane < lanes(); ++lane) {
      PutLane(AsBytes(strings[lane].substr(publics.first, publics.bytes)), lane, lanes(), rows);
    }
    return rows;
  }
  const HashKind hash = *publics.schedule;
  std::vector<uint8_t> schedule(HashSteps(hash) * HashWordBits(hash) / 8);
  std::vector<uint8_t> rows(8 * schedule.size() * lanes());
  for (size_t lane = 0; lane < lanes(); ++lane) {
    const auto message = AsBytes(strings[lane]);
    std::vector<uint8_t> padded(message.begin(), message.end());
    const std::vector<uint8_t> padding = HmacPadding(hash, message.size());
    padded.insert(padded.end(), padding.begin(), padding.end());
    PublicSchedule(hash, &padded[publics.block * HashBlockBytes(hash)], schedule.data());
    PutLane(schedule, lane, lanes(), rows);
  }
  return rows;
}

Wires PlanRun::SetPublic(const std::vector<uint8_t>& rows) {
  Wires wires(rows.size() / lanes(), lanes());
  programs().SetPublic(rows, wires.labels().data());
  return wires;
}

absl::Span<const Label> PlanRun::LabelsOf(Plan::Reg reg) const {
  const Plan::View& view = plan().view(reg);
  return registers_[view.base].labels().subspan(view.first * lanes(), view.rows * lanes());
}

Wires PlanRun::Joined(const std::vector<Plan::Reg>& parts, size_t rows) const {
  Wires all(rows, lanes());
  Label* to = all.labels().data();
  for (const Plan::Reg part : parts) {
    const auto labels = LabelsOf(part);
    to = std::copy(labels.begin(), labels.end(), to);
  }
  return all;
}

Wires PlanRun::Compute(const Plan::Step& step) {
  switch (step.kind) {
    case Plan::StepKind::kInput:
      return Input(step.rows);
    case Plan::StepKind::kPublic:
      return SetPublic(RowsOf(*step.publics));
    case Plan::StepKind::kConstant: {
      std::vector<uint8_t> rows(8 * step.constant.size() * lanes());
      for (size_t lane = 0; lane < lanes(); ++lane) PutLane(step.constant, lane, lanes(), rows);
      return SetPublic(rows);
    }
    case Plan::StepKind::kJoin:
      return Joined(step.in, step.rows);
    case Plan::StepKind::kXor: {
      Wires sum = Joined({step.in[0]}, step.rows);
      const auto with = LabelsOf(step.in[1]);
      for (size_t i = 0; i < with.size(); ++i) sum.labels()[i] = sum.labels()[i] ^ with[i];
      return sum;
    }
    case Plan::StepKind::kPermute:
      return Permuted(step);
    case Plan::StepKind::kTape:
      break;
    case Plan::StepKind::kShow:
      Show(LabelsOf(step.in[0]));
      return {};
    case Plan::StepKind::kOutput:
      Output(LabelsOf(step.in[0]));
      return {};
  }
  if (!tape_out_.has_value()) BeginTape(step);
  programs().RunUnit(tape_out_->labels().data());
  if (!programs().Done()) return {};
  Wires out = *std::move(tape_out_);
  tape_out_.reset();
  return out;
}

void PlanRun::BeginTape(const Plan::Step& step) {
  inputs_.clear();
  for (const Plan::Reg reg : step.in) inputs_.push_back(LabelsOf(reg));
  programs().Begin(*step.tape, step.copies, inputs_,
                   step.publics.has_value() ? RowsOf(*step.publics) : std::vector<uint8_t>());
  tape_out_.emplace(step.rows, lanes());
}

Wires PlanRun::Permuted(const Plan::Step& step) const {
  const absl::Span<const Label> from = LabelsOf(step.in[0]);
  Wires to(step.rows, lanes());
  for (size_t at = 0; at < step.rows; at += step.order.size()) {
    for (size_t i = 0; i < step.order.size(); ++i) {
      std::copy_n(&from[(at + step.order[i]) * lanes()], lanes(), to.row(at + i));
    }
  }
  return to;
}

void PlanRun::RunUnit() {
  const Plan::Step& step = plan().steps()[next_];
  Wires wires = Compute(step);
  if (tape_out_.has_value()) return;
  ++next_;
  if (wires.rows() != 0) registers_[step.out] = std::move(wires);
  for (const Plan::Reg reg : step.last) registers_[reg] = {};
}

}  // namespace mpckdc::garble
