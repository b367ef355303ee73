// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/garble/tape.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>
#include <queue>
#include <utility>

namespace mpckdc::garble {
namespace {

// Gates of a block, from which on it ends: what a garbler makes between two looks at its message.
constexpr size_t kBlockGates = 256;

using NodeId = uint32_t;
constexpr NodeId kZero = 0, kOne = 1;

enum class NodeKind : uint8_t { kConstant, kInput, kPublic, kXor, kScale, kGate };

struct Node {
  NodeKind kind;
  std::array<NodeId, 5> args{};  // gate: x, x2, y, y2, z; xor: a, b, c; scale: public, a
  uint32_t row = 0;              // of an input or a public bit
  bool is_public = false;
};

constexpr size_t ArgsOf(NodeKind kind) {
  switch (kind) {
    case NodeKind::kXor:
      return 3;
    case NodeKind::kScale:
      return 2;
    case NodeKind::kGate:
      return 5;
    default:
      return 0;
  }
}

// The program's values without its stages and slots.
class Graph {
 public:
  explicit Graph(const BitProgram& program) : of_slot_(program.slots, kZero) {
    Add({NodeKind::kConstant});
    Add({NodeKind::kConstant});
    std::vector<NodeId> opened;
    for (const BitStage& stage : program.stages) {
      const uint16_t* stores = program.args.data() + stage.stores_at;
      for (size_t i = 0; i < stage.stores; ++i) of_slot_[stores[i]] = opened[i];
      opened.clear();
      for (size_t i = 0; i < stage.sections; ++i) {
        const BitSection& s = program.sections[stage.first_section + i];
        const uint16_t* p = program.args.data() + s.at;
        for (size_t n = 0; n < s.count; ++n) p = AddOne(s, p, opened);
      }
    }
  }

  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<NodeId>& outputs() const { return outputs_; }
  size_t public_rows() const { return public_rows_; }

 private:
  NodeId Add(Node node) {
    if (node.kind == NodeKind::kXor) {
      node.is_public = true;
      for (size_t i = 0; i < 3; ++i) {
        const NodeId arg = node.args[i];
        node.is_public = node.is_public && (nodes_[arg].is_public || arg <= kOne);
      }
    }
    nodes_.push_back(node);
    return static_cast<NodeId>(nodes_.size() - 1);
  }
  NodeId Xor(NodeId a, NodeId b, NodeId c = kZero) {
    if (a == kZero && c == kZero) return b;
    if (b == kZero && c == kZero) return a;
    return Add({NodeKind::kXor, {a, b, c}});
  }

  // Of an instruction; where the next one's operands are.
  const uint16_t* AddOne(const BitSection& s, const uint16_t* p, std::vector<NodeId>& opened) {
    const auto in = [&](size_t i) { return of_slot_[p[i]]; };
    switch (s.op) {
      case BitOp::kInput:
        of_slot_[p[0]] = Add({NodeKind::kInput, {}, p[1]});
        return p + 2;
      case BitOp::kPublic:
        of_slot_[p[0]] = Add({NodeKind::kPublic, {}, p[1], true});
        public_rows_ = std::max<size_t>(public_rows_, p[1] + size_t{1});
        return p + 2;
      case BitOp::kXor2:
        of_slot_[p[0]] = Xor(in(1), in(2));
        return p + 3;
      case BitOp::kXor3:
        of_slot_[p[0]] = Xor(in(1), in(2), in(3));
        return p + 4;
      case BitOp::kNot:
        of_slot_[p[0]] = Xor(in(1), kOne);
        return p + 2;
      case BitOp::kScale:
        of_slot_[p[0]] = Add({NodeKind::kScale, {in(1), in(2)}});
        return p + 3;
      case BitOp::kOutput:
        outputs_.resize(std::max<size_t>(outputs_.size(), p[0] + size_t{1}), kZero);
        outputs_[p[0]] = in(1);
        return p + 2;
      case BitOp::kMajority:  // (x + z)(y + z) + z
        opened.push_back(Add({NodeKind::kGate, {in(0), in(2), in(1), in(2), in(2)}}));
        return p + 3;
      case BitOp::kChoose:  // x(y + z) + z
        opened.push_back(Add({NodeKind::kGate, {in(0), kZero, in(1), in(2), in(2)}}));
        return p + 3;
      case BitOp::kProducts:
        break;
    }
    NodeId sum = kZero;
    for (size_t i = 0; i < s.linears; ++i) sum = Xor(sum, of_slot_[*p++]);
    for (size_t i = 0; i < s.products; ++i, p += 2) {
      const NodeId z = i == 0 ? std::exchange(sum, kZero) : kZero;
      sum = Xor(sum, Add({NodeKind::kGate, {in(0), kZero, in(1), kZero, z}}));
    }
    opened.push_back(sum);
    return p;
  }

