// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/aes/sbox_log.h"

namespace mpckdc {
namespace {

// Where the rows of a part begin within rows of 64 bytes.
const uint8_t* At(const uint8_t* rows, size_t part) {
  return rows == nullptr ? nullptr : rows + part * kFewProofLanes / 8;
}

}  // namespace

SboxLog::SboxLog(size_t bytes, Isa isa) : bytes_(bytes), kernels_(AllSboxRecords().For(isa)) {}

void SboxLog::Reset(Sbox sbox) {
  sbox_ = sbox;
  log_ = nullptr;
}

const SboxRecordKernels& SboxLog::KernelsFor(size_t group) const {
  const ProofSection& section = groups_[group].sections[0];
  if (section.row == 8) return kSboxRecordFew;
  return section.far ? kernels_.far : kernels_.near;
}

// Those of the layer under way.
SboxRows SboxLog::RowsOf(size_t group, size_t part) const {
  const ProofSection& section = groups_[group].sections[part];
  const size_t node = (groups_[group].layers - 1) * bytes_;
  return {bytes_,
          {section.Wires(kProofOwn, node), section.Wires(kProofLeft, node)},
          {section.T(kProofOwn, node), section.T(kProofLeft, node)}};
}

void SboxLog::EndLayer(size_t group, const uint8_t* received) {
  const auto end = KernelsFor(group).end[static_cast<size_t>(sbox_)];
  for (size_t part = 0; part < groups_[group].parts; ++part) {
    end(RowsOf(group, part), linear_, At(received, part));
  }
}

void SboxLog::BeginLayer(ProofLog& log, const SboxStep& step) {
  if (groups_.size() <= step.group) groups_.resize(step.group + 1);
  Group& group = groups_[step.group];
  log_ = &log;
  if (step.layer != 0) EndLayer(step.group, step.in.received);
  const bool full = step.layer * bytes_ % kProofNodes == 0;
  for (size_t part = 0; full && step.layer != 0 && part < group.parts; ++part) {
    log.Close(group.sections[part], kProofNodes);
  }
  if (full) {
    const auto gadget = sbox_ == Sbox::kThroughput ? Gadget::kSbox17 : Gadget::kSbox22;
    group.parts = ProofSectionsFor(step.lanes);
    group.layers = 0;
    for (size_t part = 0; part < group.parts; ++part) {
      group.sections[part] = log.Open(gadget, ProofLanesOf(step.lanes, part));
    }
  }
  ++group.layers;
}

void SboxLog::Record(ProofLog& log, const SboxStep& step) {
  if (step.stage == SboxStage::kNorm) BeginLayer(log, step);
  if (step.stage == SboxStage::kProduct || step.stage == SboxStage::kScale) linear_ = step.linear;
  for (size_t part = 0; part < groups_[step.group].parts; ++part) RecordPart(step, part);
}

void SboxLog::RecordPart(const SboxStep& step, size_t part) const {
  const SboxRows to = RowsOf(step.group, part);
  const uint8_t* state = At(step.state, part);
  const SentRows in = {At(step.in.sent, part), At(step.in.received, part)};
  const ZeroRows zero = {At(step.zero.own, part), At(step.zero.next, part)};
  const SboxRecordKernels& kernels = KernelsFor(step.group);
  switch (step.stage) {
    case SboxStage::kNorm:
      return kernels.norm[static_cast<size_t>(sbox_)](to, state, zero);
    case SboxStage::kHelper:
      return kernels.helper(to, in, zero);
    case SboxStage::kInverse:
      return kernels.inverse(to, in, zero);
    case SboxStage::kTwist:
      return kernels.twist(to, in, zero);
    case SboxStage::kProduct:
      return kernels.product(to, step.linear, in, zero);
    case SboxStage::kScale:
      return kernels.scale(to, step.linear, in, zero);
  }
}

void SboxLog::Finish(size_t group, const uint8_t* received) {
  if (log_ == nullptr) return;
  EndLayer(group, received);
  for (size_t part = 0; part < groups_[group].parts; ++part) {
    log_->Close(groups_[group].sections[part], groups_[group].layers * bytes_);
  }
}

}  // namespace mpckdc
