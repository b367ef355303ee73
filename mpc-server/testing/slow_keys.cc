// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/testing/slow_keys.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/base/der.h"
#include "mpc-server/testing/pkinit.h"

namespace mpckdc {
namespace {

constexpr uint8_t kBits = 0x03, kSet = 0x31, kUtcTime = 0x17;
constexpr size_t kPrimeBytes = 83;

std::string Bytes(absl::string_view hex) { return absl::HexStringToBytes(hex); }
std::string Object(absl::string_view hex) { return Der(der::kObject, Bytes(hex)); }
std::string Sequence(const std::string& contents) { return Der(der::kSequence, contents); }
// As many bytes as the prime has.
std::string Element(uint8_t value) {
  return Der(der::kOctets, absl::StrCat(std::string(kPrimeBytes - 1, '\0'),
                                        std::string(1, static_cast<char>(value))));
}

std::string PublicKeyInfo(const std::string& parameters, const std::string& point,
                          absl::string_view algorithm = kAnyCurve) {
  return Sequence(absl::StrCat(Sequence(Object(algorithm) + parameters),
                               Der(kBits, absl::StrCat(std::string(1, '\0'), point))));
}

// An element whose length is not said.
std::string Open(uint8_t tag, const std::string& contents) {
  return absl::StrCat(std::string(1, static_cast<char>(tag)), "\x80", contents,
                      std::string(2, '\0'));
}

std::string Certificate(const std::string& issuer, absl::string_view key_info,
                        const std::string& extensions) {
  const std::string algorithm = Sequence(Object("2a8648ce3d040302"));
  const std::string time = Sequence(absl::StrCat(Der(kUtcTime, "250101000000Z"),
                                                 Der(kUtcTime, "350101000000Z")));
  const std::string version = extensions.empty() ? "" : Der(der::Field(0), DerNumber(2));
  const std::string tbs = Sequence(absl::StrCat(version, DerNumber(1), algorithm, issuer, time,
                                                Sequence(""), key_info, extensions));
  return Sequence(absl::StrCat(tbs, algorithm, Der(kBits, std::string(1, '\0'))));
}

std::string Joined(const std::vector<std::string>& certificates) {
  std::string all;
  for (const std::string& one : certificates) all += one;
  return all;
}

// In DER, of these parts.
std::string SignedData(const std::string& content, const std::string& certificates) {
  const std::string data =
      Sequence(absl::StrCat(DerNumber(3), Der(kSet, ""), content, certificates, Der(kSet, "")));
  return Sequence(Object("2a864886f70d010702") + Der(der::Field(0), data));
}

}  // namespace

std::string KeyOfItsOwnCurve(absl::string_view algorithm) {
  const std::string prime = absl::StrCat(Bytes("1f89"), std::string(kPrimeBytes - 3, '\0'), "\x01");
  const std::string order = absl::StrCat("\x10", std::string(kPrimeBytes - 2, '\0'), "\x01");
  const std::string point = absl::StrCat("\x02", std::string(kPrimeBytes, '\0'));
  const std::string field = Sequence(Object("2a8648ce3d0101") + Der(der::kInteger, prime));
  const std::string curve = Sequence(Element(1) + Element(49));
  return PublicKeyInfo(
      Sequence(absl::StrCat(DerNumber(1), field, curve, Der(der::kOctets, point),
                            Der(der::kInteger, order), DerNumber(1))),
      point, algorithm);
}

std::string CompressedKey() {
  // The generator.
  return PublicKeyInfo(
      Object("2b81040021"), Bytes("02b70e0cbd6bb4bf7f321390b94a03c1d356c21122343280d6115c1d21"));
}

std::string FullKey() {
  return PublicKeyInfo(Object("2a8648ce3d030107"),
                       Bytes("046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"
                             "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"));
}

std::string CertificateOfKey(absl::string_view key_info) {
  return Certificate(Sequence(""), key_info, "");
}

std::string CertificateOfPoints(int points, int names, bool relative) {
  std::string issuer, list;
  for (int i = 0; i < names; ++i) issuer += Sequence(Object("2a") + Der(der::kUtf8, ""));
  const std::string name =
      relative ? Der(der::Field(1), "") : Der(der::Field(0), Der(der::Implicit(6), "http://crl"));
  for (int i = 0; i < points; ++i) list += Sequence(Der(der::Field(0), name));
  const std::string extension = Sequence(Object("551d1f") + Der(der::kOctets, Sequence(list)));
  return Certificate(Sequence(Der(kSet, issuer)), FullKey(),
                     Der(der::Field(3), Sequence(extension)));
}

std::string CmsWith(const std::vector<std::string>& certificates, bool with_lengths) {
  const auto wrap = with_lengths ? [](uint8_t tag, const std::string& in) { return Der(tag, in); }
                                 : [](uint8_t tag, const std::string& in) { return Open(tag, in); };
  const std::string content = Object("2b060105020301");
  const std::string data = wrap(
      der::kSequence, absl::StrCat(DerNumber(3), wrap(kSet, ""), wrap(der::kSequence, content),
                                   wrap(der::Field(0), Joined(certificates)), wrap(kSet, "")));
  return wrap(der::kSequence, Object("2a864886f70d010702") + wrap(der::Field(0), data));
}

std::string CmsWithLongTag(const std::vector<std::string>& certificates) {
  std::string all = Der(der::Field(0), Joined(certificates));
  all.replace(0, 1, std::string("\xbf\0", 2));
  return SignedData(Sequence(Object("2b060105020301")), all);
}

std::string CmsWithFalseEnd(const std::vector<std::string>& certificates) {
  // An empty part of a string whose tag is 0, and whose length has two bytes.
  const std::string text = Open(0x24, std::string("\0\x81\0", 3));
  return SignedData(Open(der::kSequence, Object("2b060105020301") + Open(der::Field(0), text)),
                    Der(der::Field(0), Joined(certificates)));
}

std::string EnvelopedWith(const std::vector<std::string>& certificates) {
  const std::string encrypted =
      Sequence(absl::StrCat(Object("2a864886f70d010701"), Sequence(Object("60864801650304012a")),
                            Der(der::Implicit(0), "x")));
  const std::string originator = Der(der::Field(0), Der(der::Field(0), Joined(certificates)));
  const std::string data =
      Sequence(absl::StrCat(DerNumber(2), originator, Der(kSet, ""), encrypted));
  return Sequence(Object("2a864886f70d010703") + Der(der::Field(0), data));
}

}  // namespace mpckdc
