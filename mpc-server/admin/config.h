// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_ADMIN_CONFIG_H_
#define MPC_SERVER_ADMIN_CONFIG_H_

#include <array>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "mpc-server/enroll/admin_client.h"

namespace mpckdc::admin {

inline constexpr char kDefaultConfigFile[] = "/etc/mpc-kdc/admin.toml";

// deploy/config/mpc-admin.toml explains each.
struct AdminConfig {
  std::string realm;
  int64_t cluster = 0;
  enroll::AdminIdentity identity;
  using Triple = std::array<std::string, 3>;  // "host:port", in any order
  std::vector<Triple> triples;
  std::vector<std::string> kdb_command = {"mpc-kdb"};  // words
  bool kdb_quote_arguments = false;  // true by default when the program is ssh
  std::string kinit = "kinit";
  absl::Duration timeout = absl::Seconds(10);  // for one call to one server
};

// Errors are "FILE:LINE: what"; an unknown key is one. Relative file names are taken from the
// directory of the configuration file.
absl::StatusOr<AdminConfig> LoadConfig(const std::string& file);
absl::StatusOr<AdminConfig> ParseConfig(absl::string_view text, const std::string& file);

}  // namespace mpckdc::admin

#endif  // MPC_SERVER_ADMIN_CONFIG_H_
