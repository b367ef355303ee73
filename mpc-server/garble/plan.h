// SPDX-License-Identifier: Apache-2.0
// What a run computes, as a list of steps over registers of wires: made from lengths alone, so the
// same for all messages of these lengths and for the three servers. A step has units (several, of a
// tape), and each says how much it adds to what G1 sends. So a garbler makes as many as fill a
// message, and the evaluator as many as have arrived; nobody holds all tables.
//
//     Plan plan;
//     const Plan::Reg text = ..., key = plan.Input(128);
//     plan.Show(plan.Run(tape, {text, key}));
//     plan.Finish();
//
// A register is written once, or is a view of some rows of another. After its last use it is freed.
#ifndef MPC_SERVER_GARBLE_PLAN_H_
#define MPC_SERVER_GARBLE_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "mpc-server/garble/program_run.h"
#include "mpc-server/key/hash_kind.h"

namespace mpckdc::garble {

class Plan {
 public:
  using Reg = uint32_t;
  // A string that all servers know, of this length in each lane, another in each: given to a run in
  // the order of these calls.
  using String = uint32_t;
  // Rows of public bits from a string: bytes as they are, or what a compression of the string's
  // HMAC reads of a block: K_t + W_t (circuit/hash/hash_programs.h).
  struct PublicRows {
    String string;
    size_t first = 0, bytes = 0;
    std::optional<HashKind> schedule = {};
    size_t block = 0;
  };

  enum class StepKind : uint8_t {
    kInput,
    kPublic,
    kConstant,
    kJoin,
    kPermute,
    kXor,
    kTape,
    kShow,
    kOutput
  };
  struct Step {
    StepKind kind;
    Reg out = 0;               // unless it is shown or an output
    std::vector<Reg> in = {};  // joined, where there are several
    size_t rows = 0;           // of `out`
    const Tape* tape = nullptr;
    size_t copies = 1;
    std::optional<PublicRows> publics = {};  // of kPublic, and a tape's
    absl::Span<const uint16_t> order = {};   // of kPermute; not owned
    std::vector<uint8_t> constant = {};      // bytes, the same in all lanes
    std::vector<Reg> last = {};              // no views; used here for the last time
  };

  // A shared input: the run's next one.
  Reg Input(size_t rows);
  String AddString(size_t bytes);
  Reg Public(String string, size_t first, size_t bytes);
  // The same in all lanes and runs.
  Reg Constant(std::vector<uint8_t> bytes);

  Reg Rows(Reg from, size_t first, size_t count);
  Reg Bytes(Reg from, size_t first, size_t count) { return Rows(from, 8 * first, 8 * count); }
  Reg Join(std::vector<Reg> parts);
  Reg Xor(Reg a, Reg b);
  // Row i of each order.size() rows is their row order[i]. The order is the caller's for ever.
  Reg Permute(Reg from, absl::Span<const uint16_t> order);
  // Rows [row][copy], as the tape numbers rows.
  Reg Run(const Tape& tape, std::vector<Reg> inputs, size_t copies = 1,
          std::optional<PublicRows> publics = {});

  // What the servers know afterwards, and what stays among them as shares (conversion.h).
  void Show(Reg wires);
  void Output(Reg wires);
  // Nothing follows.
  void Finish();

  // Where a register's rows are: in itself, or in the one that it is a view of.
  struct View {
    Reg base;
    size_t first, rows;
  };
  const View& view(Reg reg) const { return views_[reg]; }
  size_t rows(Reg reg) const { return views_[reg].rows; }
  size_t bytes(Reg reg) const { return rows(reg) / 8; }
  const std::vector<Step>& steps() const { return steps_; }
  size_t registers() const { return views_.size(); }
  const std::vector<size_t>& strings() const { return strings_; }
  size_t input_rows() const { return input_rows_; }
  size_t shown_rows() const { return shown_rows_; }
  size_t output_rows() const { return output_rows_; }
  size_t gates() const { return gates_; }

  // What a unit adds to the stream, in labels, for so many lanes; and all do.
  static size_t UnitsOf(const Step& step, size_t lanes);
  size_t LabelsOf(const Step& step, size_t unit, size_t lanes) const;
  size_t Labels(size_t lanes) const;

 private:
  Reg Add(Step step, size_t rows);

  std::vector<Step> steps_;
  std::vector<View> views_;      // by register
  std::vector<size_t> strings_;  // bytes of a lane's
  size_t input_rows_ = 0, shown_rows_ = 0, output_rows_ = 0, gates_ = 0;
};

}  // namespace mpckdc::garble

#endif  // MPC_SERVER_GARBLE_PLAN_H_
