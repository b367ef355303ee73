// SPDX-License-Identifier: Apache-2.0
// What somebody else says, on its way into a log or to a terminal: a line break in it would begin a
// line that this program never wrote, an escape sequence would take others away.
#ifndef MPC_SERVER_BASE_ONE_LINE_H_
#define MPC_SERVER_BASE_ONE_LINE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace mpckdc {

// Of UTF-8: control characters, line separators, what turns the direction of text, and bytes that
// are no character become \x and two digits each.
std::string OnOneLine(absl::string_view text);

}  // namespace mpckdc

#endif  // MPC_SERVER_BASE_ONE_LINE_H_
