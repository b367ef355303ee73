// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/key/key_info.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/sha256.h"

namespace mpckdc {
namespace {

constexpr absl::string_view kTgtPrefix = "krbtgt/";
constexpr char kPrincipalLabel[] = "mpc-kdc principal v1";  // hashed with its terminating zero

// Behind the one '@' that is not quoted; empty where there is none, or more than one: krb5 would
// read no such name, and its end and its beginning would say different things of its realm.
absl::string_view RealmOf(absl::string_view principal) {
  absl::string_view realm;
  for (size_t i = 0; i < principal.size(); ++i) {
    if (principal[i] == '\\') {
      ++i;
    } else if (principal[i] == '@') {
      if (realm.data() != nullptr) return "";
      realm = principal.substr(i + 1);
    }
  }
  return realm;
}

}  // namespace

bool IsOfRealm(absl::string_view principal, absl::string_view realm) {
  return !realm.empty() && RealmOf(principal) == realm;
}

bool IsTgtFromOtherRealm(absl::string_view principal, absl::string_view realm) {
  const absl::string_view from = RealmOf(principal);
  return absl::ConsumePrefix(&principal, kTgtPrefix) && absl::ConsumePrefix(&principal, realm) &&
         absl::ConsumePrefix(&principal, "@") && !from.empty() && principal == from &&
         from != realm;
}

bool IsOwnTgt(absl::string_view principal) {
  const size_t at = principal.rfind('@');
  return absl::StartsWith(principal, kTgtPrefix) && at != absl::string_view::npos &&
         principal.substr(kTgtPrefix.size(), at - kTgtPrefix.size()) == principal.substr(at + 1);
}

bool IsKadmin(absl::string_view principal) { return absl::StartsWith(principal, "kadmin/"); }

std::string AnonymousOf(absl::string_view realm) {
  return absl::StrCat("WELLKNOWN/ANONYMOUS@", realm);
}

bool IsPowerful(absl::string_view principal) {
  return absl::StartsWith(principal, kTgtPrefix) || IsKadmin(principal) ||
         absl::StartsWith(principal, "K/");
}

bool IsTgsClass(KeyClass key_class) {
  return key_class == KeyClass::kTgs || key_class == KeyClass::kTgsOld;
}

bool IsKeyClass(uint8_t number) {
  return (number >= static_cast<uint8_t>(KeyClass::kUser) &&
          number <= static_cast<uint8_t>(KeyClass::kHistory)) ||
         number == static_cast<uint8_t>(KeyClass::kTgsOld);
}

absl::Status CheckTicketEnctype(absl::string_view principal, int32_t enctype) {
  if (!IsOwnTgt(principal) && !IsKadmin(principal)) return absl::OkStatus();
  const Enctype* found = FindEnctype(enctype);
  if (found != nullptr && found->is_gcm()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(principal, " must have keys of aes256-gcm or aes128-gcm, not of ",
                   found != nullptr ? found->name : "another type",
                   ": only there a ticket carries the header that the servers check"));
}

size_t BaseBlocks(int32_t enctype) {
  const Enctype* found = FindEnctype(enctype);
  return found == nullptr ? 0 : found->base_blocks();
}

size_t RoundKeys(int32_t enctype, uint32_t usage) {
  const Enctype* found = FindEnctype(enctype);
  if (found == nullptr || (!found->is_gcm() && !IsEncryptionUsage(usage))) return 0;
  return found->round_keys();
}

size_t MacStateBlocks(int32_t enctype) {
  const Enctype* found = FindEnctype(enctype);
  return found == nullptr ? 0 : found->mac_state_blocks();
}

PrincipalId PrincipalIdOf(absl::string_view principal) {
  // With the label's terminating zero.
  const Digest hash = Sha256(absl::StrCat(absl::string_view(kPrincipalLabel, sizeof kPrincipalLabel),
                                          principal));
  PrincipalId id;
  std::copy_n(hash.begin(), id.size(), id.begin());
  return id;
}

absl::Span<const uint32_t> UsagesOf(KeyClass key_class) {
  static constexpr uint32_t kUser[] = {1, 3, 56};  // PA-ENC-TIMESTAMP, AS-REP, AS-REQ checksum
  // Ticket, PAC checksums, a CAMMAC's verifiers (RFC 7751).
  static constexpr uint32_t kTicket[] = {2, 17, 64};
  if (key_class == KeyClass::kUser) return kUser;
  if (IsTgsClass(key_class) || key_class == KeyClass::kService) return kTicket;
  return {};
}

bool MayCarry(KeyClass key_class, absl::Span<const uint32_t> usages) {
  static constexpr uint32_t kBeforeCammac[] = {2, 17};
  const bool ticket = key_class == KeyClass::kTgs || key_class == KeyClass::kService;
  return usages == UsagesOf(key_class) || (ticket && usages == absl::MakeConstSpan(kBeforeCammac));
}

absl::Status CheckKeyInfo(const KeyInfo& info) {
  if (BaseBlocks(info.enctype) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("enctype ", info.enctype,
                     " is none of aes256-gcm (-24002), aes128-gcm (-24001) and 17 to 20"));
  }
  if (info.principal.empty() || info.principal.size() > limits::kMaxPrincipalBytes ||
      info.principal.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("a principal has 1 to ", limits::kMaxPrincipalBytes, " bytes and no zero byte"));
  }
  if (info.principal_id != PrincipalIdOf(info.principal)) {
    return absl::InvalidArgumentError("the principal id is not that of the principal");
  }
  if (info.salt.size() > limits::kMaxSaltBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a salt has at most ", limits::kMaxSaltBytes, " bytes"));
  }
  const auto gate = static_cast<uint8_t>(info.gate);
  if (!IsKeyClass(static_cast<uint8_t>(info.key_class))) {
    return absl::InvalidArgumentError("unknown key class");
  }
  if (gate < 1 || gate > 5) return absl::InvalidArgumentError("unknown gate");
  return absl::OkStatus();
}

