// SPDX-License-Identifier: Apache-2.0
//
// Which handles the servers know a realm's keys by: from what `mpc-admin list --json` printed.
#ifndef INTEGRATION_TESTS_STORM_HANDLES_H_
#define INTEGRATION_TESTS_STORM_HANDLES_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kdc-plugin/client/mpc_client.h"

namespace mpckdc::storm {

using Handle = std::array<uint8_t, MPC_HANDLE_BYTES>;

struct RealmHandles {
  std::map<std::string, Handle> users;  // by principal with realm; of the highest version
  int32_t user_enctype = 0;
  Handle krbtgt{};
  int32_t krbtgt_enctype = 0;
};

// Keys of users of `enctype`. krbtgt's key is of the same enctype if that is one of GCM and it has
// one, else any of GCM.
absl::StatusOr<RealmHandles> ParseHandles(absl::string_view json, absl::string_view realm,
                                          int32_t enctype);
absl::StatusOr<RealmHandles> ReadHandles(const std::string& file, absl::string_view realm,
                                         int32_t enctype);

}  // namespace mpckdc::storm

#endif  // INTEGRATION_TESTS_STORM_HANDLES_H_
