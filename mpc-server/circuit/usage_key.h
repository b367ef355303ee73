// SPDX-License-Identifier: Apache-2.0
// What a record keeps of a usage, derived from the base key on shares.
//
//   gcm        Kg(u) = DK(base, u | 0x47), its round keys, and H(u) = AES(Kg(u), 0)
//   17 to 20   usage of messages: the round keys of Ke(u), the HMAC states of Ki(u)
//              usage of checksums: the HMAC states of Kc(u)
//
// Each is a few circuits in a row for all requests at once.
#ifndef MPC_SERVER_CIRCUIT_USAGE_KEY_H_
#define MPC_SERVER_CIRCUIT_USAGE_KEY_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "mpc-server/base/secret.h"
#include "mpc-server/circuit/aes_circuit.h"
#include "mpc-server/circuit/dk.h"
#include "mpc-server/circuit/hmac_states.h"
#include "mpc-server/circuit/key_derivation.h"
#include "mpc-server/circuit/key_schedule.h"
#include "mpc-server/key/enctype.h"

namespace mpckdc {

// Requests of one base stand together.
struct UsageKeyRequest {
  const SharedBlock* base = nullptr;  // of the enctype's size; read in Reset()
  uint32_t usage = 0;
};
struct UsageKeyShare {
  uint32_t usage = 0;
  SecretVector<SharedBlock> round_keys;  // of 17 to 20 none in a usage of checksums
  SharedBlock h{};                       // of gcm
  SecretVector<SharedBlock> mac_states;  // of 17 to 20: inner, outer
};

class UsageKeys : public Circuit {
 public:
  virtual void Reset(absl::Span<const UsageKeyRequest> requests) = 0;
  // After Done(), in the order of the requests.
  const SecretVector<UsageKeyShare>& results() const { return results_; }

 protected:
  SecretVector<UsageKeyShare> results_;
};

// Of the GCM enctypes.
class DeriveUsageKeys : public UsageKeys {
 public:
  explicit DeriveUsageKeys(AesBits bits, Isa isa = BestIsa());

  void Reset(absl::Span<const UsageKeyRequest> requests) override;

  bool Done() const override { return stage_ == Stage::kDone; }
  RoundShape NextRound() const override { return current_->NextRound(); }
  void Produce(ZeroShares& zero, RoundOut out) override { current_->Produce(zero, out); }
  absl::Status Consume(RoundIn in) override;
  Cost DeclaredCost() const override;

 private:
  enum class Stage { kDerive, kSchedule, kTagKey, kDone };
  void Advance();

  const AesBits bits_;
  Stage stage_ = Stage::kDone;
  Circuit* current_ = nullptr;
  DeriveDk derive_;
  KeySchedule schedule_;
  AesEncrypt tag_key_;
};

// Of the enctypes 17 to 20. Adder: keys are drawn and checked by the few, so the fewer rounds.
class DeriveHmacUsageKeys : public UsageKeys {
 public:
  explicit DeriveHmacUsageKeys(const Enctype& enctype, Adder adder = Adder::kPrefix,
                               Isa isa = BestIsa());

  void Reset(absl::Span<const UsageKeyRequest> requests) override;

  bool Done() const override { return stage_ == Stage::kDone; }
  RoundShape NextRound() const override { return current_->NextRound(); }
  void Produce(ZeroShares& zero, RoundOut out) override { current_->Produce(zero, out); }
  absl::Status Consume(RoundIn in) override;
  Cost DeclaredCost() const override;

 private:
  enum class Stage { kDerive, kSchedule, kStates, kDone };
  void BeginSchedule();
  void BeginStates();
  void Finish();

  const Enctype& enctype_;
  const Adder adder_;
  Stage stage_ = Stage::kDone;
  Circuit* current_ = nullptr;
  std::unique_ptr<KeyDerivation> derive_;
  KeySchedule schedule_;
  HmacStates states_;
  std::vector<DerivedKeyRequest> keys_;  // of each usage: Ke, if it has one, then Ki or Kc
  size_t cipher_keys_ = 0;               // of keys_
};

std::unique_ptr<UsageKeys> UsageKeysOf(const Enctype& enctype);

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_USAGE_KEY_H_
