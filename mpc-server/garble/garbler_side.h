// SPDX-License-Identifier: Apache-2.0
// One garbler's side of a run. G1 and G2 do the same, byte for byte, but for which labels of the
// inputs they send.
//
// A share is v = u + w + m: u is known to E and G1, w to E and G2, m to both garblers. Zero labels
// U and W are drawn; the wire's is U + W + m * Delta. E gets the labels of u and w and adds them.
#ifndef MPC_SERVER_GARBLE_GARBLER_SIDE_H_
#define MPC_SERVER_GARBLE_GARBLER_SIDE_H_

#include <array>
#include <cassert>
#include <cstdint>
#include <utility>

#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/garble/draws.h"
#include "mpc-server/garble/plan_run.h"
#include "mpc-server/garble/run_format.h"

namespace mpckdc::garble {

enum class GarblerNumber { kG1, kG2 };

// What a garbler knows of the outputs, see conversion.h.
struct GarblerOutputs {
  SecretVector<uint8_t> permute;  // [row][lane], 0 or 1: its component of the shares
  SecretVector<Label> alphas;     // [row][lane]
  Label sum{};                    // K: of H(label of colour 0) + permute * alpha
};

class GarblerSide : public PlanRun {
 public:
  // The components of all inputs' shares, bits [row][lane]: m, and u at G1 or w at G2. The
  // caller's until the run is done.
  struct Shares {
    absl::Span<const uint8_t> m, own;
  };
  GarblerSide(GarblerNumber number, const RunKey& key, const RunInput& input, const Shares& shares,
              Isa isa = BestIsa());

  // Where the hash's keys begin: the first label of what G1 sends.
  Label start() const { return {counter_.start().low, counter_.start().high}; }
  // Where the units up to the next call put what G1 sends of them: as many labels as they have.
  void Give(absl::Span<Label> stream) { stream_.Give(stream); }
  // The labels that this garbler sends, of the units since the last call.
  SecretVector<Label> TakeOwnLabels() { return std::exchange(own_labels_, {}); }

  // After the last step. Whether E holds the labels of the bits that it names.
  bool Holds(absl::Span<const uint8_t> bits, const LabelsHash& labels) const;
  const GarblerOutputs& outputs() const { return outputs_; }

 private:
  class Stream : public RowSink {
   public:
    void Give(absl::Span<Label> room) {
      assert(left_.empty());
      left_ = room;
    }
    Label* Take(size_t labels) override {
      assert(labels <= left_.size());
      Label* const taken = left_.data();
      left_.remove_prefix(labels);
      return taken;
    }

   private:
    absl::Span<Label> left_;
  };

  ProgramRun& programs() override { return garbler_; }
  Wires Input(size_t rows) override;
  void Show(absl::Span<const Label> labels) override;
  void Output(absl::Span<const Label> labels) override;
  void Commit(size_t side, const SecretVector<Label>& zero, Label* commitments);

  const GarblerNumber number_;
  const Shares shares_;
  size_t inputs_done_ = 0;
  Draws draws_;
  SecretVector<Label> delta_;
  Stream stream_;
  const HalfGateFunctions& functions_;
  GateCounter counter_;
  Garbler garbler_;
  SecretVector<Label> own_labels_, shown_;
  GarblerOutputs outputs_;
};

}  // namespace mpckdc::garble

#endif  // MPC_SERVER_GARBLE_GARBLER_SIDE_H_
