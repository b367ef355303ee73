// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/base/key_outline.h"

#include <cstdint>
#include <optional>

#include "mpc-server/base/der.h"

namespace mpckdc {
namespace {

// 1.2.840.10045.2.1
constexpr absl::string_view kEcPublicKey("\x2a\x86\x48\xce\x3d\x02\x01", 7);
// 1.2.156.10197.1.301, for which OpenSSL has the same decoder.
constexpr absl::string_view kSm2("\x2a\x81\x1c\xcf\x55\x01\x82\x2d", 8);
// 2.5.29.31
constexpr absl::string_view kDistributionPoints("\x55\x1d\x1f", 3);
constexpr uint8_t kBoolean = 0x01, kBits = 0x03;
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
  if (*object != kEcPublicKey && *object != kSm2) return absl::OkStatus();
  if (!parts.Take(der::kObject) || !parts.AtEnd()) {
    return absl::PermissionDeniedError("a key is of a curve without a name");
  }
  const auto bits = in.Take(kBits);
  if (!bits || bits->size() < 2) return unreadable();
  if ((*bits)[1] == kFullPoint) return absl::OkStatus();
  return absl::PermissionDeniedError("a key is a compressed point");
}

// CRLDistributionPoints SEQUENCE OF DistributionPoint SEQUENCE { distributionPoint [0] { fullName
// [0] or nameRelativeToCRLIssuer [1] } OPTIONAL, reasons [1], cRLIssuer [2] }
bool AllHaveFullNames(absl::string_view extension) {
  const auto list = OnlyDer(der::kSequence, extension);
  if (!list) return false;
  for (DerReader points(*list); !points.AtEnd();) {
    const auto point = points.Take(der::kSequence);
    if (!point) return false;
    DerReader parts(*point);
    const auto name = parts.Take(der::Field(0));
    const bool full = name ? DerReader(*name).At(der::Field(0))
                           : parts.At(der::Implicit(1)) || parts.At(der::Field(2));
    if (!full) return false;
  }
  return true;
}

// What follows subjectPublicKeyInfo: issuerUniqueID [1] IMPLICIT BIT STRING OPTIONAL,
// subjectUniqueID [2], extensions [3] SEQUENCE OF SEQUENCE { extnID OBJECT IDENTIFIER, critical
// BOOLEAN DEFAULT FALSE, extnValue OCTET STRING } OPTIONAL
absl::Status CheckExtensions(DerReader in) {
  const absl::Status unreadable = absl::PermissionDeniedError("a certificate cannot be read");
  in.Take(der::Implicit(1));
  in.Take(der::Implicit(2));
  if (in.AtEnd()) return absl::OkStatus();
  const auto all = in.TakeField(der::Field(3), der::kSequence);
  if (!all || !in.AtEnd()) return unreadable;
  for (DerReader extensions(*all); !extensions.AtEnd();) {
    const auto extension = extensions.Take(der::kSequence);
    if (!extension) return unreadable;
    DerReader parts(*extension);
    const auto object = parts.Take(der::kObject);
    parts.Take(kBoolean);
    const auto value = parts.Take(der::kOctets);
    if (!object || !value || !parts.AtEnd()) return unreadable;
    if (*object == kDistributionPoints && !AllHaveFullNames(*value)) {
      return absl::PermissionDeniedError("a distribution point is relative to a name");
    }
  }
  return absl::OkStatus();
}

}  // namespace

// Certificate SEQUENCE { TBSCertificate SEQUENCE { version [0] OPTIONAL, serialNumber, signature,
// issuer, validity, subject, subjectPublicKeyInfo, .. }, .. }
absl::Status CheckCertificate(absl::string_view certificate) {
  const auto tbs = DerReader(certificate).Take(der::kSequence);
  if (tbs) {
    DerReader in(*tbs);
    in.Take(der::Field(0));
    const bool there = in.Take(der::kInteger) && in.Take(der::kSequence) &&
                       in.Take(der::kSequence) && in.Take(der::kSequence) &&
                       in.Take(der::kSequence);
    const auto key_info = there ? in.Take(der::kSequence) : std::nullopt;
    if (key_info) {
      const absl::Status key = CheckKey(*key_info);
      return key.ok() ? CheckExtensions(in) : key;
    }
  }
  return absl::PermissionDeniedError("a certificate cannot be read");
}

}  // namespace mpckdc
