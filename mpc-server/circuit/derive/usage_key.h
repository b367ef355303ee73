// SPDX-License-Identifier: Apache-2.0
// What a record keeps of a usage, derived from the base key on shares.
//
//   gcm        Kg(u) = DK(base, u | 0x47), its round keys, and H(u) = AES(Kg(u), 0)
//   17 to 20   usage of messages: the round keys of Ke(u), the HMAC states of Ki(u)
//              usage of checksums: the HMAC states of Kc(u)
//
// Three circuits in a row for all requests at once:
//
//   derive the keys -> schedule of Kg or Ke -> gcm:       AES(Kg, 0)
//                                              17 to 20:  HMAC states of Ki or Kc
#ifndef MPC_SERVER_CIRCUIT_DERIVE_USAGE_KEY_H_
#define MPC_SERVER_CIRCUIT_DERIVE_USAGE_KEY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "mpc-server/base/secret.h"
#include "mpc-server/circuit/aes/aes_circuit.h"
#include "mpc-server/circuit/aes/key_schedule.h"
#include "mpc-server/circuit/derive/dk.h"
#include "mpc-server/circuit/derive/key_derivation.h"
#include "mpc-server/circuit/hash/hmac_states.h"
#include "mpc-server/key/enctype.h"

namespace mpckdc {

// Requests of one base stand together.
struct UsageKeyRequest {
  const SharedBlock* base = nullptr;  // of the enctype's size; read in Reset()
  uint32_t usage = 0;
};
struct UsageKeyShare {
  uint32_t usage = 0;
  SecretVector<SharedBlock> round_keys;  // 17 to 20: none in a usage of checksums
  SharedBlock h{};                       // gcm
  SecretVector<SharedBlock> mac_states;  // 17 to 20: inner, outer
};

class UsageKeys : public Flow {
 public:
  // The adder is of 17 to 20: keys are drawn and checked a few at a time, so the fewer rounds.
  explicit UsageKeys(const Enctype& enctype, Adder adder = Adder::kPrefix, Isa isa = BestIsa());

  void Reset(absl::Span<const UsageKeyRequest> requests);
  // After Done(), in the order of the requests.
  const SecretVector<UsageKeyShare>& results() const { return results_; }
  Cost DeclaredCost() const override;

  // Of any number of keys, if there is one that encrypts.
  static uint64_t RoundsOf(const Enctype& enctype, Adder adder = Adder::kPrefix);

 private:
  void StartSchedule();
  void KeepRoundKeys();
  void StartTagKeys();
  void StartMacStates();

  const Enctype& enctype_;
  const AesBits bits_;
  const Adder adder_;
  const std::unique_ptr<KeyDerivation> derive_;
  KeySchedule schedule_;
  std::optional<AesEncrypt> tag_key_;     // gcm
  std::optional<HmacStates> mac_states_;  // 17 to 20
  std::vector<DerivedKeyRequest> keys_;  // of each usage: Kg; or Ke, if it has one, then Ki or Kc
  size_t cipher_keys_ = 0;               // Kg and Ke among keys_
  SecretVector<UsageKeyShare> results_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_DERIVE_USAGE_KEY_H_
