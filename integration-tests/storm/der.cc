// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/storm/der.h"

#include <cstring>

namespace mpckdc::storm {
namespace {

constexpr size_t kTimeLength = 15;  // YYYYMMDDHHMMSSZ

struct Civil {
  int year, month, day, hour, minute, second;
};

// Days since 1970 to a date and back, by the 400-year cycle with years that begin in March (so a
// leap day is a year's last). gmtime() and its lock cost more than the rest of a request.
Civil ToCivil(uint32_t seconds) {
  const int64_t days = seconds / 86400 + 719468;  // since 0000-03-01
  const int64_t era = days / 146097;
  const int64_t day_of_era = days % 146097;
  const int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t shifted_month = (5 * day_of_year + 2) / 153;  // 0 is March
  Civil c;
  c.day = static_cast<int>(day_of_year - (153 * shifted_month + 2) / 5 + 1);
  c.month = static_cast<int>(shifted_month < 10 ? shifted_month + 3 : shifted_month - 9);
  c.year = static_cast<int>(year_of_era + era * 400 + (c.month <= 2 ? 1 : 0));
  const int rest = static_cast<int>(seconds % 86400);
  c.hour = rest / 3600;
  c.minute = rest / 60 % 60;
  c.second = rest % 60;
  return c;
}

int64_t FromCivil(const Civil& c) {
  const int64_t year = c.month <= 2 ? c.year - 1 : c.year;
  const int64_t era = year / 400;
  const int64_t year_of_era = year % 400;
  const int64_t shifted_month = c.month > 2 ? c.month - 3 : c.month + 9;
  const int64_t day_of_year = (153 * shifted_month + 2) / 5 + c.day - 1;
  const int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  const int64_t days = era * 146097 + day_of_era - 719468;
  return days * 86400 + c.hour * 3600 + c.minute * 60 + c.second;
}

void PutDecimal(uint8_t* at, int digits, int value) {
  for (int i = digits - 1; i >= 0; --i, value /= 10) at[i] = static_cast<uint8_t>('0' + value % 10);
}

}  // namespace

void DerWriter::Byte(uint8_t byte) {
  if (at_ == 0) {
    ok_ = false;
    return;
  }
  buffer_[--at_] = byte;
}

void DerWriter::Raw(Bytes bytes) {
  if (bytes.size() > at_) {
    ok_ = false;
    return;
  }
  at_ -= bytes.size();
  if (!bytes.empty()) memcpy(buffer_.data() + at_, bytes.data(), bytes.size());
}

void DerWriter::Header(uint8_t tag, size_t length) {
  if (length < 0x80) {
    Byte(static_cast<uint8_t>(length));
  } else {
    uint8_t bytes = 0;
    for (size_t rest = length; rest != 0; rest >>= 8, ++bytes) Byte(static_cast<uint8_t>(rest));
    Byte(static_cast<uint8_t>(0x80 | bytes));
  }
  Byte(tag);
}

void DerWriter::Element(uint8_t tag, Bytes contents) {
  Raw(contents);
  Header(tag, contents.size());
}

void DerWriter::Integer(int64_t value) {
  const size_t end = at_;
  // Until what is left is the sign alone, and the highest bit written says the same sign.
  int64_t rest = value;
  uint8_t written;
  do {
    written = static_cast<uint8_t>(rest);
    Byte(written);
    rest >>= 8;
  } while (rest != (written & 0x80 ? -1 : 0));
  Header(kDerInteger, end - at_);
}

void DerWriter::GeneralString(absl::string_view text) {
  Element(kDerGeneralString, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

void DerWriter::Flags(uint32_t flags) {
  const uint8_t contents[5] = {0, static_cast<uint8_t>(flags >> 24),
                               static_cast<uint8_t>(flags >> 16), static_cast<uint8_t>(flags >> 8),
                               static_cast<uint8_t>(flags)};
  Element(kDerBitString, contents);
}

void DerWriter::Time(uint32_t seconds) {
  const Civil c = ToCivil(seconds);
  uint8_t text[kTimeLength];
  PutDecimal(text, 4, c.year);
  PutDecimal(text + 4, 2, c.month);
  PutDecimal(text + 6, 2, c.day);
  PutDecimal(text + 8, 2, c.hour);
  PutDecimal(text + 10, 2, c.minute);
  PutDecimal(text + 12, 2, c.second);
  text[14] = 'Z';
  Element(kDerTime, text);
}

void DerReader::Fail() {
  ok_ = false;
  rest_ = {};
}

std::optional<DerReader::Element> DerReader::Look() const {
  if (!ok_ || rest_.size() < 2 || (rest_[0] & 0x1f) == 0x1f) return std::nullopt;
  Element e = {rest_[0], 2, rest_[1]};
  if (e.length >= 0x80) {
    const size_t count = e.length & 0x7f;
    if (count == 0 || count > 4 || rest_.size() < 2 + count) return std::nullopt;
    e.length = 0;
    for (size_t i = 0; i < count; ++i) e.length = e.length << 8 | rest_[2 + i];
    e.header += count;
    // DER: as short as can be.
    if (e.length < 0x80 || rest_[2] == 0) return std::nullopt;
  }
  if (e.length > rest_.size() - e.header) return std::nullopt;
  return e;
}

DerReader DerReader::Enter(uint8_t tag) {
  const std::optional<Element> e = Look();
  if (!e.has_value() || e->tag != tag) {
    Fail();
    return DerReader();
  }
  const DerReader contents(rest_.subspan(e->header, e->length));
  rest_.remove_prefix(e->header + e->length);
  return contents;
}

std::optional<DerReader> DerReader::EnterIf(uint8_t tag) {
  if (NextTag() != tag) return std::nullopt;
  return Enter(tag);
}

Bytes DerReader::Whole(uint8_t tag) {
  const std::optional<Element> e = Look();
  if (!e.has_value() || e->tag != tag) {
    Fail();
    return {};
  }
  const Bytes whole = rest_.subspan(0, e->header + e->length);
  rest_.remove_prefix(whole.size());
  return whole;
}

void DerReader::Skip() { Whole(NextTag()); }

int64_t DerReader::Integer() {
  const Bytes contents = Enter(kDerInteger).rest();
  if (!ok_ || contents.empty() || contents.size() > 8) {
    Fail();
    return 0;
  }
  int64_t value = contents[0] & 0x80 ? -1 : 0;
  for (const uint8_t byte : contents) {
    value = static_cast<int64_t>(static_cast<uint64_t>(value) << 8 | byte);
  }
  return value;
}

absl::string_view DerReader::GeneralString() {
  const Bytes contents = Enter(kDerGeneralString).rest();
  return {reinterpret_cast<const char*>(contents.data()), contents.size()};
}

uint32_t DerReader::Flags() {
  const Bytes contents = Enter(kDerBitString).rest();
  if (!ok_ || contents.size() < 5) {
    Fail();
    return 0;
  }
  return static_cast<uint32_t>(contents[1]) << 24 | static_cast<uint32_t>(contents[2]) << 16 |
         static_cast<uint32_t>(contents[3]) << 8 | contents[4];
}

uint32_t DerReader::Time() {
  const Bytes text = Enter(kDerTime).rest();
  if (!ok_ || text.size() != kTimeLength || text[14] != 'Z') {
    Fail();
    return 0;
  }
  int pair[7];
  for (int i = 0; i < 7; ++i) {
    const int high = text[2 * i] - '0', low = text[2 * i + 1] - '0';
    if (high < 0 || high > 9 || low < 0 || low > 9) {
      Fail();
      return 0;
    }
    pair[i] = 10 * high + low;
  }
  const int64_t seconds =
      FromCivil({pair[0] * 100 + pair[1], pair[2], pair[3], pair[4], pair[5], pair[6]});
  if (seconds < 0 || seconds > UINT32_MAX) {
    Fail();
    return 0;
  }
  return static_cast<uint32_t>(seconds);
}

}  // namespace mpckdc::storm