  std::vector<Node> nodes_;
  std::vector<NodeId> of_slot_, outputs_;
  size_t public_rows_ = 0;
};

// Gates in groups: of those whose inputs are known, the ones with the longest way to the end.
std::vector<std::vector<NodeId>> Schedule(const std::vector<Node>& nodes) {
  std::vector<uint32_t> height(nodes.size()), waits(nodes.size());
  std::vector<std::vector<NodeId>> users(nodes.size());
  for (NodeId n = static_cast<NodeId>(nodes.size()); n-- > 0;) {
    const Node& node = nodes[n];
    const uint32_t through = height[n] + (node.kind == NodeKind::kGate ? 1 : 0);
    for (size_t i = 0; i < ArgsOf(node.kind); ++i) {
      height[node.args[i]] = std::max(height[node.args[i]], through);
      users[node.args[i]].push_back(n);
    }
    waits[n] = static_cast<uint32_t>(ArgsOf(node.kind));
  }
  using Ready = std::pair<uint32_t, NodeId>;  // height, and the complement of the number
  std::priority_queue<Ready> ready;
  std::vector<NodeId> known;
  const auto settle = [&] {
    while (!known.empty()) {
      const NodeId n = known.back();
      known.pop_back();
      for (const NodeId user : users[n]) {
        if (--waits[user] != 0) continue;
        if (nodes[user].kind == NodeKind::kGate) {
          ready.push({height[user], ~user});
        } else {
          known.push_back(user);
        }
      }
    }
  };
  for (NodeId n = 0; n < nodes.size(); ++n) {
    if (ArgsOf(nodes[n].kind) == 0) known.push_back(n);
  }
  settle();
  std::vector<std::vector<NodeId>> groups;
  while (!ready.empty()) {
    std::vector<NodeId>& group = groups.emplace_back();
    while (!ready.empty() && group.size() < kGroupGates) {
      group.push_back(~ready.top().second);
      ready.pop();
    }
    known = group;
    settle();
  }
  return groups;
}

}  // namespace

// Writes the groups down, each value just before it is needed, and gives out slots.
class TapeMaker {
 public:
  TapeMaker(const BitProgram& program, Tape& tape)
      : graph_(program), nodes_(graph_.nodes()), tape_(tape) {}

  void Make() {
    NumberPublics();
    const std::vector<std::vector<NodeId>> groups = Schedule(nodes_);
    for (const auto& group : groups) {
      for (const NodeId gate : group) {
        for (const NodeId arg : nodes_[gate].args) Need(arg);
      }
      steps_.back().gates = group;
      for (const NodeId gate : group) have_[gate] = true;
      steps_.emplace_back();
    }
    for (const NodeId out : graph_.outputs()) Need(out);
    FindLastUses();
    GiveSlots();
    tape_.public_rows_ = graph_.public_rows();
    for (const NodeId out : graph_.outputs()) tape_.outputs_.push_back(SlotOf(out));
    tape_.slots_ = next_slot_;
  }

 private:
  // One group, and what comes before its gates.
  struct Step {
    std::vector<NodeId> loads, masks, xors, scales, gates;
  };

  void NumberPublics() {
    public_number_.assign(nodes_.size(), kNoPublic);
    size_t next = graph_.public_rows();
    for (NodeId n = 0; n < nodes_.size(); ++n) {
      const Node& node = nodes_[n];
      if (!node.is_public) continue;
      if (node.kind == NodeKind::kPublic) {
        public_number_[n] = node.row;
        continue;
      }
      PublicSum sum = {kNoPublic, kNoPublic, kNoPublic, false};
      uint32_t* const to[] = {&sum.a, &sum.b, &sum.c};
      for (size_t i = 0; i < 3; ++i) {
        if (node.args[i] > kOne) *to[i] = public_number_[node.args[i]];
        if (node.args[i] == kOne) sum.complement = !sum.complement;
      }
      tape_.public_sums_.push_back(sum);
      public_number_[n] = static_cast<uint32_t>(next++);
    }
  }

  void Need(NodeId n) {
    if (n <= kOne || have_[n]) return;
    const Node& node = nodes_[n];
    have_[n] = true;
    if (node.kind == NodeKind::kInput || node.is_public) {
      steps_.back().loads.push_back(n);
      return;
    }
    assert(node.kind != NodeKind::kGate);  // had in its group
    if (node.kind == NodeKind::kScale) {
      Need(node.args[1]);
      if (!has_mask_[node.args[0]]) steps_.back().masks.push_back(node.args[0]);
      has_mask_[node.args[0]] = true;
      steps_.back().scales.push_back(n);
      scaled_in_[n] = steps_.size();
      return;
    }
    for (size_t i = 0; i < 3; ++i) Need(node.args[i]);
    for (size_t i = 0; i < 3; ++i) {
      // Scales are done after sums, so a sum of one belongs to the next group.
      if (scaled_in_[node.args[i]] != steps_.size()) continue;
      steps_.emplace_back();
      break;
    }
    steps_.back().xors.push_back(n);
  }

