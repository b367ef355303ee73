// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/base/key_outline.h"

#include <cstdint>
#include <optional>

#include "mpc-server/base/der.h"

namespace mpckdc {
namespace {

// 1.2.840.10045.2.1
constexpr absl::string_view kEcPublicKey("\x2a\x86\x48\xce\x3d\x02\x01", 7);
constexpr uint8_t kBits = 0x03;
constexpr char kFullPoint = 0x04;

// SubjectPublicKeyInfo SEQUENCE { SEQUENCE { algorithm OBJECT IDENTIFIER, parameters },
// subjectPublicKey BIT STRING }
absl::Status CheckKey(absl::string_view key_info) {
  const auto unreadable = [] { return absl::PermissionDeniedError("a key cannot be read"); };
  DerReader in(key_info);
  const auto algorithm = in.Take(der::kSequence);
  if (!algorithm) return unreadable();
  DerReader parts(*algorithm);
  const auto object = parts.Take(der::kObject);
  if (!object) return unreadable();
  if (*object != kEcPublicKey) return absl::OkStatus();
  if (!parts.Take(der::kObject) || !parts.AtEnd()) {
    return absl::PermissionDeniedError("a key is of a curve without a name");
  }
  const auto bits = in.Take(kBits);
  if (!bits || bits->size() < 2) return unreadable();
  if ((*bits)[1] == kFullPoint) return absl::OkStatus();
  return absl::PermissionDeniedError("a key is a compressed point");
}

}  // namespace

// Certificate SEQUENCE { TBSCertificate SEQUENCE { version [0] OPTIONAL, serialNumber, signature,
// issuer, validity, subject, subjectPublicKeyInfo, .. }, .. }
absl::Status CheckCertificateKey(absl::string_view certificate) {
  const auto tbs = DerReader(certificate).Take(der::kSequence);
  if (tbs) {
    DerReader in(*tbs);
    if (in.At(der::Field(0))) in.Take(der::Field(0));
    const bool there = in.Take(der::kInteger) && in.Take(der::kSequence) &&
                       in.Take(der::kSequence) && in.Take(der::kSequence) &&
                       in.Take(der::kSequence);
    const auto key_info = there ? in.Take(der::kSequence) : std::nullopt;
    if (key_info) return CheckKey(*key_info);
  }
  return absl::PermissionDeniedError("a certificate cannot be read");
}

}  // namespace mpckdc
