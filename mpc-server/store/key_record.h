// SPDX-License-Identifier: Apache-2.0
//
// What one server holds for one key: public facts about it (KeyInfo) and this server's replicated
// share of the base key and of what is derived from it for each usage u (enctype/enctype.h):
//
//   gcm        Kg(u)'s round keys, H(u) = AES(Kg(u), 0)
//   17 to 20   usage of messages: Ke(u)'s round keys, the states of HMAC under Ki(u)
//              usage of checksums: the states of HMAC under Kc(u)
#ifndef MPC_SERVER_STORE_KEY_RECORD_H_
#define MPC_SERVER_STORE_KEY_RECORD_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mpc-server/enctype/enctype.h"
#include "mpc-server/protocol/replicated_share.h"
#include "mpc-server/secret/secret.h"

namespace mpckdc {

using Handle = std::array<uint8_t, 16>;
using PrincipalId = std::array<uint8_t, 16>;

// The numbers are those of proto/admin.proto and of stored records.
enum class KeyClass : uint8_t { kUser = 1, kTgs = 2, kService = 3 };
enum class Gate : uint8_t { kTimestamp = 1, kKdcTrusted = 2, kNone = 3 };

struct KeyInfo {
  Handle handle{};
  std::string principal;  // unparsed, with realm
  PrincipalId principal_id{};
  uint32_t kvno = 0;
  int32_t enctype = 0;
  int32_t salt_type = 0;
  std::string salt;
  KeyClass key_class = KeyClass::kUser;
  Gate gate = Gate::kTimestamp;

  friend bool operator==(const KeyInfo&, const KeyInfo&) = default;
};

// The base key's share: 1 block of AES-128 keys, 2 of AES-256 keys.
using SharedBase = SecretVector<SharedBlock>;

struct UsageKey {
  uint32_t usage = 0;                   // RFC 3961 key usage number
  SecretVector<SharedBlock> round_keys;  // 11 or 15; of 17 to 20 none in a usage of checksums
  SharedBlock h{};                       // of gcm
  // Of 17 to 20: the states after key ^ ipad and after key ^ opad, each HashStateBlocks() long.
  SecretVector<SharedBlock> mac_states{};
};

struct KeyRecord {
  KeyInfo info;
  SharedBase base;
  SecretVector<UsageKey> usages;  // in locked memory as a whole: h lies inside

  // The usage's key, or nullptr when the record has none.
  const UsageKey* FindUsage(uint32_t usage) const;
};

// Blocks of the base key, and of what a usage has of its enctype; 0 for another enctype.
size_t BaseBlocks(int32_t enctype);
size_t RoundKeys(int32_t enctype, uint32_t usage);
size_t MacStateBlocks(int32_t enctype);

// First 16 bytes of SHA-256("mpc-kdc principal v1\0" | unparsed name with realm).
PrincipalId PrincipalIdOf(absl::string_view principal);

// The usages whose keys a class of key carries, ascending.
absl::Span<const uint32_t> UsagesOf(KeyClass key_class);

// Says what is wrong with `info`, or with the sizes and usages of `record`.
absl::Status CheckKeyInfo(const KeyInfo& info);
absl::Status CheckKeyRecord(const KeyRecord& record);

std::string HandleText(const Handle& handle);  // 32 hexadecimal digits

// Equal in every share. For tests and for the store's own checks; not constant time.
bool SameRecord(const KeyRecord& a, const KeyRecord& b);

}  // namespace mpckdc

#endif  // MPC_SERVER_STORE_KEY_RECORD_H_
