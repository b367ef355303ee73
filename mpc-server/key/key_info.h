// SPDX-License-Identifier: Apache-2.0
//
// The public facts about one key, as the servers, the administrators and the KDC know it.
#ifndef MPC_SERVER_KEY_KEY_INFO_H_
#define MPC_SERVER_KEY_KEY_INFO_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mpc-server/key/enctype.h"

namespace mpckdc {

using Handle = std::array<uint8_t, 16>;

// The next greater one, if there is one.
std::optional<Handle> NextHandle(Handle handle);

using PrincipalId = std::array<uint8_t, 16>;

// The numbers are those of proto/admin.proto and of stored records.
// kHistory: what is left of a user's old key, to be compared with new ones and for nothing else:
// its record has the base key and no usages. No key begins so.
// kTgsOld: the realm's krbtgt as another KDC had it. Whoever has had that database has this key, so
// it opens tickets and verifies checksums, and the servers make nothing under it.
enum class KeyClass : uint8_t { kUser = 1, kTgs = 2, kService = 3, kHistory = 4, kTgsOld = 6 };
// What its servers want to have verified before a principal gets a ticket: its timestamp, its
// certificate's signature (PKINIT), either of the two, or nothing.
enum class Gate : uint8_t {
  kTimestamp = 1,
  kKdcTrusted = 2,
  kNone = 3,
  kPkinit = 4,
  kTimestampOrPkinit = 5
};
constexpr bool TakesTimestamp(Gate gate) {
  return gate == Gate::kTimestamp || gate == Gate::kTimestampOrPkinit;
}
constexpr bool TakesCertificate(Gate gate) {
  return gate == Gate::kPkinit || gate == Gate::kTimestampOrPkinit;
}
constexpr bool TakesAnything(Gate gate) { return !TakesTimestamp(gate) && !TakesCertificate(gate); }
absl::string_view GateName(Gate gate);  // "timestamp", "kdc-trusted", ... as mpc-admin says

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
  bool before_cammac = false;  // of a stored key: it lacks usage 64, which new ones have (MayCarry)

  friend bool operator==(const KeyInfo&, const KeyInfo&) = default;
};

// Blocks of the base key, and of what a usage has of its enctype; 0 for another enctype.
size_t BaseBlocks(int32_t enctype);
size_t RoundKeys(int32_t enctype, uint32_t usage);
size_t MacStateBlocks(int32_t enctype);

// First 16 bytes of SHA-256("mpc-kdc principal v1\0" | unparsed name with realm).
PrincipalId PrincipalIdOf(absl::string_view principal);

// NAME@`realm`; a name may hold an '@' that a backslash quotes.
bool IsOfRealm(absl::string_view principal, absl::string_view realm);
// krbtgt/`realm`@OTHER: under its key another realm vouches for its users to this one.
bool IsTgtFromOtherRealm(absl::string_view principal, absl::string_view realm);
// krbtgt/REALM@REALM: the realm's own ticket-granting service.
bool IsOwnTgt(absl::string_view principal);
// kadmin/*: whose tickets are as good as an administrator's word.
bool IsKadmin(absl::string_view principal);
// WELLKNOWN/ANONYMOUS@`realm` (RFC 8062): by its key a client logs in that does not say who it is.
std::string AnonymousOf(absl::string_view realm);
// A ticket-granting key of either class, and a known class.
bool IsTgsClass(KeyClass key_class);
bool IsKeyClass(uint8_t number);
// Says why such a principal may have no key of this enctype: the tickets of both carry the header
// that the servers check, which only a gcm message has. Keys from before this rule are still there
// and are refused where they would be used.
absl::Status CheckTicketEnctype(absl::string_view principal, int32_t enctype);

// krbtgt/*, kadmin/*, K/*: what a key under such a name can do follows from the name.
bool IsPowerful(absl::string_view principal);

// The usages whose keys a new key of the class carries, ascending; none for an unknown class.
absl::Span<const uint32_t> UsagesOf(KeyClass key_class);
// Whether `usages` are those, or those of a key from before the class had its last one: such a key
// works as it did, and whatever wants the usage that it lacks is refused.
bool MayCarry(KeyClass key_class, absl::Span<const uint32_t> usages);

// Says what is wrong with `info`; of a new key, also by CheckTicketEnctype().
absl::Status CheckKeyInfo(const KeyInfo& info);
absl::Status CheckNewKeyInfo(const KeyInfo& info);
// Whether a key may become one of `principal`, by both names: PermissionDenied says why not.
absl::Status CheckRename(const KeyInfo& info, absl::string_view principal,
                         absl::string_view realm);

std::string HandleText(const Handle& handle);  // 32 hexadecimal digits

}  // namespace mpckdc

#endif  // MPC_SERVER_KEY_KEY_INFO_H_
