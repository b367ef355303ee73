// SPDX-License-Identifier: Apache-2.0
//
// What a person at the terminal types, passwords and Ctrl-C; how wide it is.
#ifndef MPC_SERVER_ADMIN_TERMINAL_H_
#define MPC_SERVER_ADMIN_TERMINAL_H_

#include <signal.h>

#include <string>

#include "absl/status/statusor.h"
#include "mpc-server/base/secret.h"

namespace mpckdc::admin {

// Longer passwords are refused.
inline constexpr size_t kMaxPasswordBytes = 1024;

// The first line of a descriptor, without its end, read byte by byte into locked memory.
absl::StatusOr<SecretBytes> ReadPasswordLine(int fd);

// Asks on the terminal with echo off; with `again`, twice, and the answers must be the same.
absl::StatusOr<SecretBytes> AskPassword(const std::string& prompt, bool again);

// Asks on the terminal; any answer but "yes" is a no.
absl::StatusOr<bool> AskYes(const std::string& question);

// Of the terminal that standard output is; 0: it is none, or does not say.
size_t TerminalColumns();

// While it lives, the first Ctrl-C (SIGINT) or SIGTERM only asks to stop, so that a long command
// can end what it has begun; the second one ends the process as always. One at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  bool requested() const;

 private:
  struct sigaction old_interrupt_;
  struct sigaction old_terminate_;
};

}  // namespace mpckdc::admin

#endif  // MPC_SERVER_ADMIN_TERMINAL_H_
