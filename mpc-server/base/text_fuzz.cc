// SPDX-License-Identifier: Apache-2.0
//
// The readers that all others are made of: DER, one line of text.
#include <string>

#include "mpc-server/base/bytes.h"
#include "mpc-server/base/der.h"
#include "mpc-server/base/one_line.h"
#include "mpc-server/testing/fuzz.h"

namespace mpckdc {
namespace {

FuzzSeeds DerSeeds() {
  const std::string integer("\x02\x02\x12\x34", 4), text = "\x1b\x05" + std::string("alice");
  const std::string both = "\x30\x0b" + integer + text;
  return {integer,
          text,
          both,
          "\xa0\x0d" + both,
          "\x30\x81\x80" + std::string(128, '\x04'),
          std::string("\x30\x82\x01\x00", 4) + std::string(256, 'x'),
          std::string("\x02\x01\x00", 3),
          std::string("\x02\x08\x7f\xff\xff\xff\xff\xff\xff\xff", 10)};
}

// Takes what there is, in two ways; contents lie within, and the reader moves on or stays.
void Walk(absl::string_view in, int depth) {
  DerReader reader(in);
  size_t left = in.size();
  while (!reader.AtEnd()) {
    const auto tag = static_cast<uint8_t>(in[in.size() - left]);
    FUZZ_CHECK(reader.At(tag));
    DerReader again = reader, field = reader;
    const auto contents = reader.Take(tag);
    if (!contents) {
      FUZZ_CHECK(reader.At(tag));
      return;
    }
    FUZZ_CHECK(contents->data() >= in.data() && contents->end() <= in.end());
    const size_t behind = static_cast<size_t>(in.end() - contents->end());
    FUZZ_CHECK(behind + 2 <= left);
    if (!contents->empty()) {
      const auto inner = field.TakeField(tag, static_cast<uint8_t>((*contents)[0]));
      FUZZ_CHECK(inner.has_value() ==
                 OnlyDer(static_cast<uint8_t>((*contents)[0]), *contents).has_value());
    }
    static_cast<void>(again.TakeField(tag, der::kInteger));
    FUZZ_CHECK(contents->size() <= 8 || !DerInteger(*contents).has_value());
    if (depth < 8 && (tag & 0x20) != 0) Walk(*contents, depth + 1);
    left = behind;
  }
}

MPCKDC_FUZZ(der, DerSeeds) { Walk(AsText(in), 0); }

FuzzSeeds LineSeeds() {
  return {"alice",
          "a\nb\x1b[2J",
          "gr\xc3\xbc\xc3\x9f",
          "\xe2\x80\xa8\xe2\x80\xae",
          "\xf0\x9f\x99\x82",
          "\xff\xc0\x80",
          "\xed\xa0\x80",
          std::string("\0x", 2)};
}

// What becomes of it is one line, and stays what it is.
MPCKDC_FUZZ(one_line, LineSeeds) {
  const std::string line = OnOneLine(AsText(in));
  for (const char c : line) FUZZ_CHECK(static_cast<uint8_t>(c) >= 0x20 && c != 0x7f);
  FUZZ_CHECK(OnOneLine(line) == line);
}

}  // namespace
}  // namespace mpckdc
