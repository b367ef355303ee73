// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/base/one_line.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace mpckdc {

std::string OnOneLine(absl::string_view text) {
  std::string line;
  for (const char c : text) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) {
      absl::StrAppend(&line, "\\x", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    } else {
      line += c;
    }
  }
  return line;
}

}  // namespace mpckdc
