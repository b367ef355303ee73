// SPDX-License-Identifier: Apache-2.0
// A run of a plan by three parties: shares in, shares and shown bits out. A circuit
// (share/circuit.h) whose rounds are few and whose parties have roles: P_e evaluates (E), P_{e+1}
// is G1, P_{e+2} is G2.
//
//     rounds 0 .. n-1   G1 -> E    a piece of the stream (run_format.h), labels of u for its inputs
//                       G2 -> E    labels of w for them; in the last round the MAC of the stream
//     round n           E -> G1    what was shown, the hash of its labels, a_e, T + rho
//                       E -> G2    what was shown, the hash of its labels
//                       G2 -> G1   G2's part of T, + rho                         (conversion.h)
//
// A garbler computes and sends piece after piece, and E evaluates them as they come. G1 goes as
// fast as its line takes them. G2, which sends little, would soon wait in round n for as long as
// that lasts, and a peer that is silent for so long is given up: so in some rounds of a long run E
// sends G2 a byte, 0, as soon as it has come there. G2's MAC comes no sooner than the last of them
// has gone there and the MAC back, so behind it there is as much of the stream as passes meanwhile:
// on a line that is not known to be slow 4 MiB, on a slow one what it carries in a moment.
//
// Every message is checked by its receiver before anything that rests on it leaves, so nothing is
// left to prove (proof/): the MAC, commitments, the labels' hash, the sums. Each failure is a
// Deviation that names who can have done it.
#ifndef MPC_SERVER_GARBLE_GARBLED_RUN_H_
#define MPC_SERVER_GARBLE_GARBLED_RUN_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "mpc-server/base/secret.h"
#include "mpc-server/base/sha256.h"
#include "mpc-server/garble/conversion.h"
#include "mpc-server/garble/evaluator_side.h"
#include "mpc-server/garble/garbler_side.h"
#include "mpc-server/garble/plan.h"
#include "mpc-server/share/circuit.h"

namespace mpckdc::garble {

// What this party draws with each of its neighbours, for one run and no other. Who has a garbler's
// and what its evaluator was sent has the users' keys: in secret memory only.
struct NeighbourKeys {
  std::array<RunKey, 2> own{};   // with the previous party, from k_i
  std::array<RunKey, 2> next{};  // with the next one, from k_{i+1}
};

// Of garbling `number` of the party's batch: numbers only rise in a batch. `agreed`: a hash of what
// this party believes that the three agreed on. Two garblers who were told different stories, and
// so mean different circuits, draw different keys: labels of one circuit are never labels of the
// other, whose difference would be Delta.
Secret<NeighbourKeys> DrawNeighbourKeys(PartyContext& party, uint32_t number, const Digest& agreed);

// How a run's stream is cut, and how often E tells G2 that it goes on. The same at the three.
struct Pace {
  // Of the stream, in a round at least. Enough that a frame's costs do not show, and little to
  // hold.
  size_t piece_labels = 8192;
  // From one word of E's to G2 to the next one, at least; and behind the last one.
  size_t word_labels = size_t{1} << 16;       // 1 MiB
  size_t unawaited_labels = size_t{1} << 18;  // 4 MiB
  // Also before G2 has sent its last labels, which then come later by a word's way and theirs.
  bool among_inputs = false;
};
// Where so many bytes pass in a moment (PartyContext::quick_bytes()).
Pace PaceOf(size_t quick_bytes);

class GarbledRun : public Circuit {
 public:
  // `inputs`: this party's components of the plan's inputs, bits [row][lane].
  GarbledRun(int party, int evaluator, Secret<NeighbourKeys> keys, const RunInput& input,
             SharedBits inputs, const Pace& pace = {});

  bool Done() const override { return consumed_ == rounds(); }
  RoundShape NextRound() const override { return ShapeOf(produced_); }
  bool RunsAhead() const override { return produced_ < table_rounds() || produced_ == consumed_; }
  void Produce(ZeroShares& zero, RoundOut out) override;
  absl::Status Consume(RoundIn in) override;
  Cost DeclaredCost() const override;

  // All but the last one.
  size_t table_rounds() const { return pieces_.size(); }
  // Of the round that is consumed next.
  RoundShape ConsumedRound() const { return ShapeOf(consumed_); }
  int evaluator() const;
  // Of G1's, with labels.
  uint64_t table_bytes() const;

  // After Done(). Bits [row][lane], in the order of the plan.
  const SecretVector<uint8_t>& shown() const { return shown_; }
  const SharedBits& outputs() const { return outputs_; }

 private:
  enum class Role : uint8_t { kE, kG1, kG2 };
  // What one round carries: units of the plan, and labels.
  struct Piece {
    size_t units = 0, stream = 0, inputs = 0;
    bool awaited = false;  // E tells G2 that it has come so far
  };
  struct Sizes {
    size_t g1_to_e = 0, g2_to_e = 0, e_to_g1 = 0, e_to_g2 = 0, g2_to_g1 = 0;
  };

  size_t rounds() const { return pieces_.size() + 1; }
  Sizes SizesOf(size_t round) const;
  RoundShape ShapeOf(size_t round) const;
  void Cut();
  void MarkAwaited();
  void Garble(absl::Span<uint8_t> out);
  absl::Status Evaluate(RoundIn in);
  void Tell(RoundOut out);
  absl::Status Hear(RoundIn in);
  absl::Status HearOutputs(absl::Span<const uint8_t> from_e, absl::Span<const uint8_t> from_g2);

  const int party_;
  const Role role_;
  const Secret<NeighbourKeys> keys_;
  const RunInput input_;
  const Pace pace_;
  const SharedBits inputs_;
  std::vector<Piece> pieces_;
  size_t produced_ = 0, consumed_ = 0;  // rounds
  std::optional<GarblerSide> garbler_;
  std::optional<EvaluatorSide> evaluator_;  // from the first message on
  std::optional<TableMac> mac_;             // G2's
  std::optional<ConversionDraws> draws_;    // of E and G2
  SecretVector<Label> stream_;              // of a piece, where it is not in the message itself
  SecretVector<uint8_t> shown_;
  SharedBits outputs_;
};

}  // namespace mpckdc::garble

#endif  // MPC_SERVER_GARBLE_GARBLED_RUN_H_
