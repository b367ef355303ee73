// SPDX-License-Identifier: Apache-2.0
// What HMAC makes of its key before it sees a message (RFC 2104), on shares: the hash's states
// after compressing key ^ ipad and key ^ opad. They are kept instead of the key: a message then
// costs two compressions less.
#ifndef MPC_SERVER_CIRCUIT_HASH_HMAC_STATES_H_
#define MPC_SERVER_CIRCUIT_HASH_HMAC_STATES_H_

#include <cstddef>
#include <vector>

#include "mpc-server/base/isa.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/circuit/hash/adder.h"
#include "mpc-server/circuit/hash/hash_run.h"

namespace mpckdc {

struct HmacKey {
  const SharedBlock* key = nullptr;  // behind `bytes` nothing is read
  size_t bytes = 0;                  // at most HashBlockBytes(hash)
};

// One compression's rounds, two compressions for each key.
class HmacStates : public Circuit {
 public:
  explicit HmacStates(HashKind hash, Isa isa = BestIsa());

  // The keys are read here and not later.
  void Reset(absl::Span<const HmacKey> keys, Adder adder);
  // After Done(), until the next Reset(): the inner and the outer state of one key,
  // HashStateBlocks(hash) blocks each; fits HmacLane::states.
  absl::Span<const SharedBlock> states(size_t key) const;

  bool Done() const override { return keys_ == 0 || run_.Done(); }
  RoundShape NextRound() const override;
  void Produce(ZeroShares& zero, RoundOut out) override { run_.Produce(zero, out.to_next); }
  absl::Status Consume(RoundIn in) override;
  Cost DeclaredCost() const override;

 private:
  const HashKind hash_;
  Adder adder_ = Adder::kPrefix;
  size_t keys_ = 0;
  HashRun run_;                         // two lanes for each key: inner, outer
  std::vector<SharedBlock> initial_;    // the hash's first state; public
  std::vector<HashBlock> lanes_;
  SecretVector<SharedBlock> padded_;    // key ^ ipad, key ^ opad of each key
};

Cost CostOfHmacStates(HashKind hash, Adder adder, size_t keys);

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_HASH_HMAC_STATES_H_
