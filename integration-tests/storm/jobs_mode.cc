// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/storm/jobs_mode.h"

#include <unistd.h>

#include <cstdio>

namespace mpckdc::storm {

absl::StatusOr<ExitStatus> RunJobs(const Options&, const CpuMeter&) {
  return absl::UnimplementedError("jobs");
}

absl::StatusOr<std::vector<User>> UsersOfOptions(const Options& o) {
  UserSource source;
  source.realm = o.realm;
  source.enctype = o.enctype;
  source.pattern = o.users;
  source.keytab = o.keytab;
  source.csv = o.csv;
  source.first = o.first;
  source.number = o.number;
  source.password = o.password;
  source.threads = o.threads;
  const bool terminal = isatty(STDERR_FILENO) == 1;
  absl::StatusOr<std::vector<User>> users = MakeUsers(source, [&](size_t done, size_t all) {
    if (terminal) fprintf(stderr, "\r\033[Kkeys: %zu of %zu", done, all);
  });
  if (terminal) fprintf(stderr, "\r\033[K");
  return users;
}

}  // namespace mpckdc::storm
