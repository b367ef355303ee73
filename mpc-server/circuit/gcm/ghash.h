// SPDX-License-Identifier: Apache-2.0
// GHASH of public data under a shared H.
//
// GHASH(H, b_1..b_n) = b_1*H^n + ... + b_n*H^1 is linear in the powers of H, so with shared powers
// it needs no message. Squaring is linear too, so even powers are free; each odd power above the
// first is one product: H^(2^k + j) = H^(2^k) * H^j for odd j < 2^k, all of one k in one round.
#ifndef MPC_SERVER_CIRCUIT_GCM_GHASH_H_
#define MPC_SERVER_CIRCUIT_GCM_GHASH_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "mpc-server/base/isa.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/circuit/gcm/field_log.h"
#include "mpc-server/share/circuit.h"
#include "mpc-server/share/replicated_share.h"

namespace mpckdc {

// H^1, H^2, ... of one key, and what keeps them.
struct SharedPowers {
  std::shared_ptr<const SecretVector<SharedBlock>> owner;
  absl::Span<const SharedBlock> powers;
};

// Number of blocks that GHASH takes for a GCM message: additional data and ciphertext, each padded
// to whole blocks, and the block of lengths.
inline constexpr size_t GhashBlockCount(size_t aad_size, size_t ciphertext_size) {
  return (aad_size + 15) / 16 + (ciphertext_size + 15) / 16 + 1;
}
// Those blocks.
std::vector<Block> GhashBlocks(absl::Span<const uint8_t> aad,
                               absl::Span<const uint8_t> ciphertext);

struct GhashPowersRequest {
  SharedBlock h;
  uint32_t count = 0;  // powers H^1 .. H^count
};

// Shares of powers, for many keys at once. Rounds: the bits of the largest count, less one.
class GhashPowers : public Circuit {
 public:
  explicit GhashPowers(Isa isa = BestIsa()) : isa_(isa) {}

  void Reset(absl::Span<const GhashPowersRequest> requests);
  // After Done(): H^1 .. H^count of one request.
  absl::Span<const SharedBlock> powers(size_t request) const;
  // All of them; the spans given out before stay good. Then Reset().
  SecretVector<SharedBlock> TakePowers() { return std::move(powers_); }

  bool Done() const override;
  RoundShape NextRound() const override;
  void Produce(ZeroShares& zero, RoundOut out) override;
  absl::Status Consume(RoundIn in) override;
  Cost DeclaredCost() const override;

 private:
  struct Item {
    size_t offset;  // of H^1 in powers_
    uint32_t count;
  };
  size_t ProductsAt(uint32_t level) const;
  void SquareUpTo(const Item& item, uint32_t limit);

  const Isa isa_;
  std::vector<Item> items_;
  SecretVector<SharedBlock> powers_;  // H^1 at offset, H^2 after it, ...
  uint32_t largest_ = 0;
  uint32_t level_ = 0;                // 2^level_ is the split of the next round
  absl::Span<const uint8_t> sent_;
  FieldLog log_;
};

// Local. `powers` holds at least blocks.size() powers, H^1 first.
SharedBlock GhashLinear(absl::Span<const Block> blocks, absl::Span<const SharedBlock> powers,
                        Isa isa = BestIsa());

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_GCM_GHASH_H_
