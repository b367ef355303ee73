// SPDX-License-Identifier: Apache-2.0
//
// A certificate authority made by deploy/ca/mpc-ca in a temporary directory.
#ifndef MPC_SERVER_TESTING_IDENTITY_H_
#define MPC_SERVER_TESTING_IDENTITY_H_

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "mpc-server/enroll/admin_client.h"

namespace mpckdc::enroll {

class TestAuthority {
 public:
  // One for the whole program: making one takes time.
  static TestAuthority& Shared() {
    static TestAuthority authority;
    return authority;
  }

  TestAuthority() {
    directory_ = std::filesystem::temp_directory_path() / "mpckdc-ca-XXXXXX";
    if (mkdtemp(directory_.data()) == nullptr) std::abort();
    Run("init " + directory_);
  }
  ~TestAuthority() { std::filesystem::remove_all(directory_); }

  AdminIdentity Issue(const std::string& role, const std::string& name,
                      const std::string& options = "") {
    Run("issue " + directory_ + " --realm EXAMPLE.COM --role " + role + " --name " + name + " " +
        options);
    const std::string base = directory_ + "/" + role + "-" + name;
    return {base + ".pem", base + ".key", directory_ + "/ca.pem"};
  }

  const std::string& directory() const { return directory_; }

 private:
  static void Run(const std::string& arguments) {
    const std::string command = std::string(MPCKDC_CA_TOOL) + " " + arguments + " >/dev/null";
    if (std::system(command.c_str()) != 0) std::abort();
  }

  std::string directory_;
};

}  // namespace mpckdc::enroll

#endif  // MPC_SERVER_TESTING_IDENTITY_H_
