// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/job/preauth_timestamp.h"

#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/civil_time.h"

namespace mpckdc {
namespace {

constexpr uint8_t kSequence = 0x30, kTime = 0x18, kInteger = 0x02, kField0 = 0xa0, kField1 = 0xa1;
constexpr int64_t kMaxMicroseconds = 999999;

// Takes one element with this tag off the front; lengths below 128 only, as all are here.
std::optional<absl::string_view> TakeElement(uint8_t tag, absl::string_view* in) {
  if (in->size() < 2 || static_cast<uint8_t>((*in)[0]) != tag) return std::nullopt;
  const size_t length = static_cast<uint8_t>((*in)[1]);
  if (length >= 128 || in->size() < 2 + length) return std::nullopt;
  const absl::string_view body = in->substr(2, length);
  in->remove_prefix(2 + length);
  return body;
}

// `tag` is the only element of `in`.
std::optional<absl::string_view> OnlyElement(uint8_t tag, absl::string_view in) {
  const auto body = TakeElement(tag, &in);
  return in.empty() ? body : std::nullopt;
}

std::optional<int64_t> ParseMicroseconds(absl::string_view bytes) {
  if (bytes.empty() || bytes.size() > 3) return std::nullopt;
  const auto octet = [bytes](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  if (octet(0) >= 0x80) return std::nullopt;                                     // negative
  if (bytes.size() > 1 && octet(0) == 0 && octet(1) < 0x80) return std::nullopt;  // not minimal
  int64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) value = value << 8 | octet(i);
  if (value > kMaxMicroseconds) return std::nullopt;
  return value;
}

std::string Element(uint8_t tag, absl::string_view body) {
  return absl::StrCat(std::string(1, static_cast<char>(tag)),
                      std::string(1, static_cast<char>(body.size())), body);
}

std::string EncodeMicroseconds(int64_t value) {
  std::string bytes;
  do {
    bytes.insert(bytes.begin(), static_cast<char>(value & 0xff));
    value >>= 8;
  } while (value != 0);
  if (static_cast<uint8_t>(bytes[0]) >= 0x80) bytes.insert(bytes.begin(), '\0');
  return bytes;
}

}  // namespace

std::optional<absl::Time> ParseKerberosTime(absl::string_view text) {
  if (text.size() != 15 || text.back() != 'Z') return std::nullopt;
  for (const char c : text.substr(0, 14)) {
    if (!absl::ascii_isdigit(c)) return std::nullopt;
  }
  const auto number = [text](size_t at, size_t size) {
    int value = 0;
    return absl::SimpleAtoi(text.substr(at, size), &value) ? value : -1;
  };
  const absl::CivilSecond civil(number(0, 4), number(4, 2), number(6, 2), number(8, 2),
                                number(10, 2), number(12, 2));
  const bool normal = civil.month() == number(4, 2) && civil.day() == number(6, 2) &&
                      civil.hour() == number(8, 2) && civil.minute() == number(10, 2) &&
                      civil.second() == number(12, 2);
  if (!normal) return std::nullopt;  // 31 February and the like
  return absl::FromCivil(civil, absl::UTCTimeZone());
}

std::optional<absl::Time> DecodePreauthTimestamp(absl::string_view der) {
  if (der.size() > kMaxPreauthPlaintext) return std::nullopt;
  const auto sequence = OnlyElement(kSequence, der);
  if (!sequence) return std::nullopt;
  absl::string_view rest = *sequence;
  const auto field0 = TakeElement(kField0, &rest);
  if (!field0) return std::nullopt;
  const auto text = OnlyElement(kTime, *field0);
  if (!text) return std::nullopt;
  const auto time = ParseKerberosTime(*text);
  if (!time || rest.empty()) return time;
  const auto field1 = OnlyElement(kField1, rest);
  if (!field1) return std::nullopt;
  const auto integer = OnlyElement(kInteger, *field1);
  if (!integer) return std::nullopt;
  const auto microseconds = ParseMicroseconds(*integer);
  if (!microseconds) return std::nullopt;
  return *time + absl::Microseconds(*microseconds);
}

bool PreauthWindow::Holds(absl::string_view der) const {
  const auto stamp = DecodePreauthTimestamp(der);
  return stamp.has_value() && absl::AbsDuration(*stamp - time) <= skew;
}

std::string EncodePreauthTimestamp(absl::Time time) {
  const absl::Time second = absl::FromUnixSeconds(absl::ToUnixSeconds(time));
  const int64_t microseconds = absl::ToInt64Microseconds(time - second);
  const std::string text = absl::FormatTime("%Y%m%d%H%M%SZ", second, absl::UTCTimeZone());
  const std::string body =
      absl::StrCat(Element(kField0, Element(kTime, text)),
                   Element(kField1, Element(kInteger, EncodeMicroseconds(microseconds))));
  return Element(kSequence, body);
}

}  // namespace mpckdc
