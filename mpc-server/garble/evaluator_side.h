// SPDX-License-Identifier: Apache-2.0
// The evaluator's side of a run: see garbler_side.h. What it computes is worth nothing, and nothing
// of it leaves, before G2's MAC of all that G1 sent was right and every label fitted its
// commitment: Check().
#ifndef MPC_SERVER_GARBLE_EVALUATOR_SIDE_H_
#define MPC_SERVER_GARBLE_EVALUATOR_SIDE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/garble/plan_run.h"
#include "mpc-server/garble/run_format.h"
#include "mpc-server/garble/table_mac.h"

namespace mpckdc::garble {

// What the evaluator knows of the outputs, see conversion.h.
struct EvaluatorOutputs {
  SecretVector<uint8_t> colours;  // [row][lane], 0 or 1
  Label sum{};                    // T: of the tokens H(label) + colour * R
};

class EvaluatorSide : public PlanRun {
 public:
  // The components of all inputs' shares, bits [row][lane]. The caller's until the run is done.
  struct Shares {
    absl::Span<const uint8_t> u, w;
  };
  EvaluatorSide(const RunKey& mac_key, const RunInput& input, const Shares& shares, Label start,
                Isa isa = BestIsa());

  // What the units up to the next call read: G1's stream, and the labels of u and w that G1 and G2
  // sent. The caller's until those units have run.
  void Give(absl::Span<const Label> stream, absl::Span<const Label> labels_u,
            absl::Span<const Label> labels_w);

  enum class Fault : uint8_t { kNone, kMac, kLabelOfG1, kLabelOfG2 };
  // After the last step. A wrong label accuses its sender, a wrong MAC G1 or G2.
  Fault Check(const MacTag& from_g2);

  // After Check(). Bits [row][lane] of all that was shown, and the hash of their labels.
  const SecretVector<uint8_t>& shown() const { return shown_bits_; }
  LabelsHash ShownHash() const { return HashOfLabels(shown_); }
  const EvaluatorOutputs& outputs() const { return outputs_; }

 private:
  // G1's stream, through the MAC.
  class Stream : public RowSource {
   public:
    explicit Stream(const RunKey& key) : mac_(key) {}
    void Give(absl::Span<const Label> labels);
    const Label* Next(size_t labels) override;
    TableMac& mac() { return mac_; }

   private:
    TableMac mac_;
    absl::Span<const Label> left_;
  };

  ProgramRun& programs() override { return evaluator_; }
  Wires Input(size_t rows) override;
  void Show(absl::Span<const Label> labels) override;
  void Output(absl::Span<const Label> labels) override;
  bool Fit(absl::Span<const uint8_t> bits, absl::Span<const Label> labels, size_t side,
           const Label* commitments);

  const Shares shares_;
  size_t inputs_done_ = 0;
  Stream stream_;
  absl::Span<const Label> labels_u_, labels_w_;
  const HalfGateFunctions& functions_;
  GateCounter counter_;
  Evaluator evaluator_;
  bool fits_g1_ = true, fits_g2_ = true;
  SecretVector<Label> shown_;
  SecretVector<uint8_t> shown_bits_;
  EvaluatorOutputs outputs_;
};

}  // namespace mpckdc::garble

#endif  // MPC_SERVER_GARBLE_EVALUATOR_SIDE_H_
