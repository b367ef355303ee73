// SPDX-License-Identifier: Apache-2.0
// AES blocks in a plan. Keys are expanded: their schedule is shared (key/usage_keys.h).
#ifndef MPC_SERVER_GARBLE_AES_CIRCUIT_H_
#define MPC_SERVER_GARBLE_AES_CIRCUIT_H_

#include <cstddef>
#include <optional>

#include "mpc-server/garble/plan.h"

namespace mpckdc::garble {

class AesCircuit {
 public:
  using Reg = Plan::Reg;

  AesCircuit(Plan& plan, size_t round_keys) : plan_(plan), round_keys_(round_keys) {}

  Reg KeyInput() { return plan_.Input(128 * round_keys_); }
  Reg Block(Reg keys, Reg block, bool encrypt);

 private:
  Plan& plan_;
  const size_t round_keys_;
  std::optional<Reg> planes_of_;  // keys
  Reg key_planes_ = 0;
};

}  // namespace mpckdc::garble

#endif  // MPC_SERVER_GARBLE_AES_CIRCUIT_H_
