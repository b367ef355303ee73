// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/garble/run_queue.h"

#include <algorithm>
#include <utility>

#include "mpc-server/base/status_macros.h"

namespace mpckdc::garble {

int RunQueue::NextEvaluator(int first) const {
  int best = first;
  for (int i = 1; i < kParties; ++i) {
    const int party = (first + i) % kParties;
    if (bytes_[party] < bytes_[best]) best = party;
  }
  return best;
}

void RunQueue::Add(GarbledRun& run, std::function<void()> then) {
  std::vector<GarbledRun*>& tables = tables_[run.evaluator()];
  tables.insert(tables.end(), run.table_rounds(), &run);
  table_rounds_ = std::max(table_rounds_, tables.size());
  bytes_[run.evaluator()] += run.table_bytes();
  runs_.push_back({&run, std::move(then)});
}

// What is beside goes first, so that it is consumed before a run looks at anything.
template <class Visit>
void RunQueue::ForEach(size_t round, Visit visit) const {
  if (round == 0) {
    for (Circuit* const circuit : beside_) visit(*circuit, static_cast<GarbledRun*>(nullptr));
  }
  if (round == table_rounds_) {
    for (const Entry& entry : runs_) visit(*entry.run, entry.run);
    return;
  }
  for (const std::vector<GarbledRun*>& tables : tables_) {
    if (round < tables.size()) visit(*tables[round], tables[round]);
  }
}

RoundShape RunQueue::NextRound() const {
  RoundShape all;
  RoundShape::Incoming in;
  ForEach(produced_, [&](const Circuit& circuit, GarbledRun*) {
    const RoundShape shape = circuit.NextRound();
    all.to_next += shape.to_next;
    all.to_prev += shape.to_prev;
    in.from_prev += shape.from_prev();
    in.from_next += shape.from_next();
    all.checked_to_next += shape.checked_to_next;
    all.checked_to_prev += shape.checked_to_prev;
    if (*all.step == '\0') all.step = shape.step;
  });
  all.in = in;
  return all;
}

void RunQueue::Produce(ZeroShares& zero, RoundOut out) {
  ForEach(produced_, [&](Circuit& circuit, GarbledRun*) {
    const RoundShape shape = circuit.NextRound();
    circuit.Produce(zero, {out.to_next.first(shape.to_next), out.to_prev.first(shape.to_prev)});
    out.to_next.remove_prefix(shape.to_next);
    out.to_prev.remove_prefix(shape.to_prev);
  });
  ++produced_;
}

absl::Status RunQueue::Consume(RoundIn in) {
  absl::Status status;
  ForEach(consumed_, [&](Circuit& circuit, GarbledRun* run) {
    if (!status.ok()) return;
    const RoundShape shape = run != nullptr ? run->ConsumedRound() : circuit.NextRound();
    status = circuit.Consume(
        {in.from_prev.first(shape.from_prev()), in.from_next.first(shape.from_next())});
    in.from_prev.remove_prefix(shape.from_prev());
    in.from_next.remove_prefix(shape.from_next());
  });
  if (!status.ok()) return status;
  if (++consumed_ > table_rounds_) End();
  return absl::OkStatus();
}

void RunQueue::End() {
  ended_ = DeclaredCost();
  const std::vector<Entry> runs = std::exchange(runs_, {});
  beside_.clear();
  tables_ = {};
  bytes_ = {};
  table_rounds_ = produced_ = consumed_ = 0;
  for (const Entry& entry : runs) {
    if (entry.then) entry.then();
  }
}

Cost RunQueue::DeclaredCost() const {
  if (Done()) return ended_;
  Cost cost = {table_rounds_ + 1, 0, 0};
  const auto add = [&cost](const Circuit& circuit) {
    const Cost one = circuit.DeclaredCost();
    cost.bytes_to_next += one.bytes_to_next;
    cost.bytes_to_prev += one.bytes_to_prev;
  };
  for (const Entry& entry : runs_) add(*entry.run);
  for (const Circuit* circuit : beside_) add(*circuit);
  return ended_ + cost;
}

}  // namespace mpckdc::garble
