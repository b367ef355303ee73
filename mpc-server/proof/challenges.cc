// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/proof/challenges.h"

#include <cstring>

#include "mpc-server/proof/transcript.h"

namespace mpckdc::proof {

Digest ChallengeChain::HashOf(const Salt& salt, absl::Span<const uint8_t> message) {
  return Transcript("mpc-kdc proof message").Add(salt).Add(message).Hash();
}

void ChallengeChain::Absorb(const Digest& hash_of_message) {
  state_ = Transcript("mpc-kdc proof chain").Add(state_).Add(hash_of_message).Hash();
}

std::vector<F> ChallengeChain::Draw(size_t count) const {
  std::vector<F> challenges(count);
  for (size_t i = 0; i < count; ++i) {
    const Digest digest = Transcript("mpc-kdc proof challenge").Add(state_).Add(i).Hash();
    static_assert(sizeof(F) <= sizeof(Digest));
    std::memcpy(&challenges[i], digest.data(), sizeof(F));
  }
  return challenges;
}

}  // namespace mpckdc::proof
