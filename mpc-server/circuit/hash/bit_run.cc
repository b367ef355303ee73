// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/hash/bit_run.h"

#include <algorithm>
#include <cstring>

#include "mpc-server/circuit/bitslice/transpose.h"
#include "mpc-server/circuit/lane_groups.h"

namespace mpckdc {
namespace {

constexpr size_t kFewLanes = 64;
static_assert(kFewLanes == kFewProofLanes && kGroupLanes == kProofLanes, "a row is a row there");

// Rows between a message, `width` bytes apart, and memory, `row` bytes apart.
void Expand(const uint8_t* wire, size_t count, size_t width, size_t row, uint8_t* rows) {
  if (row == kRowBytes) return ExpandRows(wire, count, width, rows);
  for (size_t i = 0; i < count; ++i) {
    uint64_t v = 0;
    for (size_t b = 0; b < width; ++b) v |= uint64_t{wire[i * width + b]} << 8 * b;
    std::memcpy(rows + i * row, &v, sizeof(v));
  }
}
void Compact(const uint8_t* rows, size_t count, size_t width, size_t row, uint8_t* wire) {
  if (row == kRowBytes) return CompactRows(rows, count, width, wire);
  for (size_t i = 0; i < count; ++i) {
    for (size_t b = 0; b < width; ++b) wire[i * width + b] = rows[i * row + b];
  }
}

}  // namespace

void BitRun::Start(const BitProgram& program, size_t lanes, size_t input_rows,
                   size_t public_rows) {
  program_ = &program;
  kernels_ = lanes <= kFewLanes ? &kBitKernelsFew : &AllBitKernels().For(isa_);
  lanes_ = lanes;
  input_rows_ = input_rows;
  public_rows_ = public_rows;
  stage_ = 0;
  log_.Reset();
  sent_ = {};
  size_t longest = 0;
  for (const BitStage& s : program.stages) longest = std::max<size_t>(longest, s.opened);
  Grow(slots_, groups() * 2 * program.slots * kernels_->row);
  Grow(inputs_, groups() * 2 * input_rows * kRowBytes);
  Grow(publics_, groups() * public_rows * kRowBytes);
  Grow(scratch_, 2 * longest * kRowBytes);
}

uint8_t* BitRun::InputRows(size_t group, int c) {
  return inputs_.data() + (2 * group + static_cast<size_t>(c)) * input_rows_ * kRowBytes;
}
uint8_t* BitRun::PublicRows(size_t group) {
  return publics_.data() + group * public_rows_ * kRowBytes;
}

BitRows BitRun::RowsOf(size_t group, uint8_t* msg) {
  return {slots_.data() + group * 2 * program_->slots * kernels_->row,
          {InputRows(group, 0), InputRows(group, 1)},
          PublicRows(group),
          {InputRows(group, 0), InputRows(group, 1)},
          msg,
          WireRowBytes(LanesInGroup(lanes_, group))};
}

void BitRun::RunStage(const BitRows& rows) const {
  const BitStage& stage = program_->stages[stage_];
  kernels_->run(program_->sections.data() + stage.first_section, stage.sections,
                program_->args.data(), rows);
}

void BitRun::Produce(ZeroShares& zero, absl::Span<uint8_t> out) {
  ProofLog* const log = zero.log();
  ZeroHalves halves;
  if (log != nullptr) {
    halves = zero.FillApart(out);
  } else {
    zero.Fill(out);
  }
  const size_t opened = program_->stages[stage_].opened;
  for (size_t g = 0; g < groups(); ++g) {
    const size_t at = g * opened * kRowBytes;
    ProduceGroup(g, out.subspan(at, opened * WireRowBytes(LanesInGroup(lanes_, g))));
    if (log != nullptr) RecordGroup(*log, g, {halves.own + at, halves.next + at});
  }
  sent_ = out;
}

const uint8_t* BitRun::Widened(const uint8_t* wire, size_t rows, size_t group,
                               uint8_t* scratch) const {
  const size_t width = WireRowBytes(LanesInGroup(lanes_, group)), row = kernels_->row;
  if (width == row) return wire;
  Expand(wire, rows, width, row, scratch);
  return scratch;
}

void BitRun::RecordGroup(ProofLog& log, size_t group, const ZeroHalves& halves) {
  const BitStage& stage = program_->stages[stage_];
  uint8_t* both = scratch_.data();
  log_.Open(log, *kernels_,
            absl::MakeConstSpan(program_->sections).subspan(stage.first_section, stage.sections),
            program_->args.data(),
            {group, LanesInGroup(lanes_, group), RowsOf(group, nullptr).slots,
             Widened(halves.own, stage.opened, group, both),
             Widened(halves.next, stage.opened, group, both + stage.opened * kernels_->row)});
}

void BitRun::ProduceGroup(size_t group, absl::Span<uint8_t> wire) {
  const size_t width = WireRowBytes(LanesInGroup(lanes_, group)), row = kernels_->row;
  if (width == row) return RunStage(RowsOf(group, wire.data()));
  const size_t opened = program_->stages[stage_].opened;
  Expand(wire.data(), opened, width, row, scratch_.data());
  RunStage(RowsOf(group, scratch_.data()));
  Compact(scratch_.data(), opened, width, row, wire.data());
}

void BitRun::StoreGroup(size_t group, const uint8_t* sent, const uint8_t* received) {
  const BitStage& next = program_->stages[stage_];
  uint8_t* both = scratch_.data();
  sent = Widened(sent, next.stores, group, both);
  received = Widened(received, next.stores, group, both + next.stores * kernels_->row);
  log_.Receive(group, received);
  kernels_->store(program_->args.data() + next.stores_at, next.stores, sent, received,
                  RowsOf(group, nullptr));
}

void BitRun::Consume(absl::Span<const uint8_t> received) {
  ++stage_;
  const size_t stores = program_->stages[stage_].stores;
  for (size_t g = 0; g < groups(); ++g) {
    const size_t at = g * stores * kRowBytes;
    StoreGroup(g, sent_.data() + at, received.data() + at);
  }
  if (!Done()) return;
  for (size_t g = 0; g < groups(); ++g) {
    log_.Finish(g);
    RunStage(RowsOf(g, nullptr));
  }
}

}  // namespace mpckdc
