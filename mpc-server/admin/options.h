// SPDX-License-Identifier: Apache-2.0
//
// The command line of mpc-admin.
#ifndef MPC_SERVER_ADMIN_OPTIONS_H_
#define MPC_SERVER_ADMIN_OPTIONS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "proto/admin.pb.h"

namespace mpckdc::admin {

struct Options {
  std::optional<std::string> answer;  // to --help and the like: print it, do nothing else
  std::string command;                // "enroll", "audit verify"
  std::vector<std::string> operands;
  std::string config;  // empty: the default
  bool no_wait = false;  // refresh
  bool json = false, quiet = false;
  bool all = false, old = false;
  bool password_stdin = false, replace = false, delete_old = false, no_create = false;
  bool force = false, staged = false, fix = false, kadmin = false;
  bool now = false, yes = false, collect = false, keep = false;  // delete, gc
  bool finish = false, show_state = false;                       // rotate-krbtgt
  bool dry_run = false, rollback = false, commit = false, scrub = false;  // import-realm
  std::string dump, stash, source, scratch;
  std::optional<absl::Duration> if_older;
  double interval = 2;                                           // top, seconds
  size_t count = 0;                                              // top; 0: until it is interrupted
  std::string keytab, kinit;
  std::string head, principal, service, request;  // audit
  absl::Time since = absl::InfinitePast(), until = absl::InfiniteFuture();
  std::vector<int32_t> enctypes;
  std::optional<v1::Gate> gate;
  std::optional<v1::KeyClass> key_class;
};

// Arguments without the program's name.
absl::StatusOr<Options> ParseOptions(absl::Span<const std::string> arguments);

}  // namespace mpckdc::admin

#endif  // MPC_SERVER_ADMIN_OPTIONS_H_
