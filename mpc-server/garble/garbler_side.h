// SPDX-License-Identifier: Apache-2.0
// One garbler's side of a run: inputs, gates (a ProgramRun), outputs. G1 and G2 do the same, byte
// for byte, but for which labels of the inputs they send.
//
// A share is v = u + w + m: u is known to E and G1, w to E and G2, m to both garblers. Zero labels
// U and W are drawn; the wire's is U + W + m * Delta. E gets the labels of u and w and adds them.
#ifndef MPC_SERVER_GARBLE_GARBLER_SIDE_H_
#define MPC_SERVER_GARBLE_GARBLER_SIDE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/garble/draws.h"
#include "mpc-server/garble/program_run.h"
#include "mpc-server/garble/run_stream.h"
#include "mpc-server/garble/wires.h"

namespace mpckdc::garble {

enum class GarblerNumber { kG1, kG2 };

// For the KDC alone: with E's part it has the output, and knows that E's part is right (output.h).
struct GarblerOutput {
  SecretVector<uint8_t> permute;  // [row][lane], 0 or 1
  SecretVector<Label> sums;       // K of each lane
  RunKey alpha_key{};             // what draws the alphas
};

class GarblerSide {
 public:
  GarblerSide(GarblerNumber number, const RunKey& key, size_t lanes, ChunkSink& to,
              Isa isa = BestIsa());

  ProgramRun& run() { return garbler_; }
  HashKey hash_start() const { return counter_.start(); }

  // A shared input: m, and u at G1 or w at G2, as bits [row][lane].
  Wires Input(absl::Span<const uint8_t> m, absl::Span<const uint8_t> own);
  // The labels of `own` of all inputs so far: for E alone, and only when the run's job is agreed
  // on.
  absl::Span<const Label> own_labels() const { return own_labels_; }

  // Bits that the servers will know: their permute bits go to E.
  void Show(const Wires& wires);
  // Whether E holds the labels of the bits that it names, of all that was shown.
  bool Holds(absl::Span<const uint8_t> bits, const std::array<uint8_t, 32>& labels_hash) const;

  // Bits for the KDC.
  void Output(const Wires& wires, GarblerOutput* out);
  // Nothing follows.
  void Finish() { stream_.Flush(); }

 private:
  const GarblerNumber number_;
  Draws draws_;
  SecretVector<Label> delta_;
  StreamOut stream_;
  const HalfGateFunctions& functions_;
  GateCounter counter_;
  Garbler garbler_;
  SecretVector<Label> own_labels_, shown_;
};

}  // namespace mpckdc::garble

#endif  // MPC_SERVER_GARBLE_GARBLER_SIDE_H_
