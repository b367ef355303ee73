// SPDX-License-Identifier: Apache-2.0
//
// The encryption types whose keys are held on shares, in one table.
//
//   number          RFC   key usage keys        message                             checksum
//   -24001, -24002  -     Kg(u), H(u)           nonce | header | CTR | tag          nonce | tag
//   17, 18          3962  Ke(u), Ki(u) | Kc(u)  CBC-CTS of confounder | text, HMAC  HMAC-SHA1-96
//   19, 20          8009  Ke(u), Ki(u) | Kc(u)  the same; the HMAC is of IV | ciphertext
#ifndef MPC_SERVER_KEY_ENCTYPE_H_
#define MPC_SERVER_KEY_ENCTYPE_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "mpc-server/key/hash_kind.h"

namespace mpckdc {

inline constexpr int32_t kEnctypeAes128Gcm = -24001;
inline constexpr int32_t kEnctypeAes256Gcm = -24002;
inline constexpr int32_t kEnctypeAes128Sha1 = 17;
inline constexpr int32_t kEnctypeAes256Sha1 = 18;
inline constexpr int32_t kEnctypeAes128Sha256 = 19;
inline constexpr int32_t kEnctypeAes256Sha384 = 20;

enum class EnctypeFamily : uint8_t { kGcm, kRfc3962, kRfc8009 };

struct Enctype {
  int32_t number;
  absl::string_view name;  // as in krb5
  EnctypeFamily family;
  size_t key_bytes;        // of the base key and of Kg or Ke
  HashKind hash;           // not of kGcm
  size_t mac_bytes;        // of a message's tag or HMAC, and of a checksum without its nonce
  size_t mac_key_bytes;    // of Ki and Kc; 0: kGcm has none

  constexpr bool is_gcm() const { return family == EnctypeFamily::kGcm; }
  constexpr size_t base_blocks() const { return key_bytes / 16; }
  constexpr size_t round_keys() const { return key_bytes == 16 ? 11 : 15; }
  // Shared blocks of a usage's HMAC: the states after key ^ ipad and after key ^ opad.
  constexpr size_t mac_state_blocks() const { return is_gcm() ? 0 : 2 * HashStateBlocks(hash); }
};

// clang-format off
inline constexpr Enctype kEnctypes[] = {
    {kEnctypeAes256Gcm,    "aes256-gcm",                 EnctypeFamily::kGcm,     32, HashKind::kSha1,   16, 0},
    {kEnctypeAes128Gcm,    "aes128-gcm",                 EnctypeFamily::kGcm,     16, HashKind::kSha1,   16, 0},
    {kEnctypeAes256Sha1,   "aes256-cts-hmac-sha1-96",    EnctypeFamily::kRfc3962, 32, HashKind::kSha1,   12, 32},
    {kEnctypeAes128Sha1,   "aes128-cts-hmac-sha1-96",    EnctypeFamily::kRfc3962, 16, HashKind::kSha1,   12, 16},
    {kEnctypeAes256Sha384, "aes256-cts-hmac-sha384-192", EnctypeFamily::kRfc8009, 32, HashKind::kSha384, 24, 24},
    {kEnctypeAes128Sha256, "aes128-cts-hmac-sha256-128", EnctypeFamily::kRfc8009, 16, HashKind::kSha256, 16, 16},
};
// clang-format on

// nullptr: keys of this type are not held on shares.
constexpr const Enctype* FindEnctype(int32_t number) {
  for (const Enctype& e : kEnctypes) {
    if (e.number == number) return &e;
  }
  return nullptr;
}

// A message of enctypes 17 to 20 begins with a confounder of one block.
inline constexpr size_t kConfounderBytes = 16;

// Usages under which messages are encrypted (keys Kg, or Ke and Ki); the others are of checksums
// (Kg, or Kc). RFC 4120 section 7.5.1, RFC 6806, MS-PAC.
constexpr bool IsEncryptionUsage(uint32_t usage) { return usage >= 1 && usage <= 3; }

}  // namespace mpckdc

#endif  // MPC_SERVER_KEY_ENCTYPE_H_
