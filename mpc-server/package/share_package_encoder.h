// SPDX-License-Identifier: Apache-2.0
//
// The bytes of a share package (proto/admin.proto, SharePackage). Written here rather than by the
// generated class because that one keeps the shares in ordinary memory. The same bytes as the
// generated class's (a test compares).
#ifndef MPC_SERVER_PACKAGE_SHARE_PACKAGE_ENCODER_H_
#define MPC_SERVER_PACKAGE_SHARE_PACKAGE_ENCODER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/package/share_split.h"
#include "proto/admin.pb.h"

namespace mpckdc {

// The versions of SharePackage.
inline constexpr uint32_t kOneKeyVersion = 1;
inline constexpr uint32_t kManyKeysVersion = 2;

}  // namespace mpckdc

namespace mpckdc::enroll {

struct UsageShareParts {
  uint32_t usage;
  SplitShare round_keys;
  SplitShare h;           // gcm
  SplitShare mac_states;  // 17 to 20
};

struct KeyShareParts {
  const v1::KeyInfo* info;
  SplitShare base;
  std::vector<UsageShareParts> usages;
};

// The fields of proto/admin.proto's SharePackage, with the secret ones in locked memory.
struct SharePackageParts {
  std::string realm;
  int party;
  uint64_t epoch;
  std::string transaction;
  std::vector<KeyShareParts> keys;  // one: version 1, which every server reads
};

SecretBytes EncodeSharePackage(const SharePackageParts& parts);

}  // namespace mpckdc::enroll

#endif  // MPC_SERVER_PACKAGE_SHARE_PACKAGE_ENCODER_H_
