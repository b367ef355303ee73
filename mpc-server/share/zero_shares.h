// SPDX-License-Identifier: Apache-2.0
// Zero shares: alpha_0 + alpha_1 + alpha_2 = 0, each of two of them random to whoever lacks the
// third (Araki et al. 2.2 has both ways to make them).
#ifndef MPC_SERVER_SHARE_ZERO_SHARES_H_
#define MPC_SERVER_SHARE_ZERO_SHARES_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/share/pairwise_streams.h"
#include "mpc-server/share/proof_log.h"

namespace mpckdc {

// Where a session's zero shares come from. The same at the three servers.
enum class Randomness : uint8_t {
  kKeyed = 1,  // alpha_i = F(k_i) ^ F(k_{i+1}): no message; as strong as AES
  // alpha_i = rho_i ^ rho_{i-1}, rho_i drawn by P_i and sent to P_{i+1}: a byte more for each byte,
  // a round more, and no key that two servers share.
  kExchanged = 2,
};
absl::string_view RandomnessName(Randomness randomness);  // "keyed", "exchanged"

// Zero shares that are made and not yet used. What was taken is never given out again.
class ZeroPool {
 public:
  // `size` bytes, to be filled in; what was left is forgotten. `apart`: they are rho_i, and those
  // that come to them, rho_{i-1}, are kept apart and follow by Add(). Else Add() makes one of both.
  absl::Span<uint8_t> Refill(size_t size, bool apart = false);
  void Add(absl::Span<const uint8_t> received);
  // Aborts the process when more is asked for than there is.
  void Take(absl::Span<uint8_t> out);
  // With `apart`: own = rho_{i-1}, which P_{i-1} knows, next = rho_i, which P_{i+1} knows.
  void TakeApart(const StreamsApart& out, size_t size);

 private:
  size_t Advance(size_t size);

  SecretBytes bytes_, received_;
  size_t at_ = 0, size_ = 0;
  bool apart_ = false;
};

// F(k_i) and F(k_{i+1}), of which a zero share is the sum. P_{i-1} knows the first, P_{i+1} the
// second. (Randomness::kExchanged: rho_{i-1} and rho_i.)
struct ZeroHalves {
  const uint8_t* own = nullptr;
  const uint8_t* next = nullptr;
};

// Hands one round's zero shares to the circuits that share the round, in order, and the log in
// which they note what they send, if there is one.
class ZeroShares {
 public:
  ZeroShares(PairwiseStreams& streams, uint32_t batch, uint32_t round, ProofLog* log = nullptr)
      : streams_(&streams), place_{batch, round, 0}, log_(log) {}
  explicit ZeroShares(ZeroPool& pool, ProofLog* log = nullptr) : pool_(&pool), log_(log) {}

  // Null: nothing is proved.
  ProofLog* log() const { return log_; }

  // Fills `out`. Keyed: a length that is not a multiple of 16 discards the rest of the last AES
  // block.
  void Fill(absl::Span<uint8_t> out) {
    if (pool_ != nullptr) return pool_->Take(out);
    streams_->FillZeroShare(place_, out);
    place_.position += static_cast<uint32_t>((out.size() + 15) / 16);
  }

  // As Fill(), with a log; also what the zero share is the sum of, until the next call.
  ZeroHalves FillApart(absl::Span<uint8_t> out);

  // Instead of Fill(), where the streams can be had as such: `size` bytes, a multiple of 16, that
  // the caller makes itself. False: they cannot.
  bool Take(size_t size, ZeroSource* source) {
    if (pool_ != nullptr) return false;
    streams_->TakeZeroShare(place_, size, source);
    place_.position += static_cast<uint32_t>(size / 16);
    return true;
  }

 private:
  PairwiseStreams* streams_ = nullptr;
  ZeroPool* pool_ = nullptr;
  StreamPlace place_;
  ProofLog* log_ = nullptr;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_SHARE_ZERO_SHARES_H_
