// SPDX-License-Identifier: Apache-2.0
// Is a shared value zero? Only that bit is learned, and only by the servers.
//
// For an item of blocks t_1..t_k and fresh shared random rho_j that nobody knows,
//     s = sum_j rho_j * t_j  in GF(2^128)
// is one sum of products (one message for the whole item), then opened to the servers, each missing
// component from both of its holders. All t_j zero: s = 0. Otherwise s is uniformly random: it says
// nothing about t, and is zero with probability 2^-128.
#ifndef MPC_SERVER_CIRCUIT_CHECKS_H_
#define MPC_SERVER_CIRCUIT_CHECKS_H_

#include <vector>

#include "absl/types/span.h"
#include "mpc-server/base/isa.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/circuit/gcm/field_log.h"
#include "mpc-server/share/circuit.h"
#include "mpc-server/share/reveal.h"

namespace mpckdc {

// Two rounds; 32 bytes to next and 16 to prev per item.
constexpr Cost CostOfZeroCheck(size_t items) {
  const uint64_t bytes = sizeof(Block) * items;
  return {items == 0 ? 0u : 2u, 2 * bytes, bytes};
}

class ZeroCheck : public Circuit {
 public:
  explicit ZeroCheck(PartyContext& party, const char* what = "zero check", Isa isa = BestIsa());

  // `items`: the blocks of each item (at least one). Copied. Draws the random elements from
  // `party`, so the calls' order must be the same at the three parties.
  void Reset(absl::Span<const absl::Span<const SharedBlock>> items);
  // After Done(): one byte per item, 1 = all blocks are zero.
  absl::Span<const uint8_t> zero() const { return zero_; }

  bool Done() const override { return state_ == State::kDone; }
  RoundShape NextRound() const override;
  void Produce(ZeroShares& zero, RoundOut out) override;
  absl::Status Consume(RoundIn in) override;
  Cost DeclaredCost() const override;

 private:
  enum class State { kMultiply, kOpen, kDone };

  PartyContext& party_;
  const Isa isa_;
  State state_ = State::kDone;
  std::vector<size_t> ends_;              // of each item in blocks_
  SecretVector<SharedBlock> blocks_, rho_;
  SecretVector<SharedBlock> products_;    // s of each item
  absl::Span<const uint8_t> sent_;
  FieldLog log_;
  OpenToServers open_;
  std::vector<uint8_t> zero_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_CHECKS_H_
