// SPDX-License-Identifier: Apache-2.0
//
// Splits bytes into the three parties' replicated shares.
#ifndef MPC_SERVER_PACKAGE_SHARE_SPLIT_H_
#define MPC_SERVER_PACKAGE_SHARE_SPLIT_H_

#include <array>
#include <cstdint>

#include "absl/types/span.h"
#include "mpc-server/base/secret.h"

namespace mpckdc::enroll {

// One party's replicated share of a byte string v: v = x_{i-1} ^ a_i, x_0 ^ x_1 ^ x_2 = 0.
struct SplitShare {
  SecretBytes x;
  SecretBytes a;
};

// Fresh randomness for every call, from the operating system by libsodium.
std::array<SplitShare, 3> Split(absl::Span<const uint8_t> value);

}  // namespace mpckdc::enroll

#endif  // MPC_SERVER_PACKAGE_SHARE_SPLIT_H_
