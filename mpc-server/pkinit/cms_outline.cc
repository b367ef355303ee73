// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/pkinit/cms_outline.h"

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/base/der.h"
#include "mpc-server/base/key_outline.h"
#include "mpc-server/base/limits.h"

namespace mpckdc {
namespace {

// 1.2.840.113549.1.7.2
constexpr absl::string_view kSignedData("\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02", 9);
constexpr uint8_t kSet = 0x31;
// Elements in each other whose lengths are not said; OpenSSL's own bound is 30.
constexpr int kMaxDepth = 30;

struct Element {
  uint8_t tag;
  absl::string_view contents;
};

// Takes one element of BER off the front: lengths need not be short, and may not be said at all.
class BerReader {
 public:
  explicit BerReader(absl::string_view in) : rest_(in) {}

  std::optional<Element> Next(int depth = kMaxDepth);
  std::optional<absl::string_view> Take(uint8_t tag) {
    const auto element = Next();
    if (!element || element->tag != tag) return std::nullopt;
    return element->contents;
  }
  bool At(uint8_t tag) const { return !rest_.empty() && static_cast<uint8_t>(rest_[0]) == tag; }
  bool AtEnd() const { return rest_.empty(); }

 private:
  std::optional<uint8_t> Byte() {
    if (rest_.empty()) return std::nullopt;
    const auto byte = static_cast<uint8_t>(rest_[0]);
    rest_.remove_prefix(1);
    return byte;
  }
  // All that follows up to the end of contents, which is taken too.
  std::optional<absl::string_view> UpToEnd(int depth);

  absl::string_view rest_;
};

std::optional<Element> BerReader::Next(int depth) {
  const auto tag = Byte();
  if (!tag || (*tag & 0x1f) == 0x1f) return std::nullopt;  // no tag here has more than a byte
  const auto first = Byte();
  if (!first) return std::nullopt;
  if (*first == 0x80) {
    const auto contents = UpToEnd(depth);
    if (!contents) return std::nullopt;
    return Element{*tag, *contents};
  }
  size_t length = *first;
  if (length > 0x80) {
    size_t bytes = length - 0x80;
    if (bytes > sizeof(uint32_t)) return std::nullopt;
    for (length = 0; bytes > 0; --bytes) {
      const auto byte = Byte();
      if (!byte) return std::nullopt;
      length = length << 8 | *byte;
    }
  }
  if (length > rest_.size()) return std::nullopt;
  const Element element{*tag, rest_.substr(0, length)};
  rest_.remove_prefix(length);
  return element;
}

std::optional<absl::string_view> BerReader::UpToEnd(int depth) {
  if (depth == 0) return std::nullopt;
  const absl::string_view from = rest_;
  while (!At(0)) {
    if (!Next(depth - 1)) return std::nullopt;
  }
  const absl::string_view contents = from.substr(0, from.size() - rest_.size());
  // Only these two: to OpenSSL 00 81 00 is an element like any other.
  if (!absl::StartsWith(rest_, absl::string_view("\0\0", 2))) return std::nullopt;
  rest_.remove_prefix(2);
  return contents;
}

// Of ContentInfo SEQUENCE { contentType, [0] SignedData SEQUENCE { version, digestAlgorithms SET,
// encapContentInfo SEQUENCE, certificates [0] IMPLICIT SET OPTIONAL, crls [1] IMPLICIT SET OPTIONAL,
// signerInfos SET } } the certificates, nothing where there are none. Of other contents OpenSSL
// decodes certificates elsewhere; and it reads other tags for [0] than this one, BF 00 for example.
std::optional<absl::string_view> CertificatesOf(absl::string_view cms) {
  const auto info = BerReader(cms).Take(der::kSequence);
  if (!info) return std::nullopt;
  BerReader fields(*info);
  if (fields.Take(der::kObject) != kSignedData) return std::nullopt;
  const auto content = fields.Take(der::Field(0));
  const auto data = content ? BerReader(*content).Take(der::kSequence) : std::nullopt;
  if (!data) return std::nullopt;
  BerReader in(*data);
  if (!in.Take(der::kInteger) || !in.Take(kSet) || !in.Take(der::kSequence)) return std::nullopt;
  if (in.At(der::Field(1)) || in.At(kSet)) return absl::string_view();
  return in.Take(der::Field(0));
}

}  // namespace

absl::Status CheckOutline(absl::string_view cms) {
  const auto certificates = CertificatesOf(cms);
  if (!certificates) return absl::PermissionDeniedError("signedAuthPack is not signed data");
  int count = 0;
  for (BerReader in(*certificates); !in.AtEnd();) {
    const auto one = in.Next();
    if (!one) return absl::PermissionDeniedError("signedAuthPack is not signed data");
    count += one->tag == der::kSequence ? 1 : 0;  // else an attribute certificate, without a key
  }
  if (count > limits::kMaxProofCertificates) {
    return absl::PermissionDeniedError(absl::StrCat(
        count, " certificates in signedAuthPack, at most ", limits::kMaxProofCertificates));
  }
  for (BerReader in(*certificates); !in.AtEnd();) {
    const auto one = in.Next();
    if (one->tag != der::kSequence) continue;
    if (absl::Status s = CheckCertificate(one->contents); !s.ok()) {
      return absl::PermissionDeniedError(absl::StrCat("in signedAuthPack, ", s.message()));
    }
  }
  return absl::OkStatus();
}

}  // namespace mpckdc
