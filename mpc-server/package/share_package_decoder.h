// SPDX-License-Identifier: Apache-2.0
//
// Reads an opened share package (proto/admin.proto, SharePackage) into key records. Written by hand
// because the generated class keeps its fields, here shares, in ordinary memory; only KeyInfo, which
// is not secret, goes through it.
#ifndef MPC_SERVER_PACKAGE_SHARE_PACKAGE_DECODER_H_
#define MPC_SERVER_PACKAGE_SHARE_PACKAGE_DECODER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mpc-server/store/key_record.h"

namespace mpckdc {

struct SharePackageContents {
  uint32_t version = 0;
  std::string realm;
  uint32_t party = 0;
  uint64_t epoch = 0;
  std::string transaction;
  std::vector<KeyRecord> records;  // at least one
};

// InvalidArgument for anything but one well-formed package of version 1 or 2 for keys of `realm`.
// What the package is bound to is the caller's to compare.
absl::StatusOr<SharePackageContents> DecodeSharePackage(absl::Span<const uint8_t> plain,
                                                        absl::string_view realm);

}  // namespace mpckdc

#endif  // MPC_SERVER_PACKAGE_SHARE_PACKAGE_DECODER_H_
