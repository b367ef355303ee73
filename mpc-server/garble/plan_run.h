// SPDX-License-Identifier: Apache-2.0
// One side of a run of a plan: what garblers and evaluator do alike, unit by unit.
#ifndef MPC_SERVER_GARBLE_PLAN_RUN_H_
#define MPC_SERVER_GARBLE_PLAN_RUN_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "mpc-server/garble/plan.h"
#include "mpc-server/garble/program_run.h"
#include "mpc-server/garble/wires.h"

namespace mpckdc::garble {

// What a run is about, the same at the three servers; the caller's until it is done. strings:
// [string][lane].
struct RunInput {
  const Plan* plan = nullptr;
  size_t lanes = 1;
  std::vector<std::vector<absl::string_view>> strings = {};
};

class PlanRun {
 public:
  virtual ~PlanRun() = default;

  bool Done() const { return next_ == input_.plan->steps().size(); }
  // The next unit (Plan::UnitsOf()).
  void RunUnit();

 protected:
  explicit PlanRun(const RunInput& input) : input_(input), registers_(input.plan->registers()) {}

  size_t lanes() const { return input_.lanes; }
  const Plan& plan() const { return *input_.plan; }

 private:
  virtual ProgramRun& programs() = 0;
  virtual Wires Input(size_t rows) = 0;
  virtual void Show(absl::Span<const Label> labels) = 0;
  virtual void Output(absl::Span<const Label> labels) = 0;

  Wires Compute(const Plan::Step& step);
  void BeginTape(const Plan::Step& step);
  Wires Permuted(const Plan::Step& step) const;
  absl::Span<const Label> LabelsOf(Plan::Reg reg) const;
  Wires Joined(const std::vector<Plan::Reg>& parts, size_t rows) const;
  Wires SetPublic(const std::vector<uint8_t>& rows);
  std::vector<uint8_t> RowsOf(const Plan::PublicRows& publics) const;

  const RunInput input_;
  std::vector<Wires> registers_;
  std::vector<absl::Span<const Label>> inputs_;  // of the tape at hand
  std::optional<Wires> tape_out_;                // of the one that is under way
  size_t next_ = 0;
};

}  // namespace mpckdc::garble

#endif  // MPC_SERVER_GARBLE_PLAN_RUN_H_
