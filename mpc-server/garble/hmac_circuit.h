// SPDX-License-Identifier: Apache-2.0
// HMAC (RFC 2104) in a plan. A key is its two states, after key ^ ipad and after key ^ opad, as
// records keep them (key/usage_keys.h).
#ifndef MPC_SERVER_GARBLE_HMAC_CIRCUIT_H_
#define MPC_SERVER_GARBLE_HMAC_CIRCUIT_H_

#include <cstddef>

#include "mpc-server/garble/plan.h"
#include "mpc-server/key/hash_kind.h"

namespace mpckdc::garble {

class HmacCircuit {
 public:
  using Reg = Plan::Reg;
  using String = Plan::String;

  HmacCircuit(Plan& plan, HashKind hash) : plan_(plan), hash_(hash) {}

  // Of a key no longer than the hash's block.
  Reg States(Reg key);
  // The digest, and whatever else the hash's state has behind it.
  Reg Digest(Reg states, Reg message);
  Reg DigestOfPublic(Reg states, String message);

 private:
  Reg Compress(Reg state, Reg block);
  Reg StateOfPad(Reg key, uint8_t pad);
  Reg Outer(Reg states, Reg inner);
  Reg Padding(size_t message_bytes);

  Plan& plan_;
  const HashKind hash_;
};

}  // namespace mpckdc::garble

#endif  // MPC_SERVER_GARBLE_HMAC_CIRCUIT_H_
