// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/storm/der.h"

#include <time.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"

namespace mpckdc::storm {
namespace {

template <class Write>
std::string Hex(Write write) {
  std::vector<uint8_t> buffer(70000);
  DerWriter w(absl::MakeSpan(buffer));
  write(w);
  EXPECT_TRUE(w.ok());
  const Bytes der = w.Written();
  return absl::BytesToHexString({reinterpret_cast<const char*>(der.data()), der.size()});
}

std::vector<uint8_t> FromHex(absl::string_view hex) {
  const std::string bytes = absl::HexStringToBytes(hex);
  return {bytes.begin(), bytes.end()};
}

// X.690 section 8.3: two's complement, as few bytes as can be.
TEST(DerTest, Integers) {
  const std::pair<int64_t, const char*> cases[] = {
      {0, "020100"},         {1, "020101"},          {127, "02017f"},
      {128, "02020080"},     {255, "020200ff"},      {256, "02020100"},
      {-1, "0201ff"},        {-128, "020180"},       {-129, "0202ff7f"},
      {-24001, "0202a23f"},  {2147483647, "02047fffffff"},
      {INT64_MIN, "02088000000000000000"}};
  for (const auto& [value, hex] : cases) {
    EXPECT_EQ(Hex([&](DerWriter& w) { w.Integer(value); }), hex);
    const std::vector<uint8_t> der = FromHex(hex);
    DerReader r(der);
    EXPECT_EQ(r.Integer(), value);
    EXPECT_TRUE(r.Done());
  }
}

TEST(DerTest, LengthsOfOneToThreeBytes) {
  for (const size_t size : {0, 1, 127, 128, 255, 256, 65535, 65536}) {
    std::vector<uint8_t> buffer(size + 16);
    DerWriter w(absl::MakeSpan(buffer));
    const std::vector<uint8_t> contents(size, 0x5a);
    w.OctetString(contents);
    ASSERT_TRUE(w.ok());
    EXPECT_EQ(w.Written().size(), size + (size < 128 ? 2 : size < 256 ? 3 : size < 65536 ? 4 : 5));
    DerReader r(w.Written());
    EXPECT_EQ(r.OctetString().size(), size);
    EXPECT_TRUE(r.Done());
  }
}

TEST(DerTest, WritesBackToFront) {
  EXPECT_EQ(Hex([](DerWriter& w) {
              w.In(kDerSequence, [&] {
                w.In(DerContext(1), [&] { w.GeneralString("ab"); });
                w.In(DerContext(0), [&] { w.Integer(5); });
              });
            }),
            "300ba003020105a1041b026162");
}

// Against the C library's calendar, at the edges and at random.
TEST(DerTest, TimesAreTheCalendars) {
  std::mt19937_64 random(1);
  std::vector<uint32_t> times = {0, 1, 951782399, 951782400, 1709164800, 1709251199, 4102444799,
                                 UINT32_MAX};
  for (int i = 0; i < 20000; ++i) times.push_back(static_cast<uint32_t>(random()));
  for (const uint32_t seconds : times) {
    const time_t t = seconds;
    tm broken = {};
    gmtime_r(&t, &broken);
    char text[32];
    strftime(text, sizeof text, "%Y%m%d%H%M%SZ", &broken);
    std::vector<uint8_t> buffer(32);
    DerWriter w(absl::MakeSpan(buffer));
    w.Time(seconds);
    const Bytes der = w.Written();
    ASSERT_EQ(std::string(der.begin() + 2, der.end()), text);
    DerReader r(der);
    ASSERT_EQ(r.Time(), seconds);
  }
}

TEST(DerTest, SmallBufferIsSeen) {
  uint8_t buffer[5];
  DerWriter w(absl::MakeSpan(buffer));
  w.GeneralString("1234");
  EXPECT_FALSE(w.ok());
}

// After the first thing that is wrong a reader gives nothing, and says so.
TEST(DerTest, BadInputEndsTheReader) {
  const char* const bad[] = {"",         "02",       "0201",     "020200",   "0280",
                             "02810105", "0282000105", "028480000000", "1f0100", "0309", "0200",
                             "0209000000000000000001"};
  for (const char* hex : bad) {
    const std::vector<uint8_t> der = FromHex(hex);
    DerReader r(der);
    EXPECT_EQ(r.Integer(), 0) << hex;
    EXPECT_FALSE(r.ok()) << hex;
    EXPECT_FALSE(r.Done()) << hex;
    EXPECT_TRUE(r.OctetString().empty()) << hex;
  }
}

TEST(DerTest, AReaderNeverLeavesItsBytes) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 200000; ++i) {
    std::vector<uint8_t> der(random() % 24);
    for (uint8_t& byte : der) byte = static_cast<uint8_t>(random() % 4 == 0 ? random() : 0x30);
    DerReader r(der);
    while (r.ok() && !r.empty()) {
      DerReader inner = r.Enter(r.NextTag());
      const Bytes rest = inner.rest();
      if (rest.empty()) continue;
      ASSERT_GE(rest.data(), der.data());
      ASSERT_LE(rest.data() + rest.size(), der.data() + der.size());
    }
  }
}

TEST(DerTest, OtherTagThanAskedFor) {
  const std::vector<uint8_t> der = FromHex("020105");
  DerReader r(der);
  EXPECT_FALSE(r.EnterIf(kDerOctetString).has_value());
  EXPECT_TRUE(r.ok());
  EXPECT_TRUE(r.OctetString().empty());
  EXPECT_FALSE(r.ok());
}

TEST(DerTest, BadTimes) {
  for (const char* text : {"20260101000000", "2026010100000zZ", "19691231235959Z"}) {
    std::vector<uint8_t> der = {kDerTime, static_cast<uint8_t>(strlen(text))};
    der.insert(der.end(), text, text + strlen(text));
    DerReader r(der);
    EXPECT_EQ(r.Time(), 0u) << text;
    EXPECT_FALSE(r.ok()) << text;
  }
}

}  // namespace
}  // namespace mpckdc::storm
