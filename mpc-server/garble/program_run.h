// SPDX-License-Identifier: Apache-2.0
// A recorded program (circuit/hash/bit_program.h) as a garbled circuit, on both sides. It is the
// program that runs on shares: what is opened there is an AND gate here, one for each product; the
// gates of a stage do not depend on each other and are garbled together.
//
//     labels     [row][lane]          of inputs and outputs, as the program numbers rows
//     publics    [row][lane]          bytes, 0 or 1
//
// A public bit p is a wire whose label at the evaluator is zero, and whose zero label is p * Delta.
// Its value is kept too: a product with it is free.
//
// Rows of gates pass in the order in which they are made; nobody keeps them here.
#ifndef MPC_SERVER_GARBLE_PROGRAM_RUN_H_
#define MPC_SERVER_GARBLE_PROGRAM_RUN_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mpc-server/base/isa.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/circuit/hash/bit_recorder.h"
#include "mpc-server/garble/half_gates.h"

namespace mpckdc::garble {

// Where a garbler's rows go, and an evaluator's come from. The memory is good until the next call.
class RowSink {
 public:
  virtual ~RowSink() = default;
  virtual Label* Take(size_t labels) = 0;
};
class RowSource {
 public:
  virtual ~RowSource() = default;
  virtual const Label* Next(size_t labels) = 0;
};

// AND gates of one lane.
size_t AndGatesOf(const BitProgram& program);

// One garbling of some lanes: what numbers its gates. For one thread.
class GateCounter {
 public:
  explicit GateCounter(const HashKey& start) : start_(start) {}
  GateRange Take(size_t gates, size_t lanes) {
    const GateRange range = {start_, next_, gates, lanes};
    next_ += gates;
    return range;
  }
  // For hashes that are no gate's: as many tweaks as gates have two each.
  uint64_t TakeTweaks(size_t tweaks) {
    const uint64_t first = 2 * next_;
    next_ += (tweaks + 1) / 2;
    return first;
  }
  const HashKey& start() const { return start_; }
  uint64_t gates() const { return next_; }

 private:
  const HashKey start_;
  uint64_t next_ = 0;
};

// Garblings side by side.
inline constexpr size_t kMostLanes = 16;

// What both sides do alike with labels.
class ProgramRun {
 public:
  virtual ~ProgramRun() = default;

  // The inputs' rows stand in `inputs`, one part behind the other; `outputs` has room for the
  // program's. `publics`: empty for a program that reads none.
  void Run(const BitProgram& program, absl::Span<const absl::Span<const Label>> inputs,
           absl::Span<const uint8_t> publics, Label* outputs);
  void Run(const BitProgram& program, absl::Span<const Label> inputs,
           absl::Span<const uint8_t> publics, Label* outputs) {
    Run(program, absl::MakeConstSpan(&inputs, 1), publics, outputs);
  }
  // The labels of public bits [row][lane].
  void SetPublic(absl::Span<const uint8_t> bits, Label* out) const {
    for (size_t i = 0; i < bits.size(); ++i) out[i] = step_[i % lanes_].If(bits[i] != 0);
  }
  size_t lanes() const { return lanes_; }

 protected:
  // `step`: what a lane's zero label changes by when its value does, and so what the label that
  // stands for it here changes by: Delta, or zero at the evaluator. The caller's.
  explicit ProgramRun(absl::Span<const Label> step) : lanes_(step.size()), step_(step) {}

  // The gates c = a AND b of all lanes.
  virtual void Gates(size_t gates, const Label* a, const Label* b, Label* c) = 0;

 private:
  template <size_t kLanes, bool kPublics>
  struct Ops;
  struct Rows {
    const Label* const* inputs;  // by row
    const uint8_t* publics;
    Label* outputs;
  };
  template <size_t kLanes>
  void RunOn(const BitProgram& program, const Rows& rows);
  template <size_t kLanes, bool kPublics>
  void RunStage(const BitProgram& program, const BitStage& stage, const Rows& rows);

  const size_t lanes_;
  const absl::Span<const Label> step_;
  SecretVector<Label> slots_, a_, b_, c_, opened_;
  std::vector<const Label*> input_rows_;
  std::vector<uint8_t> plain_;  // of slots with public bits; of others nothing
};

class Garbler : public ProgramRun {
 public:
  // One Delta for each lane; all is the caller's and outlives this.
  Garbler(GateCounter& counter, absl::Span<const Label> delta, RowSink& rows, Isa isa = BestIsa())
      : ProgramRun(delta),
        functions_(AllHalfGates().For(isa)),
        counter_(counter),
        delta_(delta),
        rows_(rows) {}

 private:
  void Gates(size_t gates, const Label* a, const Label* b, Label* c) override {
    const GateRange range = counter_.Take(gates, lanes());
    functions_.garble(range, delta_.data(), a, b, rows_.Take(kAndRows * gates * lanes()), c);
  }

  const HalfGateFunctions& functions_;
  GateCounter& counter_;
  const absl::Span<const Label> delta_;
  RowSink& rows_;
};

class Evaluator : public ProgramRun {
 public:
  Evaluator(GateCounter& counter, size_t lanes, RowSource& rows, Isa isa = BestIsa())
      : ProgramRun(Zeros(lanes)),
        functions_(AllHalfGates().For(isa)),
        counter_(counter),
        rows_(rows) {}

 private:
  static absl::Span<const Label> Zeros(size_t lanes) {
    static constexpr Label kZeros[kMostLanes] = {};
    return absl::MakeConstSpan(kZeros, lanes);
  }
  void Gates(size_t gates, const Label* a, const Label* b, Label* c) override {
    const GateRange range = counter_.Take(gates, lanes());
    functions_.evaluate(range, a, b, rows_.Next(kAndRows * gates * lanes()), c);
  }

  const HalfGateFunctions& functions_;
  GateCounter& counter_;
  RowSource& rows_;
};

}  // namespace mpckdc::garble

#endif  // MPC_SERVER_GARBLE_PROGRAM_RUN_H_