namespace {

// An imported krbtgt is the realm's own, of a type that stock KDCs have.
absl::Status CheckOldTgs(const KeyInfo& info) {
  if (IsOwnTgt(info.principal) && !FindEnctype(info.enctype)->is_gcm()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(info.principal, ": an imported ticket-granting key is one of the realm's own "
                                   "krbtgt, of enctype 17 to 20"));
}

}  // namespace

absl::Status CheckNewKeyInfo(const KeyInfo& info) {
  const absl::Status status = CheckKeyInfo(info);
  if (status.ok() && info.key_class == KeyClass::kTgsOld) return CheckOldTgs(info);
  if (status.ok() && info.key_class == KeyClass::kHistory) {
    return absl::InvalidArgumentError("a new key cannot be one for the password history alone");
  }
  return status.ok() ? CheckTicketEnctype(info.principal, info.enctype) : status;
}

// A user's password must not become the key of a ticket that others believe, nor the other way
// round; such keys are drawn anew under the new name instead.
absl::Status CheckRename(const KeyInfo& info, absl::string_view principal,
                         absl::string_view realm) {
  for (const absl::string_view name : {absl::string_view(info.principal), principal}) {
    if (!IsPowerful(name)) continue;
    return absl::PermissionDeniedError(
        absl::StrCat("keys of ", name, " are neither given to another name nor taken from one"));
  }
  if (info.key_class == KeyClass::kTgs) {
    return absl::PermissionDeniedError(
        absl::StrCat("the key of ", info.principal, " seals ticket-granting tickets"));
  }
  if (!IsOfRealm(principal, realm)) {
    return absl::PermissionDeniedError(absl::StrCat(principal, " is not of realm ", realm));
  }
  if (info.principal == principal) {
    return absl::InvalidArgumentError("the new name is the old one");
  }
  return absl::OkStatus();
}

std::optional<Handle> NextHandle(Handle handle) {
  for (size_t i = handle.size(); i-- > 0;) {
    if (++handle[i] != 0) return handle;
  }
  return std::nullopt;
}

absl::string_view GateName(Gate gate) {
  switch (gate) {
    case Gate::kTimestamp: return "timestamp";
    case Gate::kKdcTrusted: return "kdc-trusted";
    case Gate::kNone: return "none";
    case Gate::kPkinit: return "pkinit";
    case Gate::kTimestampOrPkinit: return "timestamp-or-pkinit";
  }
  return "unknown";
}

std::string HandleText(const Handle& handle) { return absl::BytesToHexString(AsText(handle)); }

}  // namespace mpckdc
