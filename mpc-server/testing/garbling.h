// SPDX-License-Identifier: Apache-2.0
// A garbler and an evaluator in one process, and what the wires' labels say.
#ifndef MPC_SERVER_TESTING_GARBLING_H_
#define MPC_SERVER_TESTING_GARBLING_H_

#include <functional>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "mpc-server/garble/program_run.h"

namespace mpckdc::garble {

// Rows from the garbler to the evaluator.
class Tables : public RowSink, public RowSource {
 public:
  Label* Take(size_t labels) override {
    rows.resize(rows.size() + labels);
    return rows.data() + rows.size() - labels;
  }
  const Label* Next(size_t labels) override {
    EXPECT_LE(at_ + labels, rows.size());
    at_ += labels;
    for (size_t i = at_ - labels; alter && i < at_; ++i) alter(rows[i]);
    return rows.data() + at_ - labels;
  }
  bool AllRead() const { return at_ == rows.size(); }

  std::vector<Label> rows;
  std::function<void(Label&)> alter;

 private:
  size_t at_ = 0;
};

// Both sides of a computation on bits [row][lane] that one process knows. Values are labels; what
// is computed of them goes through the tables.
class Garbling {
 public:
  Garbling(size_t lanes, Isa isa, uint64_t seed)
      : random_(seed),
        delta_(Draw(lanes)),
        start_{random_(), random_()},
        garbler_gates_(start_),
        evaluator_gates_(start_),
        garbler_(garbler_gates_, OddDeltas(), tables, isa),
        evaluator_(evaluator_gates_, lanes, tables, isa) {}

  struct Wires {
    std::vector<Label> zero, held;
  };
  Wires Input(const std::vector<uint8_t>& bits) {
    Wires w = {Draw(bits.size()), {}};
    for (size_t i = 0; i < bits.size(); ++i) {
      w.held.push_back(w.zero[i] ^ delta_[i % lanes()].If(bits[i] != 0));
    }
    return w;
  }
  Wires Run(const Tape& tape, const Wires& in, const std::vector<uint8_t>& publics = {},
            size_t copies = 1) {
    const size_t labels = tape.outputs().size() * copies * lanes();
    Wires out = {std::vector<Label>(labels), std::vector<Label>(labels)};
    RunOne(garbler_, tape, copies, in.zero, publics, out.zero);
    RunOne(evaluator_, tape, copies, in.held, publics, out.held);
    return out;
  }
  // Rows in another order, as Plan::Permute().
  Wires Permute(const Wires& in, absl::Span<const uint16_t> order) const {
    Wires out;
    for (size_t i = 0; i < in.zero.size(); ++i) {
      const size_t from = order[i / lanes()] * lanes() + i % lanes();
      out.zero.push_back(in.zero[from]);
      out.held.push_back(in.held[from]);
    }
    return out;
  }
  // Whether the evaluator holds one of the two labels of each wire.
  bool AreLabels(const Wires& w) const {
    for (size_t i = 0; i < w.zero.size(); ++i) {
      const Label difference = w.zero[i] ^ w.held[i];
      if (!(difference == Label{} || difference == delta_[i % lanes()])) return false;
    }
    return true;
  }
  std::vector<uint8_t> Value(const Wires& w) const {
    EXPECT_TRUE(AreLabels(w));
    std::vector<uint8_t> bits;
    for (size_t i = 0; i < w.zero.size(); ++i) {
      bits.push_back(w.zero[i].colour() != w.held[i].colour());
    }
    return bits;
  }
  size_t lanes() const { return delta_.size(); }
  size_t gates() const { return garbler_gates_.gates(); }
  ProgramRun& garbler() { return garbler_; }
  ProgramRun& evaluator() { return evaluator_; }

  Tables tables;

 private:
  static void RunOne(ProgramRun& side, const Tape& tape, size_t copies, absl::Span<const Label> in,
                     const std::vector<uint8_t>& publics, std::vector<Label>& out) {
    side.Begin(tape, copies, {in}, publics);
    while (!side.Done()) side.RunUnit(out.data());
  }
  std::vector<Label> Draw(size_t count) {
    std::vector<Label> labels(count);
    for (Label& l : labels) l = {random_(), random_()};
    return labels;
  }
  absl::Span<const Label> OddDeltas() {
    for (Label& d : delta_) d.low |= 1;
    return delta_;
  }

  std::mt19937_64 random_;
  std::vector<Label> delta_;
  const HashKey start_;
  GateCounter garbler_gates_, evaluator_gates_;
  Garbler garbler_;
  Evaluator evaluator_;
};

}  // namespace mpckdc::garble

#endif  // MPC_SERVER_TESTING_GARBLING_H_
