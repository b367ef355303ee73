// SPDX-License-Identifier: Apache-2.0
//
// What a control build lets a test put in the place of a proof's randomness and of what a prover
// computes (integration-tests/intruder/mutants, Proof*.patch). Unset: nothing is changed. For one
// thread.
#ifndef MPC_SERVER_TESTING_PROOF_CONTROL_H_
#define MPC_SERVER_TESTING_PROOF_CONTROL_H_

#include <functional>

#include "absl/types/span.h"
#include "mpc-server/proof/field128.h"

namespace mpckdc::proof {

struct ProofControl {
  // What is drawn, as it is drawn: a coin's or a hash's element in, the one to be used out.
  std::function<K(K)> weight;     // coin 0, of bits, rows and words
  std::function<F(F)> item;       // coin 0, of the items of field sections
  std::function<K(K)> point;      // coin 1
  std::function<F(F)> challenge;  // hashes
  // The sums that this party is about to share: first those of all 243 points, as K (those of nodes
  // are not looked at), then level by level.
  std::function<void(int party, absl::Span<uint8_t> sums)> sums;
};

inline ProofControl& ControlForTest() {
  static ProofControl control;
  return control;
}

template <class T>
T Drawn(const std::function<T(T)>& control, T drawn) {
  return control ? control(drawn) : drawn;
}

}  // namespace mpckdc::proof

#endif  // MPC_SERVER_TESTING_PROOF_CONTROL_H_
