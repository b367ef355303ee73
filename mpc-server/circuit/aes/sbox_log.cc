// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/aes/sbox_log.h"

namespace mpckdc {

SboxLog::SboxLog(size_t bytes, Isa isa) : bytes_(bytes), kernels_(AllSboxRecords().For(isa)) {}

void SboxLog::Reset(Sbox sbox) {
  sbox_ = sbox;
  log_ = nullptr;
}

const SboxRecordKernels& SboxLog::KernelsFor(size_t group) const {
  return groups_[group].section.row == 8 ? kSboxRecordFew : kernels_;
}

// Those of the layer under way.
SboxRows SboxLog::RowsOf(size_t group) const {
  const Group& g = groups_[group];
  const size_t node = (g.layers - 1) * bytes_;
  return {bytes_,
          {g.section.Wires(kProofOwn, node), g.section.Wires(kProofLeft, node)},
          {g.section.T(kProofOwn, node), g.section.T(kProofLeft, node)}};
}

void SboxLog::EndLayer(size_t group, const uint8_t* received) {
  KernelsFor(group).end[static_cast<size_t>(sbox_)](RowsOf(group), linear_, received);
}

void SboxLog::BeginLayer(ProofLog& log, const SboxStep& step) {
  if (groups_.size() <= step.group) groups_.resize(step.group + 1);
  Group& group = groups_[step.group];
  log_ = &log;
  if (step.layer != 0) EndLayer(step.group, step.in.received);
  const bool full = step.layer * bytes_ % kProofNodes == 0;
  if (full && step.layer != 0) log.Close(group.section, kProofNodes);
  if (full) {
    const auto gadget = sbox_ == Sbox::kThroughput ? Gadget::kSbox17 : Gadget::kSbox22;
    group = {log.Open(gadget, step.lanes), 0};
  }
  ++group.layers;
}

void SboxLog::Record(ProofLog& log, const SboxStep& step) {
  if (step.stage == SboxStage::kNorm) BeginLayer(log, step);
  const SboxRows to = RowsOf(step.group);
  const SboxRecordKernels& kernels = KernelsFor(step.group);
  switch (step.stage) {
    case SboxStage::kNorm:
      return kernels.norm[static_cast<size_t>(sbox_)](to, step.state, step.zero);
    case SboxStage::kHelper:
      return kernels.helper(to, step.in, step.zero);
    case SboxStage::kInverse:
      return kernels.inverse(to, step.in, step.zero);
    case SboxStage::kTwist:
      return kernels.twist(to, step.in, step.zero);
    case SboxStage::kProduct:
      linear_ = step.linear;
      return kernels.product(to, step.linear, step.in, step.zero);
    case SboxStage::kScale:
      linear_ = step.linear;
      return kernels.scale(to, step.linear, step.in, step.zero);
  }
}

void SboxLog::Finish(size_t group, const uint8_t* received) {
  if (log_ == nullptr) return;
  EndLayer(group, received);
  log_->Close(groups_[group].section, groups_[group].layers * bytes_);
}

}  // namespace mpckdc
