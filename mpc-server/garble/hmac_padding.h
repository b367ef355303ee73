// SPDX-License-Identifier: Apache-2.0
// What is hashed behind an HMAC's states.
#ifndef MPC_SERVER_GARBLE_HMAC_PADDING_H_
#define MPC_SERVER_GARBLE_HMAC_PADDING_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mpc-server/key/hash_kind.h"

namespace mpckdc::garble {

// Behind `bytes` that follow the block of the key: 0x80, zeros, the number of bits. FIPS 180-4,
// section 5.1.
inline std::vector<uint8_t> HmacPadding(HashKind hash, size_t bytes) {
  std::vector<uint8_t> padding(HmacInnerBlocks(hash, bytes) * HashBlockBytes(hash) - bytes);
  padding[0] = 0x80;
  size_t bits = 8 * (HashBlockBytes(hash) + bytes);
  for (size_t i = padding.size(); bits != 0; bits >>= 8) padding[--i] = static_cast<uint8_t>(bits);
  return padding;
}

}  // namespace mpckdc::garble

#endif  // MPC_SERVER_GARBLE_HMAC_PADDING_H_
