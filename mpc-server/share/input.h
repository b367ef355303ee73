// SPDX-License-Identifier: Apache-2.0
// Values that somebody outside gave to the three servers as additive shares: P_i got p_i, and v =
// p_0 + p_1 + p_2. One round makes them replicated shares, as it does with the sum of products
// (circuit.h), of which p_i takes the place:
//
//     r_i = p_i + alpha_i      send r_i right, receive r_{i-1} from the left
//     share of v:   x_i = r_i + r_{i-1},   a_i = r_i
//
// Any p_0, p_1, p_2 are a sharing of something, so nobody outside can give shares that contradict
// each other. P_{i+1} sees p_i under a zero share it lacks one key of.
#ifndef MPC_SERVER_SHARE_INPUT_H_
#define MPC_SERVER_SHARE_INPUT_H_

#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/share/circuit.h"
#include "mpc-server/share/replicated_share.h"

namespace mpckdc {

// One round, 16 bytes to next per block.
class ShareInput : public Circuit {
 public:
  // This server's p_i of each value. Copied; the number is the same at the three servers.
  void Reset(absl::Span<const Block> own_shares);
  // After Done(), in the order of the shares, until the next Reset().
  absl::Span<const SharedBlock> values() const { return {values_.data(), count_}; }

  bool Done() const override { return done_; }
  RoundShape NextRound() const override;
  void Produce(ZeroShares& zero, RoundOut out) override;
  absl::Status Consume(RoundIn in) override;
  Cost DeclaredCost() const override;

 private:
  SecretVector<SharedBlock> values_;  // a holds p_i, then r_i
  size_t count_ = 0;
  bool done_ = true;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_SHARE_INPUT_H_
