// SPDX-License-Identifier: Apache-2.0
//
// Who logs in: users from a pattern with one password, from a keytab, or from a CSV with passwords.
// Their names are parsed and their keys are made here, once, before the first request.
#ifndef INTEGRATION_TESTS_STORM_USERS_H_
#define INTEGRATION_TESTS_STORM_USERS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "integration-tests/storm/messages.h"
#include "integration-tests/storm/options.h"

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

}  // namespace mpckdc::storm

#endif  // INTEGRATION_TESTS_STORM_USERS_H_
