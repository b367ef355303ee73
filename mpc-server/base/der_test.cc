// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/base/der.h"

#include <string>

#include "gtest/gtest.h"

namespace mpckdc {
namespace {

using std::string_literals::operator""s;

TEST(Der, ReadsElementsInTheirOrder) {
  const std::string bytes = "\x30\x00\x04\x02hi\x02\x01\x07"s;
  DerReader in(bytes);
  EXPECT_EQ(in.Take(der::kSequence), "");
  EXPECT_FALSE(in.Take(der::kInteger).has_value());
  EXPECT_EQ(in.Take(der::kOctets), "hi");
  EXPECT_EQ(in.Take(der::kInteger), "\x07");
  EXPECT_TRUE(in.AtEnd());
  EXPECT_FALSE(in.Take(der::kInteger).has_value());
}

TEST(Der, LongLengths) {
  const std::string text(200, 'x'), longer(70000, 'y');
  EXPECT_EQ(OnlyDer(der::kOctets, "\x04\x81\xc8" + text), text);
  EXPECT_EQ(OnlyDer(der::kOctets, "\x04\x83\x01\x11\x70"s + longer), longer);
}

TEST(Der, RefusesWhatIsNotDer) {
  const std::string text(200, 'x');
  for (const std::string& bad :
       {""s, "\x04"s, "\x04\x01"s, "\x04\x03hi"s,   // cut
        "\x04\x81\x05hello"s,                       // a longer length than needed
        "\x04\x82\x00\xc8"s + text, "\x04\x80hi\x00\x00"s,  // indefinite
        "\x04\x84\x00\x00\x00\xc8"s + text, "\x04\xff"s + text, "\x04\x02hi!"s}) {
    EXPECT_FALSE(OnlyDer(der::kOctets, bad).has_value()) << bad.size();
  }
  EXPECT_FALSE(OnlyDer(0x1f, "\x1f\x01x"s).has_value());
}

TEST(Der, FieldsHoldOneElement) {
  const std::string bytes = "\xa0\x03\x02\x01\x05\xa1\x06\x02\x01\x05\x02\x01\x06"s;
  DerReader in(bytes);
  EXPECT_FALSE(in.TakeField(der::Field(0), der::kOctets).has_value());
  EXPECT_EQ(in.TakeField(der::Field(0), der::kInteger), "\x05");
  EXPECT_FALSE(in.TakeField(der::Field(1), der::kInteger).has_value());
}

TEST(Der, Integers) {
  EXPECT_EQ(DerInteger("\x00"s), 0);
  EXPECT_EQ(DerInteger("\x7f"s), 127);
  EXPECT_EQ(DerInteger("\x00\x80"s), 128);
  EXPECT_EQ(DerInteger("\x80"s), -128);
  EXPECT_EQ(DerInteger("\xff\x7f"s), -129);
  EXPECT_EQ(DerInteger("\x00\xff\xff\xff\xff"s), 0xffffffff);
  for (const std::string& bad :
       {""s, "\x00\x01"s, "\xff\xff"s, "\x00\x80\x00\x00\x00\x00\x00\x00\x00"s}) {
    EXPECT_FALSE(DerInteger(bad).has_value());
  }
}

}  // namespace
}  // namespace mpckdc
