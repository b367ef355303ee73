// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/store/key_record.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "mpc-server/hash/sha256.h"
#include "mpc-server/limits.h"

namespace mpckdc {
namespace {

constexpr char kPrincipalLabel[] = "mpc-kdc principal v1";  // hashed with its terminating zero

constexpr uint32_t kUserUsages[] = {1, 3, 56};
constexpr uint32_t kTicketUsages[] = {2, 17};

bool SameBlocks(absl::Span<const SharedBlock> a, absl::Span<const SharedBlock> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const SharedBlock& s, const SharedBlock& t) {
                      return s.x == t.x && s.a == t.a;
                    });
}

bool SameUsage(const UsageKey& a, const UsageKey& b) {
  return a.usage == b.usage && a.h.x == b.h.x && a.h.a == b.h.a &&
         SameBlocks(a.round_keys, b.round_keys) && SameBlocks(a.mac_states, b.mac_states);
}

// krbtgt/REALM@REALM.
bool IsOwnTgt(absl::string_view principal) {
  constexpr absl::string_view kPrefix = "krbtgt/";
  const size_t at = principal.rfind('@');
  return absl::StartsWith(principal, kPrefix) && at != absl::string_view::npos &&
         principal.substr(kPrefix.size(), at - kPrefix.size()) == principal.substr(at + 1);
}

}  // namespace

const UsageKey* KeyRecord::FindUsage(uint32_t usage) const {
  for (const UsageKey& key : usages) {
    if (key.usage == usage) return &key;
  }
  return nullptr;
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
  if (key_class == KeyClass::kUser) return kUserUsages;
  return kTicketUsages;
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
  if (IsOwnTgt(info.principal) && !FindEnctype(info.enctype)->is_gcm()) {
    return absl::InvalidArgumentError(absl::StrCat(
        info.principal, " must have a key of aes256-gcm or aes128-gcm, not of ",
        FindEnctype(info.enctype)->name, ": only there a TGT carries the header that the servers check"));
  }
  if (info.salt.size() > limits::kMaxSaltBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a salt has at most ", limits::kMaxSaltBytes, " bytes"));
  }
  const auto key_class = static_cast<uint8_t>(info.key_class);
  const auto gate = static_cast<uint8_t>(info.gate);
  if (key_class < 1 || key_class > 3) return absl::InvalidArgumentError("unknown key class");
  if (gate < 1 || gate > 3) return absl::InvalidArgumentError("unknown gate");
  return absl::OkStatus();
}

absl::Status CheckKeyRecord(const KeyRecord& record) {
  if (absl::Status status = CheckKeyInfo(record.info); !status.ok()) return status;
  if (record.base.size() != BaseBlocks(record.info.enctype)) {
    return absl::InvalidArgumentError("the base key has not the size of its enctype");
  }
  const absl::Span<const uint32_t> usages = UsagesOf(record.info.key_class);
  if (record.usages.size() != usages.size()) {
    return absl::InvalidArgumentError("the usages are not those of the key class");
  }
  for (size_t i = 0; i < usages.size(); ++i) {
    if (record.usages[i].usage != usages[i]) {
      return absl::InvalidArgumentError("the usages are not those of the key class, ascending");
    }
    if (record.usages[i].round_keys.size() != RoundKeys(record.info.enctype, usages[i])) {
      return absl::InvalidArgumentError(
          absl::StrCat("usage ", usages[i], " has not the round keys of its enctype"));
    }
    if (record.usages[i].mac_states.size() != MacStateBlocks(record.info.enctype)) {
      return absl::InvalidArgumentError(
          absl::StrCat("usage ", usages[i], " has not the HMAC states of its enctype"));
    }
  }
  return absl::OkStatus();
}

std::string HandleText(const Handle& handle) {
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(handle.data()), handle.size()));
}

bool SameRecord(const KeyRecord& a, const KeyRecord& b) {
  return a.info == b.info && SameBlocks(a.base, b.base) &&
         std::equal(a.usages.begin(), a.usages.end(), b.usages.begin(), b.usages.end(), SameUsage);
}

}  // namespace mpckdc
