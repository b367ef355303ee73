// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/pkinit/request.h"

#include <openssl/evp.h>

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mpc-server/job/preauth_timestamp.h"

namespace mpckdc {
namespace {

constexpr int64_t kMaxMicroseconds = 999999;
constexpr int64_t kMaxNonce = 0xffffffff;

std::string HashOf(const EVP_MD* md, absl::string_view bytes) {
  std::string out(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  const bool ok = EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<uint8_t*>(out.data()),
                             &size, md, nullptr) == 1;
  out.resize(ok ? size : 0);
  return out;
}

// 2.16.840.1.101.3.4.2.n
const EVP_MD* Sha2Of(absl::string_view object) {
  constexpr absl::string_view kSha2("\x60\x86\x48\x01\x65\x03\x04\x02", 8);
  if (object.size() != kSha2.size() + 1 || !absl::StartsWith(object, kSha2)) return nullptr;
  switch (object.back()) {
    case 1: return EVP_sha256();
    case 2: return EVP_sha384();
    case 3: return EVP_sha512();
    default: return nullptr;
  }
}

// As krb5_unparse_name() quotes.
std::string Quoted(absl::string_view text) {
  constexpr absl::string_view kQuoted("/@\\\n\t\b\0", 7), kWrittenSo("/@\\ntb0");
  std::string out;
  for (const char c : text) {
    const size_t i = kQuoted.find(c);
    if (i != absl::string_view::npos) out += '\\';
    out += i == absl::string_view::npos ? c : kWrittenSo[i];
  }
  return out;
}

bool TakeInteger(DerReader& in, int field, int64_t most) {
  const auto contents = in.TakeField(der::Field(field), der::kInteger);
  if (!contents) return false;
  const auto value = DerInteger(*contents);
  return value.has_value() && *value >= 0 && *value <= most;
}

bool TakeSecondChecksum(DerReader& in, AuthPack* pack) {
  const auto contents = in.TakeField(der::Field(5), der::kSequence);
  if (!contents) return false;
  DerReader second(*contents);
  const auto checksum = second.TakeField(der::Field(0), der::kOctets);
  const auto algorithm = second.TakeField(der::Field(1), der::kSequence);
  if (!checksum || checksum->empty() || !algorithm) return false;
  const auto object = DerReader(*algorithm).Take(der::kObject);
  if (!object) return false;
  pack->second_checksum = *checksum;
  pack->second_algorithm = *object;
  return true;
}

}  // namespace

std::optional<absl::string_view> SignedAuthPackOf(absl::string_view pa_pk_as_req) {
  const auto sequence = OnlyDer(der::kSequence, pa_pk_as_req);
  if (!sequence) return std::nullopt;
  return DerReader(*sequence).Take(der::Implicit(0));
}

std::optional<AuthPack> DecodeAuthPack(absl::string_view der) {
  const auto sequence = OnlyDer(der::kSequence, der);
  if (!sequence) return std::nullopt;
  const auto authenticator = DerReader(*sequence).TakeField(der::Field(0), der::kSequence);
  if (!authenticator) return std::nullopt;
  DerReader in(*authenticator);
  if (!TakeInteger(in, 0, kMaxMicroseconds)) return std::nullopt;
  const auto text = in.TakeField(der::Field(1), der::kTime);
  const auto time = text ? ParseKerberosTime(*text) : std::nullopt;
  if (!time || !TakeInteger(in, 2, kMaxNonce)) return std::nullopt;
  const auto checksum = in.TakeField(der::Field(3), der::kOctets);
  if (!checksum) return std::nullopt;
  AuthPack pack{*time, *checksum, {}, {}};
  if (in.At(der::Field(4)) && !in.Take(der::Field(4))) return std::nullopt;
  if (in.At(der::Field(5)) && !TakeSecondChecksum(in, &pack)) return std::nullopt;
  return pack;
}

absl::Status CheckBody(const AuthPack& pack, absl::string_view body) {
  if (pack.checksum.empty() || pack.checksum != HashOf(EVP_sha1(), body)) {
    return absl::PermissionDeniedError("what the client signed is not about this request");
  }
  if (pack.second_checksum.empty()) return absl::OkStatus();
  const EVP_MD* const md = Sha2Of(pack.second_algorithm);
  if (md != nullptr && pack.second_checksum == HashOf(md, body)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      "the second checksum that the client signed is not SHA-2 of this request");
}

std::optional<RequestBody> DecodeRequestBody(absl::string_view der) {
  const auto sequence = OnlyDer(der::kSequence, der);
  if (!sequence) return std::nullopt;
  DerReader in(*sequence);
  if (!in.Take(der::Field(0))) return std::nullopt;
  const auto cname = in.Take(der::Field(1));
  const auto realm = in.TakeField(der::Field(2), der::kGeneralString);
  const auto sname = in.Take(der::Field(3));
  if (!cname || !realm || !sname) return std::nullopt;
  const auto client = UnparsedName(*realm, *cname);
  const auto server = UnparsedName(*realm, *sname);
  if (!client || !server) return std::nullopt;
  return RequestBody{*client, *server};
}

std::optional<std::string> UnparsedName(absl::string_view realm, absl::string_view principal_name) {
  const auto sequence = OnlyDer(der::kSequence, principal_name);
  if (!sequence) return std::nullopt;
  DerReader in(*sequence);
  if (!in.TakeField(der::Field(0), der::kInteger)) return std::nullopt;  // says nothing
  const auto strings = in.TakeField(der::Field(1), der::kSequence);
  if (!strings || strings->empty() || !in.AtEnd()) return std::nullopt;
  std::vector<std::string> components;
  for (DerReader list(*strings); !list.AtEnd();) {
    const auto component = list.Take(der::kGeneralString);
    if (!component) return std::nullopt;
    components.push_back(Quoted(*component));
  }
  return absl::StrCat(absl::StrJoin(components, "/"), "@", Quoted(realm));
}

std::optional<std::string> UnparsedSan(absl::string_view der) {
  const auto sequence = OnlyDer(der::kSequence, der);
  if (!sequence) return std::nullopt;
  DerReader in(*sequence);
  const auto realm = in.TakeField(der::Field(0), der::kGeneralString);
  const auto name = in.Take(der::Field(1));
  if (!realm || !name || !in.AtEnd()) return std::nullopt;
  return UnparsedName(*realm, *name);
}

}  // namespace mpckdc
