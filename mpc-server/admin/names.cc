// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/admin/names.h"

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/key/key_info.h"

namespace mpckdc::admin {
namespace {

// The parts between those `separator`s that no backslash quotes; still quoted.
std::vector<absl::string_view> Parts(absl::string_view name, char separator) {
  std::vector<absl::string_view> parts;
  size_t start = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '\\') {
      ++i;
    } else if (name[i] == separator) {
      parts.push_back(name.substr(start, i - start));
      start = i + 1;
    }
  }
  parts.push_back(name.substr(start));
  return parts;
}

// Position of the '@' before the realm: the last one that no backslash quotes.
size_t RealmSeparator(absl::string_view name) {
  const size_t realm = Parts(name, '@').back().size();
  return realm == name.size() ? absl::string_view::npos : name.size() - realm - 1;
}

// First components whose principals are services; as in kdc-plugin/kdb-module/classify.c.
constexpr absl::string_view kServiceNames[] = {
    "HTTP", "afs", "cifs", "dns", "DNS", "ftp", "host", "imap", "kiprop", "ldap", "nfs",
    "pop",  "postgres", "rcmd", "smtp", "WELLKNOWN"};

constexpr std::pair<v1::Gate, const char*> kGates[] = {
    {v1::GATE_TIMESTAMP, "timestamp"},
    {v1::GATE_KDC_TRUSTED, "kdc-trusted"},
    {v1::GATE_NONE, "none"},
    {v1::GATE_PKINIT, "pkinit"},
    {v1::GATE_TIMESTAMP_OR_PKINIT, "timestamp-or-pkinit"}};

constexpr std::pair<v1::KeyClass, const char*> kKeyClasses[] = {{v1::KEY_CLASS_USER, "user"},
                                                                {v1::KEY_CLASS_TGS, "tgs"},
                                                                {v1::KEY_CLASS_SERVICE, "service"},
                                                                {v1::KEY_CLASS_HISTORY, "history"},
                                                                {v1::KEY_CLASS_TGS_OLD, "tgs-old"}};

template <class Names, class T>
std::string NameOf(const Names& names, T value) {
  for (const auto& [each, name] : names) {
    if (each == value) return name;
  }
  return "?";
}

bool IsServiceLike(absl::string_view principal) {
  const auto components = Parts(principal.substr(0, RealmSeparator(principal)), '/');
  if (components.size() < 2) return false;
  return absl::StrContains(components[1], '.') ||
         absl::c_linear_search(kServiceNames, components[0]);
}

}  // namespace

std::string GateName(v1::Gate gate) { return NameOf(kGates, gate); }

absl::StatusOr<v1::Gate> GateFromName(absl::string_view name) {
  for (const auto& [gate, gate_name] : kGates) {
    if (name == gate_name) return gate;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown gate \"", name,
                   "\": expected timestamp, pkinit, timestamp-or-pkinit, kdc-trusted or none"));
}

std::string KeyClassName(v1::KeyClass key_class) { return NameOf(kKeyClasses, key_class); }

absl::StatusOr<v1::KeyClass> KeyClassFromName(absl::string_view name) {
  for (const v1::KeyClass key_class : {v1::KEY_CLASS_USER, v1::KEY_CLASS_SERVICE}) {
    if (name == KeyClassName(key_class)) return key_class;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown class \"", name, "\": expected user or service"));
}

v1::KeyClass KeyClassOf(absl::string_view principal) {
  if (absl::StartsWith(principal, "krbtgt/")) return v1::KEY_CLASS_TGS;
  if (absl::StartsWith(principal, "kadmin/") || IsServiceLike(principal)) {
    return v1::KEY_CLASS_SERVICE;
  }
  return v1::KEY_CLASS_USER;
}

absl::StatusOr<std::string> QualifyPrincipal(absl::string_view name, absl::string_view realm) {
  const bool printable = absl::c_none_of(name, absl::ascii_iscntrl);
  const size_t at = RealmSeparator(name);
  const absl::string_view local = name.substr(0, at);
  if (local.empty() || !printable || name.size() > limits::kMaxPrincipalBytes ||
      name.front() == '-') {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", absl::CHexEscape(name), "\" is not a principal's name"));
  }
  if (at == absl::string_view::npos) return absl::StrCat(name, "@", realm);
  if (name.substr(at + 1) != realm && !IsTgtFromOtherRealm(name, realm)) {
    return absl::InvalidArgumentError(absl::StrCat("\"", name, "\" belongs to realm ",
                                                   name.substr(at + 1), ", the configuration to ",
                                                   realm));
  }
  return std::string(name);
}

std::string Day(absl::Time time) { return absl::FormatTime("%Y-%m-%d", time, absl::UTCTimeZone()); }

std::string Minute(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M", time, absl::UTCTimeZone());
}

std::string Hex(absl::string_view bytes) { return absl::BytesToHexString(bytes); }

absl::StatusOr<std::string> FromHex(absl::string_view hex) {
  const bool good = hex.size() % 2 == 0 && absl::c_all_of(hex, absl::ascii_isxdigit);
  if (!good) {
    return absl::InvalidArgumentError(absl::StrCat("\"", hex, "\" is not hexadecimal"));
  }
  return absl::HexStringToBytes(hex);
}

}  // namespace mpckdc::admin
