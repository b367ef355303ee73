// SPDX-License-Identifier: Apache-2.0
//
// What tests enrol, and who signs it.
#ifndef MPC_SERVER_TESTING_ENROLMENT_H_
#define MPC_SERVER_TESTING_ENROLMENT_H_

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "mpc-server/base/bytes.h"
#include "mpc-server/enroll/admin_client.h"
#include "mpc-server/key/enctype.h"
#include "mpc-server/testing/keytab_bytes.h"

namespace mpckdc::enroll {

// A certificate authority made by deploy/ca/mpc-ca in a temporary directory.
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

inline v1::KeyInfo TestKeyInfo(int32_t enctype = kEnctypeAes256Gcm) {
  v1::KeyInfo info;
  info.set_handle(RandomIdentifier());
  info.set_principal("alice@EXAMPLE.COM");
  info.set_kvno(2);
  info.set_enctype(enctype);
  info.set_salt_type(0);
  info.set_salt("EXAMPLE.COMalice");
  info.set_key_class(v1::KEY_CLASS_USER);
  info.set_gate(v1::GATE_TIMESTAMP);
  return info;
}

inline const PackageSigner& TestSigner() {
  static const AdminIdentity identity = TestAuthority::Shared().Issue("admin", "signer");
  static const PackageSigner signer =
      *PackageSigner::FromPemFiles(identity.certificate_file, identity.key_file);
  return signer;
}

}  // namespace mpckdc::enroll

#endif  // MPC_SERVER_TESTING_ENROLMENT_H_
