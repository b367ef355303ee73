// SPDX-License-Identifier: Apache-2.0
//
// What a usage has of a base key (key/usage_keys.h) in a plan. The derivations are those of
// circuit/derive/:
//
//   gcm        AES blocks of the base's schedule over the usage's constant; the schedule of what
//              comes out; H, its block of zeros
//   17, 18     the same blocks, a key for AES and one for the HMAC; its schedule, its states
//   19, 20     HMACs of the usage's constant under the base key instead of AES blocks
//
// Constants are public. What depends on the base alone is computed once for all usages.
#ifndef MPC_SERVER_GARBLE_KEY_CIRCUITS_H_
#define MPC_SERVER_GARBLE_KEY_CIRCUITS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "mpc-server/garble/aes_circuit.h"
#include "mpc-server/garble/hmac_circuit.h"
#include "mpc-server/garble/plan.h"
#include "mpc-server/key/derivation.h"
#include "mpc-server/key/enctype.h"

namespace mpckdc::garble {

class KeyCircuits {
 public:
  using Reg = Plan::Reg;

  // Begins with the plan's input of the base key.
  KeyCircuits(Plan& plan, const Enctype& enctype);

  // As records have it, in whole blocks: round keys, if the usage has any; then H (gcm) or the
  // HMAC's states.
  std::vector<Reg> Usage(uint32_t usage);

  // The plan's strings, which are the same in all lanes.
  const std::vector<std::string>& strings() const { return strings_; }

  // FIPS 197, section 5.2.
  Reg Expand(Reg key);

 private:
  Reg Derive(uint32_t usage, DerivedKeyKind kind);
  Reg DeriveDk(uint32_t usage, DerivedKeyKind kind);
  Reg DeriveHmac(uint32_t usage, DerivedKeyKind kind);

  Plan& plan_;
  const Enctype& enctype_;
  AesCircuit aes_;
  HmacCircuit hmac_;
  Reg base_;  // its schedule, or its HMAC's states
  std::vector<std::string> strings_;
};

}  // namespace mpckdc::garble

#endif  // MPC_SERVER_GARBLE_KEY_CIRCUITS_H_
