// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/base/one_line.h"

#include "gtest/gtest.h"

namespace mpckdc {
namespace {

TEST(OneLineTest, TextStaysAsItIs) {
  for (const char* text :
       {"", "P1: bye", "m\u00fcller@R", "\u6771\u4eac", "\U0001F511", "a\\x1b"}) {
    EXPECT_EQ(OnOneLine(text), text);
  }
}

TEST(OneLineTest, WhatBeginsALineOrAnEscapeSequenceIsShown) {
  EXPECT_EQ(OnOneLine("a\nb\r\t\033[2K\x7f"), "a\\x0ab\\x0d\\x09\\x1b[2K\\x7f");
  EXPECT_EQ(OnOneLine(absl::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(OnOneLine("\u0085\u009b2K"), "\\xc2\\x85\\xc2\\x9b2K");
  EXPECT_EQ(OnOneLine("\u2028\u2029\u202e\u2066"),
            "\\xe2\\x80\\xa8\\xe2\\x80\\xa9\\xe2\\x80\\xae\\xe2\\x81\\xa6");
}

// A C1 byte by itself, a character cut short, overlong ones, a surrogate, one beyond the last.
TEST(OneLineTest, WhatIsNoCharacterIsShown) {
  EXPECT_EQ(OnOneLine("\x9b\x32K"), "\\x9b2K");
  EXPECT_EQ(OnOneLine("\xe2\x80"), "\\xe2\\x80");
  EXPECT_EQ(OnOneLine("\xc0\x8a \xe0\x80\x8a \xf0\x80\x80\x8a"),
            "\\xc0\\x8a \\xe0\\x80\\x8a \\xf0\\x80\\x80\\x8a");
  EXPECT_EQ(OnOneLine("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(OnOneLine("\xf4\x90\x80\x80\xff"), "\\xf4\\x90\\x80\\x80\\xff");
}

}  // namespace
}  // namespace mpckdc
