// SPDX-License-Identifier: Apache-2.0
// Replicated XOR sharing among three parties (Araki et al., CCS 2016, sections 2.1 and 2.3).
//
// A value v is shared by x_0 ^ x_1 ^ x_2 = 0. Party P_i holds (x_i, a_i) with
//
//     a_i = x_{i-1} ^ v          hence   v = x_{i-1} ^ a_i = a_{i+1} ^ x_i
//
// (indices modulo 3). One party learns nothing, any two recover v. Free, without a message: XOR of
// shares, a public constant c (XOR it to a at every party), every GF(2)-linear map (apply it to x
// and to a). One product costs one message: see share/circuit.h.
#ifndef MPC_SERVER_SHARE_REPLICATED_SHARE_H_
#define MPC_SERVER_SHARE_REPLICATED_SHARE_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "mpc-server/wire/ring.h"

namespace mpckdc {

using Block = std::array<uint8_t, 16>;

inline Block XorBlocks(const Block& a, const Block& b) {
  Block r;
  for (size_t i = 0; i < r.size(); ++i) r[i] = a[i] ^ b[i];
  return r;
}

// One party's share of 16 bytes.
struct SharedBlock {
  Block x{};
  Block a{};
};
static_assert(sizeof(SharedBlock) == 32, "gathered by offset in bitslice/");

inline SharedBlock operator^(const SharedBlock& s, const SharedBlock& t) {
  return {XorBlocks(s.x, t.x), XorBlocks(s.a, t.a)};
}
// The share of v ^ c.
inline SharedBlock AddPublic(const SharedBlock& s, const Block& c) {
  return {s.x, XorBlocks(s.a, c)};
}

}  // namespace mpckdc

#endif  // MPC_SERVER_SHARE_REPLICATED_SHARE_H_
