// SPDX-License-Identifier: Apache-2.0
//
// What tests enrol, and who signs it.
#ifndef MPC_SERVER_TESTING_ENROLMENT_H_
#define MPC_SERVER_TESTING_ENROLMENT_H_

#include <string>
#include <vector>

#include "mpc-server/base/bytes.h"
#include "mpc-server/key/enctype.h"
#include "mpc-server/package/package.h"
#include "mpc-server/testing/identity.h"

namespace mpckdc::enroll {

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

// ---- Keytabs, as enroll/keytab.cc describes them ----

inline std::string Be(uint64_t value, size_t width) {
  std::string out;
  AppendUint(out, value, width);
  return out;
}

inline std::string Counted(const std::string& text) { return Be(text.size(), 2) + text; }

// A principal of EXAMPLE.COM.
inline std::string KeytabBytes(const std::vector<std::string>& components, uint32_t kvno,
                               int enctype, const std::string& key, bool long_kvno = true) {
  std::string body = Be(components.size(), 2) + Counted("EXAMPLE.COM");
  for (const std::string& component : components) body += Counted(component);
  body += Be(1, 4) + Be(0, 4) + Be(kvno, 1) + Be(static_cast<uint32_t>(enctype), 2) + Counted(key);
  if (long_kvno) body += Be(kvno, 4);
  return Be(body.size(), 4) + body;
}

}  // namespace mpckdc::enroll

#endif  // MPC_SERVER_TESTING_ENROLMENT_H_
