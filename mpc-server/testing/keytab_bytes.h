// SPDX-License-Identifier: Apache-2.0
//
// Keytabs, as enroll/keytab.cc describes them.
#ifndef MPC_SERVER_TESTING_KEYTAB_BYTES_H_
#define MPC_SERVER_TESTING_KEYTAB_BYTES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "mpc-server/base/bytes.h"

namespace mpckdc::enroll {

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

#endif  // MPC_SERVER_TESTING_KEYTAB_BYTES_H_
