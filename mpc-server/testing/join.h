// SPDX-License-Identifier: Apache-2.0
//
// Joins the three parties' replicated shares of bytes v: party i has x_i and a_i = x_{i-1} ^ v, and
// x_0 ^ x_1 ^ x_2 = 0. False, or "", when the shares do not fit together.
#ifndef MPC_SERVER_TESTING_JOIN_H_
#define MPC_SERVER_TESTING_JOIN_H_

#include <array>
#include <cstddef>
#include <string>

#include "mpc-server/share/replicated_share.h"

namespace mpckdc {

template <class Bytes>
bool JoinForTest(const std::array<Bytes, 3>& x, const std::array<Bytes, 3>& a, Bytes* value) {
  *value = a[0];
  for (size_t p = 0; p < 3; ++p) {
    if (x[p].size() != value->size() || a[p].size() != value->size()) return false;
  }
  bool fit = true;
  for (size_t i = 0; i < value->size(); ++i) {
    const int v = x[2][i] ^ a[0][i];
    fit &= (x[0][i] ^ a[1][i]) == v && (x[1][i] ^ a[2][i]) == v && (x[0][i] ^ x[1][i]) == x[2][i];
    (*value)[i] = static_cast<typename Bytes::value_type>(v);
  }
  return fit;
}

inline std::string JoinForTest(const std::array<std::string, 3>& x,
                               const std::array<std::string, 3>& a) {
  std::string value;
  return JoinForTest(x, a, &value) ? value : "";
}

inline bool JoinForTest(const std::array<SharedBlock, kParties>& s, Block* value) {
  return JoinForTest<Block>({s[0].x, s[1].x, s[2].x}, {s[0].a, s[1].a, s[2].a}, value);
}

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_JOIN_H_
