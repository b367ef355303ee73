// SPDX-License-Identifier: Apache-2.0
//
// Who logs in: users from a pattern with one password, from a keytab, or from a CSV with passwords.
// Their names are parsed and their keys are made here, once, before the first request. And which
// handles the servers know a realm's keys by: from what `mpc-admin list --json` printed.
#ifndef INTEGRATION_TESTS_STORM_USERS_H_
#define INTEGRATION_TESTS_STORM_USERS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "integration-tests/storm/kerberos.h"
#include "integration-tests/storm/options.h"
#include "kdc-plugin/client/mpc_client.h"

namespace mpckdc::storm {

struct User {
  std::string principal;  // without realm, as in the list
  Principal name;
  Key key;
};

// Called now and then from one thread, with how many keys are made.
using UserProgress = std::function<void(size_t done, size_t all)>;

// From --users, --keytab or --csv.
absl::StatusOr<std::vector<User>> MakeUsers(const Options& options, const UserProgress& progress);

// "user%06d" with 42: "user000042". The pattern has exactly one %d or %0Nd; "%%" is a percent sign.
absl::StatusOr<std::string> ExpandPattern(absl::string_view pattern, size_t number);

// One line of the CSV: everything after the first comma is the password.
struct CsvLine {
  std::string name;
  SecretBytes password;
};
absl::StatusOr<std::vector<CsvLine>> ParseCsv(absl::string_view text);

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

#endif  // INTEGRATION_TESTS_STORM_USERS_H_
