// SPDX-License-Identifier: Apache-2.0
// Coins that the three toss together (Blum 1981, with a hash as the commitment): random to each of
// them until all three secrets are out, if one of the other two is honest.
//
//     commit   P_j -> both   c_j = H(session, j, n, s_j)          n counts the session's coins
//     reveal   P_j -> both   s_j | c'_j                            the next coin's commitment with
//     it coin n = H(session, n, s_0, s_1, s_2)
//
// P_j reveals s_j only when it has received all that the coin must come after. Who reveals
// something else than it committed to has deviated; who reveals nothing ends the session. Two
// stories to two peers (other s_j, other c_j) show when transcript() is compared.
//
//     wire   commit: 32 bytes c_j        reveal: 32 bytes s_j, 32 bytes c'_j
#ifndef MPC_SERVER_PROOF_COIN_TOSS_H_
#define MPC_SERVER_PROOF_COIN_TOSS_H_

#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mpc-server/base/random_source.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/base/sha256.h"
#include "mpc-server/wire/ring.h"

namespace mpckdc::proof {

using Coin = std::array<uint8_t, 32>;

// One party's side, for as long as its session lives.
class CoinToss {
 public:
  static constexpr size_t kCommitBytes = 32, kRevealBytes = 64;

  // `random` must outlive this.
  CoinToss(int party, absl::Span<const uint8_t> session_id, RandomSource& random);

  // Whether the next coin's commitments are there. Without: one exchange of them first.
  bool committed() const { return committed_; }
  void Commit(absl::Span<uint8_t> out) const;
  void TakeCommitments(absl::Span<const uint8_t> from_prev, absl::Span<const uint8_t> from_next);

  // Call it only when everything has arrived that must not depend on the coin.
  void Reveal(absl::Span<uint8_t> out);
  // Deviation: a secret is not the one that was committed to.
  absl::StatusOr<Coin> TakeReveals(absl::Span<const uint8_t> from_prev,
                                   absl::Span<const uint8_t> from_next);

  // Of all commitments and secrets so far: the same at the three, or one of them told two stories.
  const Digest& transcript() const { return transcript_; }

 private:
  Digest CommitmentTo(int party, uint64_t number, absl::Span<const uint8_t> secret) const;
  void DrawNext();

  const int party_;
  const std::array<uint8_t, 16> session_id_;
  RandomSource& random_;
  uint64_t number_ = 0;  // of the next coin
  bool committed_ = false;
  Secret<Coin> next_;  // this party's secret for it
  Coin revealed_{};    // this party's secret for the coin under way
  std::array<Digest, kParties> commitments_{};
  Digest transcript_{};
};

}  // namespace mpckdc::proof

#endif  // MPC_SERVER_PROOF_COIN_TOSS_H_
