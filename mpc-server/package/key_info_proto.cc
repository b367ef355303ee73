// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/package/key_info_proto.h"

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc {

static_assert(static_cast<int>(KeyClass::kService) == v1::KEY_CLASS_SERVICE &&
              static_cast<int>(Gate::kNone) == v1::GATE_NONE);

absl::StatusOr<std::array<uint8_t, 16>> Bytes16(absl::string_view bytes, absl::string_view what) {
  std::array<uint8_t, 16> out;
  if (bytes.size() != out.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " has ", bytes.size(), " bytes instead of ", out.size()));
  }
  std::copy(bytes.begin(), bytes.end(), out.begin());
  return out;
}

absl::StatusOr<Gate> GateFromProto(v1::Gate gate) {
  if (gate < v1::GATE_TIMESTAMP || gate > v1::GATE_NONE) {
    return absl::InvalidArgumentError("the gate must be timestamp, kdc-trusted or none");
  }
  return static_cast<Gate>(gate);
}

absl::StatusOr<KeyClass> KeyClassFromProto(v1::KeyClass key_class) {
  if (key_class < v1::KEY_CLASS_USER || key_class > v1::KEY_CLASS_SERVICE) {
    return absl::InvalidArgumentError("unknown key class");
  }
  return static_cast<KeyClass>(key_class);
}

absl::StatusOr<KeyInfo> KeyInfoFromProto(const v1::KeyInfo& in, absl::string_view realm) {
  KeyInfo info;
  ASSIGN_OR_RETURN(info.handle, Bytes16(in.handle(), "a key handle"));
  info.principal = in.principal();
  info.principal_id = PrincipalIdOf(info.principal);
  info.kvno = in.kvno();
  info.enctype = in.enctype();
  info.salt_type = in.salt_type();
  info.salt = in.salt();
  ASSIGN_OR_RETURN(info.key_class, KeyClassFromProto(in.key_class()));
  ASSIGN_OR_RETURN(info.gate, GateFromProto(in.gate()));
  RETURN_IF_ERROR(CheckKeyInfo(info));
  if (!absl::EndsWith(info.principal, absl::StrCat("@", realm))) {
    return absl::InvalidArgumentError(
        absl::StrCat(info.principal, " is not a principal of realm ", realm));
  }
  const bool is_tgs = absl::StartsWith(info.principal, "krbtgt/");
  if (is_tgs != (info.key_class == KeyClass::kTgs)) {
    return absl::InvalidArgumentError(
        absl::StrCat(info.principal, ": krbtgt principals, and only they, have the key class TGS"));
  }
  return info;
}

void KeyInfoToProto(const KeyInfo& in, v1::KeyInfo* out) {
  out->set_handle(std::string(AsText(in.handle)));
  out->set_principal(in.principal);
  out->set_kvno(in.kvno);
  out->set_enctype(in.enctype);
  out->set_salt_type(in.salt_type);
  out->set_salt(in.salt);
  out->set_key_class(static_cast<v1::KeyClass>(in.key_class));
  out->set_gate(static_cast<v1::Gate>(in.gate));
}

}  // namespace mpckdc
