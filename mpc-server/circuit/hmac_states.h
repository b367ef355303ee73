// SPDX-License-Identifier: Apache-2.0
// What HMAC makes of its key before it sees a message (RFC 2104), on shares: the hash's states
// after compressing key ^ ipad and key ^ opad. They are kept instead of the key: a message then
// costs two compressions less.
#ifndef MPC_SERVER_CIRCUIT_HMAC_STATES_H_
#define MPC_SERVER_CIRCUIT_HMAC_STATES_H_

#include <cstddef>

#include "mpc-server/base/secret.h"
#include "mpc-server/circuit/hmac.h"

namespace mpckdc {

struct HmacKey {
  const SharedBlock* key = nullptr;  // behind `bytes` nothing is read
  size_t bytes = 0;                  // at most HashBlockBytes(hash)
};

// One compression's rounds, two compressions for each key.
class HmacStates : public Circuit {
 public:
  explicit HmacStates(HashKind hash, Isa isa = BestIsa()) : hash_(hash), compress_(hash, isa) {}

  void Reset(absl::Span<const HmacKey> keys, Adder adder);
  // After Done(): the inner and the outer state of one key, HashStateBlocks(hash) blocks each; fits
  // HmacLane::states.
  absl::Span<const SharedBlock> states(size_t key) const;

  bool Done() const override { return done_; }
  RoundShape NextRound() const override { return compress_.NextRound(); }
  void Produce(ZeroShares& zero, RoundOut out) override { compress_.Produce(zero, out); }
  absl::Status Consume(RoundIn in) override;
  Cost DeclaredCost() const override { return compress_.DeclaredCost(); }

 private:
  const HashKind hash_;
  bool done_ = true;
  HashCompress compress_;
  std::vector<CompressLane> lanes_;   // inner, outer of each key
  SecretVector<SharedBlock> blocks_;  // key ^ ipad, key ^ opad of each key
  SecretVector<SharedBlock> states_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_HMAC_STATES_H_