  // In units of steps; outputs are used at the end.
  void FindLastUses() {
    last_.assign(nodes_.size(), 0);
    last_mask_.assign(nodes_.size(), 0);
    for (size_t at = 0; at < steps_.size(); ++at) {
      for (const auto* list : {&steps_[at].xors, &steps_[at].gates}) {
        for (const NodeId n : *list) {
          for (size_t i = 0; i < ArgsOf(nodes_[n].kind); ++i) last_[nodes_[n].args[i]] = at;
        }
      }
      for (const NodeId n : steps_[at].scales) {
        last_mask_[nodes_[n].args[0]] = at;
        last_[nodes_[n].args[1]] = at;
      }
    }
    for (const NodeId out : graph_.outputs()) last_[out] = std::numeric_limits<size_t>::max();
  }

  uint16_t SlotOf(NodeId n) const {
    if (n == kZero) return kZeroSlot;
    return n == kOne ? kStepSlot : slot_[n];
  }
  uint16_t NewSlot(size_t last_use) {
    uint16_t slot = next_slot_;
    if (free_.empty()) {
      ++next_slot_;
      assert(next_slot_ != 0);
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    if (last_use < steps_.size()) ends_[last_use].push_back(slot);
    return slot;
  }

  void GiveSlots() {
    slot_.assign(nodes_.size(), kZeroSlot);
    mask_slot_.assign(nodes_.size(), kZeroSlot);
    ends_.resize(steps_.size());
    for (size_t at = 0; at < steps_.size();) {
      size_t end = at, gates = 0;
      while (end < steps_.size() && gates < kBlockGates) gates += steps_[end++].gates.size();
      TapeBlock& block = tape_.blocks_.emplace_back();
      for (size_t i = at; i < end; ++i) Load(steps_[i], block);
      for (; at < end; ++at) Write(at, block);
    }
  }

  void Load(const Step& step, TapeBlock& block) {
    for (const NodeId n : step.loads) {
      slot_[n] = NewSlot(last_[n]);
      if (nodes_[n].is_public) {
        block.labels.push_back({slot_[n], public_number_[n]});
      } else {
        block.inputs.push_back({slot_[n], nodes_[n].row});
        tape_.input_rows_ = std::max<size_t>(tape_.input_rows_, nodes_[n].row + size_t{1});
      }
    }
    for (const NodeId n : step.masks) {
      mask_slot_[n] = NewSlot(last_mask_[n]);
      block.masks.push_back({mask_slot_[n], public_number_[n]});
    }
  }

  // What ends here is free from the next group on: a gate's z is read after others are written.
  void Write(size_t at, TapeBlock& block) {
    const Step& step = steps_[at];
    for (const NodeId n : step.xors) {
      const auto& a = nodes_[n].args;
      slot_[n] = NewSlot(last_[n]);
      block.xors.push_back({slot_[n], SlotOf(a[0]), SlotOf(a[1]), SlotOf(a[2])});
    }
    for (const NodeId n : step.scales) {
      const auto& a = nodes_[n].args;
      slot_[n] = NewSlot(last_[n]);
      block.scales.push_back({slot_[n], SlotOf(a[1]), mask_slot_[a[0]]});
    }
    for (const NodeId n : step.gates) {
      const auto& a = nodes_[n].args;
      slot_[n] = NewSlot(last_[n]);
      block.gates.push_back(
          {slot_[n], SlotOf(a[0]), SlotOf(a[1]), SlotOf(a[2]), SlotOf(a[3]), SlotOf(a[4])});
    }
    while (block.gates.size() % kGatePad != 0) block.gates.push_back({kTrashSlot, 0, 0, 0, 0, 0});
    block.groups.push_back({static_cast<uint16_t>(step.xors.size()),
                            static_cast<uint16_t>(step.scales.size()),
                            static_cast<uint16_t>(step.gates.size())});
    block.gate_count += step.gates.size();
    tape_.gates_ += step.gates.size();
    free_.insert(free_.end(), ends_[at].begin(), ends_[at].end());
  }

  const Graph graph_;
  const std::vector<Node>& nodes_;
  Tape& tape_;
  std::vector<uint32_t> public_number_;
  std::vector<Step> steps_ = std::vector<Step>(1);
  std::vector<bool> have_ = std::vector<bool>(nodes_.size()),
                    has_mask_ = std::vector<bool>(nodes_.size());
  std::vector<size_t> scaled_in_ = std::vector<size_t>(nodes_.size());  // steps_.size() then
  std::vector<size_t> last_, last_mask_;
  std::vector<std::vector<uint16_t>> ends_;  // slots, by the step that reads them last
  std::vector<uint16_t> slot_, mask_slot_, free_;
  uint16_t next_slot_ = kFirstSlot;
};

Tape::Tape(const BitProgram& program, size_t output_rows) {
  TapeMaker(program, *this).Make();
  if (outputs_.size() < output_rows) outputs_.resize(output_rows, kZeroSlot);
}

}  // namespace mpckdc::garble
