// SPDX-License-Identifier: Apache-2.0
//
// The command line. login-storm(8) says what each option means.
#ifndef INTEGRATION_TESTS_STORM_OPTIONS_H_
#define INTEGRATION_TESTS_STORM_OPTIONS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "integration-tests/storm/limits.h"
#include "mpc-server/base/secret.h"

namespace mpckdc::storm {

// Whatever goes wrong in this program, its user is told in words and nobody else asks what it was.
template <class... Parts>
absl::Status Bad(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// --pid NAME=PID; several processes may have one name (a KDC's workers), their times are added.
struct WatchedProcess {
  std::string name;
  pid_t pid = 0;
};

enum class Mode { kLogins, kJobs };

struct Options {
  Mode mode = Mode::kLogins;
  std::string answer;        // to --help and the like: print it and end
  // Whom to load.
  std::string kdc;
  std::string realm;
  bool tcp = false;
  bool i_own_this_kdc = false;
  // Who logs in.
  std::string users, keytab, csv;
  size_t first = 0, number = 0;
  SecretBytes password;
  bool has_password = false;
  int32_t enctype = 0;
  double wrong_share = 0;
  // What a login is.
  bool two_step = false;
  bool no_enc_pa_rep = false;
  int tgs = 0;
  std::string service;
  std::vector<int32_t> session_enctypes;
  // How many, how fast, how long.
  size_t in_flight = 0;      // 0: not said
  double rate = 0;           // 0: closed loop
  double ramp_to = 0;        // 0: no ramp
  int ramp_steps = 10;
  absl::Duration duration = absl::Seconds(10);
  int64_t count = 0;
  absl::Duration warm_up;
  int threads = 1;
  uint64_t seed = 1;
  absl::Duration resend_after = limits::kDefaultResendAfter;
  int resends = limits::kDefaultResends;
  bool again_when_unavailable = false;
  double check = 1;          // share of replies that are decrypted
  absl::Duration knee_p99 = absl::Milliseconds(250);
  // What comes out.
  std::vector<WatchedProcess> processes;
  std::vector<std::string> fail_if;
  std::string json;          // file, "-" for standard output
  std::string log;           // file: a line per login
  std::string plot;          // file, .svg or .png
  std::string plot_script;   // what draws it
  // login-storm jobs.
  std::vector<std::string> servers;
  std::string ca, certificate, key;
  std::string handles;       // file: what `mpc-admin list --json` printed
  int clients = 1;
  uint32_t ticket_bytes = limits::kDefaultTicketBytes;
  uint32_t reply_bytes = limits::kDefaultReplyBytes;
  absl::Duration timeout = absl::Seconds(2);
};

// Errors say what is wrong and what would be right.
absl::StatusOr<Options> ParseOptions(absl::Span<const std::string> arguments);

}  // namespace mpckdc::storm

#endif  // INTEGRATION_TESTS_STORM_OPTIONS_H_
