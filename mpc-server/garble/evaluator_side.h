// SPDX-License-Identifier: Apache-2.0
// The evaluator's side of a run: see garbler_side.h. What it computes is worth nothing, and nothing
// of it leaves, before G2's MAC of all that G1 sent was right and every label fitted its
// commitment: Check().
#ifndef MPC_SERVER_GARBLE_EVALUATOR_SIDE_H_
#define MPC_SERVER_GARBLE_EVALUATOR_SIDE_H_

#include <array>
#include <cstdint>

#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/garble/program_run.h"
#include "mpc-server/garble/table_mac.h"
#include "mpc-server/garble/wires.h"

namespace mpckdc::garble {

// Where chunks come from: as many bytes as asked for, good until the next call.
class ChunkSource {
 public:
  virtual ~ChunkSource() = default;
  virtual absl::Span<const uint8_t> Next(size_t bytes) = 0;
};

// For the KDC alone.
struct EvaluatorOutput {
  SecretVector<uint8_t> colours;  // [row][lane], 0 or 1
  SecretVector<Label> sums;       // T of each lane
};

class EvaluatorSide {
 public:
  // hash_start: as G1 and G2 said it, alike.
  EvaluatorSide(const HashKey& hash_start, const RunKey& mac_key, size_t lanes, ChunkSource& from,
                Isa isa = BestIsa());

  ProgramRun& run() { return evaluator_; }

  // u and w as bits [row][lane]; their labels, as G1 and G2 sent them.
  Wires Input(absl::Span<const uint8_t> u, absl::Span<const uint8_t> w,
              absl::Span<const Label> labels_u, absl::Span<const Label> labels_w);
  // Bits [row][lane].
  SecretVector<uint8_t> Show(const Wires& wires);
  // Of the labels of all that was shown.
  std::array<uint8_t, 32> ShownHash() const;
  void Output(const Wires& wires, EvaluatorOutput* out);

  // At the end. A wrong label accuses its sender; a wrong MAC G1 or G2.
  enum class Fault { kNone, kMac, kLabelOfG1, kLabelOfG2 };
  Fault Check(const MacTag& from_g2);

 private:
  // Rows, through the MAC.
  class Rows : public RowSource {
   public:
    Rows(ChunkSource& from, TableMac& mac) : from_(from), mac_(mac) {}
    const Label* Next(size_t labels) override;

   private:
    ChunkSource& from_;
    TableMac& mac_;
  };
  bool Fit(absl::Span<const uint8_t> bits, absl::Span<const Label> labels, size_t side,
           uint64_t tweak, const Label* commitments) const;

  TableMac mac_;
  Rows rows_;
  const HalfGateFunctions& functions_;
  GateCounter counter_;
  Evaluator evaluator_;
  bool fits_g1_ = true, fits_g2_ = true;
  SecretVector<Label> shown_;
};

}  // namespace mpckdc::garble

#endif  // MPC_SERVER_GARBLE_EVALUATOR_SIDE_H_
