// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_ADMIN_SHELL_WORDS_H_
#define MPC_SERVER_ADMIN_SHELL_WORDS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mpckdc::admin {

// Splits as a POSIX shell does: blanks separate, '...', "..." and \ quote. Nothing is expanded.
absl::StatusOr<std::vector<std::string>> SplitShellWords(absl::string_view text);

// One word that a POSIX shell reads back as `word`.
std::string QuoteForShell(absl::string_view word);

}  // namespace mpckdc::admin

#endif  // MPC_SERVER_ADMIN_SHELL_WORDS_H_
