// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_ADMIN_EXIT_CODE_H_
#define MPC_SERVER_ADMIN_EXIT_CODE_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mpckdc::admin {

// What mpc-admin's exit status means; the manual page has the same table.
enum class ExitCode {
  kOk = 0,
  kFindings = 1,       // it ran, and found something wrong (verify, doctor, test-login)
  kUsage = 2,          // command line, configuration, certificate or input file
  kUnavailable = 3,    // a server, the KDB command or the KDC did not answer; nothing was changed
  kRefused = 4,        // exists already, not there, not allowed
  kInconsistent = 5,   // servers or KDB disagree, or a change was not undone: run doctor
  kWrongPassword = 6,  // test-login only
};

ExitCode ExitCodeOf(const absl::Status& status);

// Attaches what the administrator should do next; a text given earlier stays.
absl::Status Advise(absl::Status status, absl::string_view next);
template <class T>
absl::StatusOr<T> Advise(absl::StatusOr<T> result, absl::string_view next) {
  return result.ok() ? std::move(result) : Advise(result.status(), next);
}
// The attached text, or one that fits the code.
std::string AdviceOf(const absl::Status& status);

}  // namespace mpckdc::admin

#endif  // MPC_SERVER_ADMIN_EXIT_CODE_H_
