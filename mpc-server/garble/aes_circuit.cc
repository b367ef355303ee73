// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/garble/aes_circuit.h"

#include "mpc-server/garble/aes_rounds.h"

namespace mpckdc::garble {

Plan::Reg AesCircuit::Block(Reg keys, Reg block, bool encrypt) {
  const size_t rounds = round_keys_ - 1;
  if (planes_of_ != keys) {
    planes_of_ = keys;
    key_planes_ = plan_.Permute(keys, kPlanesOfBytes);
  }
  const auto key = [&](size_t i) {
    return plan_.Rows(key_planes_, 128 * (encrypt ? i : rounds - i), 128);
  };
  Reg state = plan_.Xor(plan_.Permute(block, kPlanesOfBytes), key(0));
  for (size_t i = 1; i <= rounds; ++i) {
    if (encrypt) {
      state = plan_.Permute(plan_.Run(SboxTape(true), {state}, kSboxCopies), kShiftRows);
    } else {
      state = plan_.Run(SboxTape(false), {plan_.Permute(state, kShiftRowsBack)}, kSboxCopies);
    }
    state = i == rounds ? plan_.Xor(state, key(i))
                        : plan_.Run(MixTape(encrypt), {state, key(i)}, kMixCopies);
  }
  return plan_.Permute(state, kBytesOfPlanes);
}

}  // namespace mpckdc::garble
