// SPDX-License-Identifier: Apache-2.0
// What HMAC costs, from the recorded programs: the runs that hmac.cc starts, as numbers of lanes.
#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "mpc-server/circuit/bitslice/slices.h"
#include "mpc-server/circuit/hash/hash_programs.h"
#include "mpc-server/circuit/hash/hmac.h"
#include "mpc-server/circuit/hash/hmac_states.h"

namespace mpckdc {
namespace {

// Lanes that have the same compressions before them.
struct Class {
  size_t public_left, shared_left;  // inner compressions; the outer one follows
  bool outer = false;               // under way

  bool operator<(const Class& c) const {
    return std::tie(public_left, shared_left, outer) <
           std::tie(c.public_left, c.shared_left, c.outer);
  }
};
using Waiting = std::map<Class, size_t>;  // numbers of lanes

struct Run {
  size_t ends;  // the round
  Waiting lanes;
};

MessageKind KindOfNext(const Class& c) {
  return c.public_left != 0 ? MessageKind::kPublic : MessageKind::kShared;
}

void StartWaiting(HashKind hash, Adder adder, size_t round, const Waiting& waiting,
                  std::vector<Run>& runs, Cost& cost) {
  for (MessageKind kind : {MessageKind::kPublic, MessageKind::kShared}) {
    const BitProgram& program = HashProgram(hash, kind, adder);
    Run run = {round + program.rounds(), {}};
    size_t lanes = 0;
    for (const auto& [c, count] : waiting) {
      if (KindOfNext(c) != kind) continue;
      run.lanes[c] += count;
      lanes += count;
    }
    if (lanes == 0) continue;
    cost.bytes_to_next += WireBytes(lanes, program.opened);
    runs.push_back(run);
  }
}

// The lanes of a run that ended, as they wait again.
void Advance(const Run& run, Waiting& waiting) {
  for (const auto& [before, count] : run.lanes) {
    Class c = before;
    if (c.outer) continue;
    if (c.public_left != 0) {
      --c.public_left;
    } else {
      --c.shared_left;
    }
    c.outer = c.public_left + c.shared_left == 0;
    waiting[c] += count;
  }
}

}  // namespace

Cost CostOfHmac(HashKind hash, Adder adder, absl::Span<const HmacShape> lanes) {
  Waiting waiting;
  for (const HmacShape& lane : lanes) {
    const size_t inner = HmacInnerBlocks(hash, lane.bytes);
    ++waiting[lane.shared ? Class{0, inner} : Class{inner, 0}];
  }
  Cost cost;
  std::vector<Run> runs;
  while (!waiting.empty() || !runs.empty()) {
    StartWaiting(hash, adder, cost.rounds, waiting, runs, cost);
    waiting.clear();
    cost.rounds = std::min_element(runs.begin(), runs.end(), [](const Run& a, const Run& b) {
                    return a.ends < b.ends;
                  })->ends;
    for (size_t i = 0; i < runs.size();) {
      if (runs[i].ends != cost.rounds) {
        ++i;
        continue;
      }
      Advance(runs[i], waiting);
      runs.erase(runs.begin() + static_cast<ptrdiff_t>(i));
    }
  }
  return cost;
}

Cost CostOfHmacStates(HashKind hash, Adder adder, size_t keys) {
  if (keys == 0) return {};
  const BitProgram& program = HashProgram(hash, MessageKind::kShared, adder);
  return {program.rounds(), WireBytes(2 * keys, program.opened), 0};
}

void PrepareHash(HashKind hash, Adder adder) {
  HashProgram(hash, MessageKind::kPublic, adder);
  HashProgram(hash, MessageKind::kShared, adder);
}

}  // namespace mpckdc
