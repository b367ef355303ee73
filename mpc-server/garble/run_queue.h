// SPDX-License-Identifier: Apache-2.0
// The garbled runs of a batch as one circuit. Each server evaluates some of them, so that tables
// come in on all lines; those of one evaluator come one after the other; and the results of all go
// in one round, since every wait for a result is a way there and back.
//
//     P0 evaluates   | run A .............. | run D .... |
//     P1 evaluates   | run B ............................ |   results of A, B, C, D
//     P2 evaluates   | run C .......... |
//                    |
//                    what goes beside, before anything is evaluated
//
// No table waits for a message. What a party is late with as an evaluator does not hold up what it
// garbles, up to kRoundsAhead rounds.
#ifndef MPC_SERVER_GARBLE_RUN_QUEUE_H_
#define MPC_SERVER_GARBLE_RUN_QUEUE_H_

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "mpc-server/garble/garbled_run.h"
#include "mpc-server/share/circuit.h"

namespace mpckdc::garble {

class RunQueue : public Circuit {
 public:
  // Who evaluates the next run: the party that has the fewest bytes so far; of several the first
  // from `first` on.
  int NextEvaluator(int first) const;
  // The run is the caller's until its results are there. `then` is called then, in the order of
  // adding, and may add others: they follow, with another round of results.
  void Add(GarbledRun& run, std::function<void()> then);
  // A circuit of one round, which goes with the first tables and is consumed before them.
  void Beside(Circuit& circuit) { beside_.push_back(&circuit); }

  bool Done() const override { return runs_.empty() && beside_.empty(); }
  RoundShape NextRound() const override;
  bool RunsAhead() const override { return produced_ < table_rounds_ || produced_ == consumed_; }
  void Produce(ZeroShares& zero, RoundOut out) override;
  absl::Status Consume(RoundIn in) override;
  // Of all that was added.
  Cost DeclaredCost() const override;

 private:
  struct Entry {
    GarbledRun* run;
    std::function<void()> then;
  };

  // visit(circuit, run) of what shares a round; `run` is null for one beside.
  template <class Visit>
  void ForEach(size_t round, Visit visit) const;
  void End();

  std::vector<Entry> runs_;
  std::vector<Circuit*> beside_;
  // Whose tables a round carries, by the party that evaluates them.
  std::array<std::vector<GarbledRun*>, kParties> tables_;
  std::array<uint64_t, kParties> bytes_{};
  size_t table_rounds_ = 0, produced_ = 0, consumed_ = 0;
  Cost ended_;
};

}  // namespace mpckdc::garble

#endif  // MPC_SERVER_GARBLE_RUN_QUEUE_H_
