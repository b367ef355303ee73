// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_ADMIN_PASSWORD_H_
#define MPC_SERVER_ADMIN_PASSWORD_H_

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

}  // namespace mpckdc::admin

#endif  // MPC_SERVER_ADMIN_PASSWORD_H_
