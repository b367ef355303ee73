// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_ADMIN_PROCESS_H_
#define MPC_SERVER_ADMIN_PROCESS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace mpckdc::admin {

struct ProcessResult {
  int exit_code = -1;  // -1 when a signal ended it
  int signal = 0;
  std::string output;
  std::string errors;
};

struct ProcessRequest {
  std::vector<std::string> arguments;    // the program, found along PATH, and its arguments
  absl::Span<const uint8_t> input;       // for its standard input
  std::vector<std::string> environment;  // "NAME=value", added to ours
  absl::Duration timeout = absl::Seconds(60);
  bool undisturbed = false;  // Ctrl-C at the terminal, which reaches it too, does not end it
};

// Runs a program to its end, without a shell. NotFound when it cannot be started, DeadlineExceeded
// (after killing it) when it takes too long, ResourceExhausted when it writes too much.
absl::StatusOr<ProcessResult> RunProcess(const ProcessRequest& request);

// Splits as a POSIX shell does: blanks separate, '...', "..." and \ quote. Nothing is expanded.
absl::StatusOr<std::vector<std::string>> SplitShellWords(absl::string_view text);

// One word that a POSIX shell reads back as `word`.
std::string QuoteForShell(absl::string_view word);

}  // namespace mpckdc::admin

#endif  // MPC_SERVER_ADMIN_PROCESS_H_
