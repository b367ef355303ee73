// SPDX-License-Identifier: Apache-2.0
// From recorded values to a program: stages, slots, sections.
#include <algorithm>
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <tuple>

#include "mpc-server/circuit/hash/bit_recorder.h"

namespace mpckdc {
namespace {

bool IsOpened(BitOp op) { return op >= BitOp::kMajority; }
bool IsInput(BitOp op) { return op == BitOp::kInput || op == BitOp::kPublic; }

constexpr uint32_t kUnused = ~0u;
constexpr size_t kMaxSlots = 1 << 16;  // of an operand's 16 bits

}  // namespace

class BitScheduler {
 public:
  BitScheduler(BitRecorder& recorder, absl::Span<const Bit> outputs);

  BitProgram Run() {
    for (uint32_t n : outputs_) rounds_ = std::max(rounds_, nodes_[n].level);
    for (uint32_t n : outputs_) needed_[n] = rounds_;
    MoveLate();
    FindLastUses();
    Sort();
    program_.stages.resize(rounds_ + 1);
    for (uint32_t s = 0; s <= rounds_; ++s) EmitStage(s);
    program_.slots = slots_;
    return std::move(program_);
  }

 private:
  using Node = BitRecorder::Node;
  absl::Span<const uint32_t> ArgsOf(const Node& n) const {
    if (IsInput(n.op)) return {};
    return {args_.data() + n.args, n.arg_count};
  }
  // The stage in which node n is worked out: an opened one is sent a stage before it is needed.
  uint32_t StageOf(uint32_t n) const {
    return needed_[n] - (IsOpened(nodes_[n].op) ? 1 : 0);
  }

  // Backwards: a node is needed in the first stage that works out one of its users.
  void MoveLate() {
    for (uint32_t n = static_cast<uint32_t>(nodes_.size()); n-- > 1;) {
      if (needed_[n] == kUnused) continue;
      assert(needed_[n] >= nodes_[n].level);
      for (uint32_t a : ArgsOf(nodes_[n])) needed_[a] = std::min(needed_[a], StageOf(n));
    }
  }

  void FindLastUses() {
    for (uint32_t n = 1; n < nodes_.size(); ++n) {
      if (needed_[n] == kUnused) continue;
      const uint32_t stage = StageOf(n);
      last_[n] = std::max(last_[n], needed_[n]);
      for (uint32_t a : ArgsOf(nodes_[n])) {
        last_[a] = std::max(last_[a], stage);
        // Local values of one stage that rest on each other come one after the other.
        if (StageOf(a) == stage && !IsOpened(nodes_[a].op)) {
          depth_[n] = std::max(depth_[n], depth_[a] + 1);
        }
      }
      if (IsOpened(nodes_[n].op)) depth_[n] = kUnused;
    }
    for (uint32_t n : outputs_) last_[n] = rounds_;
  }

  // Within a stage by depth, then by form: a section has one form.
  auto Form(uint32_t n) const {
    const Node& d = nodes_[n];
    return std::make_tuple(depth_[n], d.op, d.linears, d.products);
  }
  void Sort() {
    by_stage_.resize(rounds_ + 1);
    ends_.resize(rounds_ + 1);
    for (uint32_t n = 1; n < nodes_.size(); ++n) {
      if (needed_[n] == kUnused) continue;
      by_stage_[StageOf(n)].push_back(n);
      ends_[last_[n]].push_back(n);
    }
    for (auto& stage : by_stage_) {
      std::stable_sort(stage.begin(), stage.end(),
                       [this](uint32_t a, uint32_t b) { return Form(a) < Form(b); });
    }
  }

  uint16_t NewSlot(uint32_t n) {
    if (free_.empty()) {
      if (slots_ == kMaxSlots) {
        std::fprintf(stderr, "bit program: more than %zu values live at once\n", kMaxSlots);
        std::abort();
      }
      free_.push_back(static_cast<uint16_t>(slots_++));
    }
    slot_[n] = free_.back();
    free_.pop_back();
    return slot_[n];
  }

  void EmitStage(uint32_t s) {
    BitStage& stage = program_.stages[s];
    stage.stores_at = static_cast<uint32_t>(program_.args.size());
    if (s > 0) {
      for (uint32_t n : by_stage_[s - 1]) {
        if (!IsOpened(nodes_[n].op)) continue;
        program_.args.push_back(NewSlot(n));
        ++stage.stores;
      }
    }
    stage.first_section = static_cast<uint32_t>(program_.sections.size());
    const std::vector<uint32_t>& nodes = by_stage_[s];
    for (size_t i = 0; i < nodes.size();) {
      size_t end = i;
      while (end < nodes.size() && Form(nodes[end]) == Form(nodes[i])) ++end;
      EmitSection(absl::MakeConstSpan(nodes).subspan(i, end - i), stage);
      i = end;
    }
    if (s == rounds_) EmitOutputs();
    stage.sections = static_cast<uint32_t>(program_.sections.size()) - stage.first_section;
    program_.opened += stage.opened;
    for (uint32_t n : ends_[s]) free_.push_back(slot_[n]);
  }

  void EmitSection(absl::Span<const uint32_t> nodes, BitStage& stage) {
    const Node& first = nodes_[nodes[0]];
    program_.sections.push_back({first.op, first.linears, first.products,
                                 static_cast<uint32_t>(nodes.size()),
                                 static_cast<uint32_t>(program_.args.size())});
    for (uint32_t n : nodes) {
      const Node& d = nodes_[n];
      if (IsOpened(d.op)) {
        ++stage.opened;
      } else {
        program_.args.push_back(NewSlot(n));
      }
      if (IsInput(d.op)) program_.args.push_back(static_cast<uint16_t>(args_[d.args]));
      for (uint32_t a : ArgsOf(d)) program_.args.push_back(slot_[a]);
    }
  }

  void EmitOutputs() {
    program_.sections.push_back({BitOp::kOutput, 0, 0, static_cast<uint32_t>(outputs_.size()),
                                 static_cast<uint32_t>(program_.args.size())});
    for (size_t row = 0; row < outputs_.size(); ++row) {
      program_.args.push_back(static_cast<uint16_t>(row));
      program_.args.push_back(slot_[outputs_[row]]);
    }
  }

  const std::vector<Node>& nodes_;
  const std::vector<uint32_t>& args_;
  std::vector<uint32_t> outputs_;
  std::vector<uint32_t> needed_, last_, depth_;        // by node; needed_, last_: stages
  std::vector<uint16_t> slot_;                         // by node
  std::vector<std::vector<uint32_t>> by_stage_, ends_;  // nodes
  std::vector<uint16_t> free_;
  size_t slots_ = 0;
  uint32_t rounds_ = 0;
  BitProgram program_;
};

BitScheduler::BitScheduler(BitRecorder& recorder, absl::Span<const Bit> outputs)
    : nodes_(recorder.nodes_), args_(recorder.args_) {
  for (Bit b : outputs) outputs_.push_back(recorder.Plain(b));
  needed_.assign(nodes_.size(), kUnused);
  last_.assign(nodes_.size(), 0);
  depth_.assign(nodes_.size(), 0);
  slot_.assign(nodes_.size(), 0);
}

BitProgram BitRecorder::Finish(absl::Span<const Bit> outputs) {
  return BitScheduler(*this, outputs).Run();
}

}  // namespace mpckdc
