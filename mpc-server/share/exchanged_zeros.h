// SPDX-License-Identifier: Apache-2.0
// The zero shares of a chunk made by an exchange (Randomness::kExchanged): P_i draws rho_i, sends
// it to P_{i+1}, and has alpha_i = rho_i ^ rho_{i-1} (Araki et al. 2.2). One round. Internal to
// share/.
//
// P_{i+1} gets r_i masked by alpha_i and knows rho_i, but not rho_{i-1}.
#ifndef MPC_SERVER_SHARE_EXCHANGED_ZEROS_H_
#define MPC_SERVER_SHARE_EXCHANGED_ZEROS_H_

#include "mpc-server/base/random_source.h"
#include "mpc-server/share/circuit.h"
#include "mpc-server/share/zero_shares.h"

namespace mpckdc {

class ExchangedZeros : public Circuit {
 public:
  // As many bytes as the circuits will send to next: each such byte takes at most one. `apart`: as
  // of ZeroPool.
  void Reset(absl::Span<Circuit* const> circuits, RandomSource& random, bool apart);
  ZeroPool& pool() { return pool_; }

  bool Done() const override { return own_.empty(); }
  RoundShape NextRound() const override { return {own_.size(), 0, "zero shares"}; }
  void Produce(ZeroShares& zero, RoundOut out) override;
  absl::Status Consume(RoundIn in) override;
  Cost DeclaredCost() const override { return {1, own_.size(), 0}; }

 private:
  RandomSource* random_ = nullptr;
  ZeroPool pool_;
  absl::Span<uint8_t> own_;  // in the pool: rho_i until Consume()
};

}  // namespace mpckdc

#endif  // MPC_SERVER_SHARE_EXCHANGED_ZEROS_H_
