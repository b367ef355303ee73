// SPDX-License-Identifier: Apache-2.0
// Challenges that are hashes of all that came before them (Fiat, Shamir 1986). A prover may try as
// many messages as it likes: so they are elements of GF(2^128), where 2^80 tries find one that
// hides a lie with probability below 2^-40.
//
//     state_0 = H(start)      state_n = H(state_{n-1}, H(salt, message n))      r = H(state_n, 0),
//     ..
//
// L hears only the hashes of what R gets. The salt is known to the prover and to R: without it L,
// which knows its own share, could try out what the sums are made of.
#ifndef MPC_SERVER_PROOF_CHALLENGES_H_
#define MPC_SERVER_PROOF_CHALLENGES_H_

#include <array>
#include <vector>

#include "absl/types/span.h"
#include "mpc-server/base/sha256.h"
#include "mpc-server/proof/field128.h"

namespace mpckdc::proof {

using Salt = std::array<uint8_t, 32>;

class ChallengeChain {
 public:
  // `start`: of coins, session and prover.
  explicit ChallengeChain(const Digest& start) : state_(start) {}

  static Digest HashOf(const Salt& salt, absl::Span<const uint8_t> message);
  void Absorb(const Digest& hash_of_message);
  std::vector<F> Draw(size_t count) const;
  const Digest& state() const { return state_; }

 private:
  Digest state_;
};

}  // namespace mpckdc::proof

#endif  // MPC_SERVER_PROOF_CHALLENGES_H_
