// SPDX-License-Identifier: Apache-2.0
// A tape (tape.h) on both sides: a garbler's and an evaluator's.
//
//     labels     [row][copy][lane]    of inputs and outputs, as the program numbers rows
//     publics    [row][lane]          bytes, 0 or 1; only with one copy
//
// Lanes are garblings of the same circuit side by side: each has a Delta of its own, and they share
// tweaks. Copies are of one garbling: the S-boxes of a block are sixteen copies of one program.
//
// A public bit p is a wire whose label at the evaluator is zero, and whose zero label is p * Delta.
// Its value is kept too: a product with it is free.
//
// A tape runs in units, a block of it over some copies each. Rows of gates pass in the order in
// which they are made; nobody keeps them here.
#ifndef MPC_SERVER_GARBLE_PROGRAM_RUN_H_
#define MPC_SERVER_GARBLE_PROGRAM_RUN_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mpc-server/base/isa.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/garble/half_gates.h"
#include "mpc-server/garble/tape.h"

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

// One garbling of some lanes: what numbers its gates. For one thread.
class GateCounter {
 public:
  explicit GateCounter(const HashKey& start) : start_(start) {}
  // The number of the first one.
  uint64_t Take(size_t gates) {
    next_ += gates;
    return next_ - gates;
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

// What is run: so many copies, in all lanes.
struct TapeShape {
  const Tape* tape;
  size_t copies, lanes;

  // Copies that are run together: what they need stays in the cache.
  size_t together() const;
  size_t units() const { return copies / together() * tape->blocks().size(); }
  // Gates of a unit's copies, of one lane.
  size_t GatesOf(size_t unit) const {
    return tape->blocks()[unit % tape->blocks().size()].gate_count * together();
  }
  size_t gates() const { return tape->gates() * copies; }
};

// What both sides do alike with labels.
class ProgramRun {
 public:
  virtual ~ProgramRun() = default;

  // The inputs' rows stand in `inputs`, one part behind the other, and are the caller's until the
  // last unit has run; `publics`: empty for a program that reads none.
  void Begin(const Tape& tape, size_t copies, absl::Span<const absl::Span<const Label>> inputs,
             absl::Span<const uint8_t> publics);
  // The next unit. `outputs` has room for all of the program's.
  void RunUnit(Label* outputs);
  bool Done() const { return unit_ == shape_.units(); }

  // The labels of public bits [row][lane].
  void SetPublic(absl::Span<const uint8_t> bits, Label* out) const {
    for (size_t i = 0; i < bits.size(); ++i) out[i] = step_[i % lanes_].If(bits[i] != 0);
  }
  size_t lanes() const { return lanes_; }

 protected:
  // `step`: what a lane's zero label changes by when its value does, and so what the label that
  // stands for it here changes by: Delta, or zero at the evaluator. The caller's.
  explicit ProgramRun(absl::Span<const Label> step) : lanes_(step.size()), step_(step) {}

  // Adds what only one side has, and runs it.
  virtual void RunBlock(BlockRun& run, size_t gates) = 0;

 private:
  size_t width() const { return shape_.together() * lanes_; }
  Label* Slot(uint16_t slot) { return slots_.data() + slot * width(); }
  void AddPublics(absl::Span<const uint8_t> publics);
  void Load(const TapeBlock& block, size_t first_copy);

  const size_t lanes_;
  const absl::Span<const Label> step_;
  TapeShape shape_{};
  size_t unit_ = 0;
  std::vector<const Label*> inputs_;  // by row
  std::vector<uint8_t> public_;       // [public bit][lane]
  SecretVector<Label> slots_, scratch_;
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
  void RunBlock(BlockRun& run, size_t gates) override {
    run.start = counter_.start();
    run.first = counter_.Take(gates);
    run.delta = delta_.data();
    run.garbled = rows_.Take(kAndRows * gates * lanes());
    functions_.garble_block(run);
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
  void RunBlock(BlockRun& run, size_t gates) override {
    run.start = counter_.start();
    run.first = counter_.Take(gates);
    run.arrived = rows_.Next(kAndRows * gates * lanes());
    functions_.evaluate_block(run);
  }

  const HalfGateFunctions& functions_;
  GateCounter& counter_;
  RowSource& rows_;
};

}  // namespace mpckdc::garble

#endif  // MPC_SERVER_GARBLE_PROGRAM_RUN_H_
