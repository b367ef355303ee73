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

const std::string kEcPublicKey = Object("2a8648ce3d0201");

std::string PublicKeyInfo(const std::string& parameters, const std::string& point) {
  return Sequence(absl::StrCat(Sequence(kEcPublicKey + parameters),
                               Der(kBits, absl::StrCat(std::string(1, '\0'), point))));
}

// An element whose length is not said.
std::string Open(uint8_t tag, const std::string& contents) {
  return absl::StrCat(std::string(1, static_cast<char>(tag)), "\x80", contents,
                      std::string(2, '\0'));
}

}  // namespace

std::string KeyOfItsOwnCurve() {
  const std::string prime = absl::StrCat(Bytes("1f89"), std::string(kPrimeBytes - 3, '\0'), "\x01");
  const std::string order = absl::StrCat("\x10", std::string(kPrimeBytes - 2, '\0'), "\x01");
  const std::string point = absl::StrCat("\x02", std::string(kPrimeBytes, '\0'));
  const std::string field = Sequence(Object("2a8648ce3d0101") + Der(der::kInteger, prime));
  const std::string curve = Sequence(Element(1) + Element(49));
  return PublicKeyInfo(
      Sequence(absl::StrCat(DerNumber(1), field, curve, Der(der::kOctets, point),
                            Der(der::kInteger, order), DerNumber(1))),
      point);
}

std::string CompressedKey() {
  // The generator.
  return PublicKeyInfo(
      Object("2b81040021"), Bytes("02b70e0cbd6bb4bf7f321390b94a03c1d356c21122343280d6115c1d21"));
}

std::string CertificateOfKey(absl::string_view key_info) {
  const std::string algorithm = Sequence(Object("2a8648ce3d040302")), name = Sequence("");
  const std::string time = Sequence(absl::StrCat(Der(kUtcTime, "250101000000Z"),
                                                 Der(kUtcTime, "350101000000Z")));
  const std::string tbs =
      Sequence(absl::StrCat(DerNumber(1), algorithm, name, time, name, key_info));
  return Sequence(absl::StrCat(tbs, algorithm, Der(kBits, std::string(1, '\0'))));
}

std::string CmsWith(const std::vector<std::string>& certificates, bool with_lengths) {
  const auto wrap = with_lengths ? [](uint8_t tag, const std::string& in) { return Der(tag, in); }
                                 : [](uint8_t tag, const std::string& in) { return Open(tag, in); };
  std::string all;
  for (const std::string& one : certificates) all += one;
  const std::string content = Object("2b060105020301");
  const std::string data = wrap(
      der::kSequence, absl::StrCat(DerNumber(3), wrap(kSet, ""), wrap(der::kSequence, content),
                                   wrap(der::Field(0), all), wrap(kSet, "")));
  return wrap(der::kSequence, Object("2a864886f70d010702") + wrap(der::Field(0), data));
}

std::string EnvelopedWith(const std::vector<std::string>& certificates) {
  std::string all;
  for (const std::string& one : certificates) all += one;
  const std::string encrypted =
      Sequence(absl::StrCat(Object("2a864886f70d010701"), Sequence(Object("60864801650304012a")),
                            Der(der::Implicit(0), "x")));
  const std::string data = Sequence(absl::StrCat(
      DerNumber(2), Der(der::Field(0), Der(der::Field(0), all)), Der(kSet, ""), encrypted));
  return Sequence(Object("2a864886f70d010703") + Der(der::Field(0), data));
}

}  // namespace mpckdc
