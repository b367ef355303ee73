// SPDX-License-Identifier: Apache-2.0
//
// The hash functions under HMAC in enctypes 17 to 20, and their sizes in bytes (FIPS 180-4). The
// state is what a compression reads and writes: SHA-384's is SHA-512's. Constants only.
#ifndef MPC_SERVER_KEY_HASH_KIND_H_
#define MPC_SERVER_KEY_HASH_KIND_H_

#include <cstddef>
#include <cstdint>

namespace mpckdc {

enum class HashKind : uint8_t { kSha1, kSha256, kSha384 };

inline constexpr size_t HashStateBytes(HashKind hash) {
  return hash == HashKind::kSha1 ? 20 : hash == HashKind::kSha256 ? 32 : 64;
}
inline constexpr size_t HashDigestBytes(HashKind hash) {
  return hash == HashKind::kSha1 ? 20 : hash == HashKind::kSha256 ? 32 : 48;
}
// One compression's message block.
inline constexpr size_t HashBlockBytes(HashKind hash) {
  return hash == HashKind::kSha384 ? 128 : 64;
}
// Bytes of the message's length, at the end of its padding.
inline constexpr size_t HashLengthBytes(HashKind hash) {
  return hash == HashKind::kSha384 ? 16 : 8;
}
// Blocks of 16 bytes that hold a state; SHA-1's last 12 bytes are zero.
inline constexpr size_t HashStateBlocks(HashKind hash) {
  return (HashStateBytes(hash) + 15) / 16;
}
// Compressions of an HMAC's inner hash over `bytes` after the state of key ^ ipad.
inline constexpr size_t HmacInnerBlocks(HashKind hash, size_t bytes) {
  return (bytes + 1 + HashLengthBytes(hash) + HashBlockBytes(hash) - 1) / HashBlockBytes(hash);
}

}  // namespace mpckdc

#endif  // MPC_SERVER_KEY_HASH_KIND_H_
