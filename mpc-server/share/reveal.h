// SPDX-License-Identifier: Apache-2.0
// Opening a shared value to the three servers: the only code that joins shares, and it joins only
// what the caller asks for by name.
//
// P_i lacks x_{i-1} and v. Both holders send what is missing:
//     P_{i-1} sends x_{i-1}:   v = x_{i-1} ^ a_i
//     P_{i+1} sends a_{i+1}:   v = a_{i+1} ^ x_i
// One lie makes the two differ. P_i cannot tell which of the two lied: the deviation names both
// (deviation.h), and the session ends.
#ifndef MPC_SERVER_SHARE_REVEAL_H_
#define MPC_SERVER_SHARE_REVEAL_H_

#include "mpc-server/base/secret.h"
#include "mpc-server/share/circuit.h"

namespace mpckdc {

// One round, 16 bytes to each neighbour and block.
class OpenToServers : public Circuit {
 public:
  // `what` names the opening in errors and must be a literal.
  OpenToServers(int party, const char* what) : party_(party), what_(what) {}

  // Shares to open; replaces earlier ones. The memory is read in Produce().
  void Reset(absl::Span<const SharedBlock> values);
  // After Done(): public values in the same order.
  absl::Span<const Block> values() const { return opened_; }

  bool Done() const override { return done_; }
  RoundShape NextRound() const override;
  void Produce(ZeroShares& zero, RoundOut out) override;
  absl::Status Consume(RoundIn in) override;
  Cost DeclaredCost() const override;

 private:
  int party_;
  const char* what_;
  absl::Span<const SharedBlock> shares_;
  SecretVector<Block> opened_;
  bool done_ = true;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_SHARE_REVEAL_H_
