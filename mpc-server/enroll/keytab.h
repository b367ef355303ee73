// SPDX-License-Identifier: Apache-2.0
//
// MIT keytab files, format 0x0502 (big-endian). Every length is checked against what is left of the
// entry and of the file.
#ifndef MPC_SERVER_ENROLL_KEYTAB_H_
#define MPC_SERVER_ENROLL_KEYTAB_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mpc-server/base/secret.h"

namespace mpckdc::enroll {

struct KeytabEntry {
  std::string principal;  // unparsed with realm, quoted as krb5_unparse_name does
  uint32_t kvno = 0;
  int32_t enctype = 0;
  SecretBytes key;
};

absl::StatusOr<std::vector<KeytabEntry>> ParseKeytab(absl::Span<const uint8_t> bytes);
// At most 64 MiB. Errors name the file.
absl::StatusOr<std::vector<KeytabEntry>> ReadKeytab(const std::string& file);

struct KeytabKeys {
  uint32_t kvno = 0;
  std::map<int32_t, SecretBytes> keys;  // by the enctype that it can be enrolled as
};

// What can be enrolled: per principal the keys of the highest version, of the enctypes that are held
// on shares. Keys of 17 and 18 are also those of aes128-gcm and aes256-gcm, which have the same base
// keys. Two different keys for one enctype are an error.
absl::StatusOr<std::map<std::string, KeytabKeys>> EnrollableKeys(std::vector<KeytabEntry> entries);

}  // namespace mpckdc::enroll

#endif  // MPC_SERVER_ENROLL_KEYTAB_H_
