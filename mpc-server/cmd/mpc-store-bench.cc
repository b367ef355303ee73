// SPDX-License-Identifier: Apache-2.0
//
// Fills one party's share store with millions of keys and measures what logins ask of it
// (bench/store_load.h): for integration-tests/storm/bench_stores.py. Prints one JSON object.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/time/clock.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/bench/store_load.h"

ABSL_FLAG(std::string, folder, "", "of the LMDB file, or what belongs to a PostgreSQL store");
ABSL_FLAG(std::string, connection, "", "of a PostgreSQL database; without it LMDB");
ABSL_FLAG(std::string, owner, "", "connection of the role that makes the schema first");
ABSL_FLAG(std::string, user, "mpcserver", "who gets the rights then");
ABSL_FLAG(uint64_t, from, 0, "how many keys the store has");
ABSL_FLAG(uint64_t, to, 0, "how many it is to have");
ABSL_FLAG(uint64_t, logins, 20000, "that are measured");
ABSL_FLAG(uint64_t, batch, 256, "logins at a time");
ABSL_FLAG(uint64_t, cache_mib, 256, "for records kept in memory, of PostgreSQL");
ABSL_FLAG(int, database_pid, 0, "PostgreSQL's postmaster, whose CPU time is told");

namespace mpckdc::bench {
namespace {

nlohmann::json JsonOf(const LoginCost& cost) {
  return {{"wall_us", cost.wall_us},
          {"cpu_us", cost.cpu_us},
          {"database_cpu_us", cost.database_cpu_us}};
}

void ShowProgress(size_t done, size_t all) {
  if (isatty(STDERR_FILENO) == 1) fprintf(stderr, "\r\033[K%zu of %zu keys", done, all);
}

absl::Status Run() {
  const StoreOptions options = {.folder = absl::GetFlag(FLAGS_folder),
                                .connection = absl::GetFlag(FLAGS_connection),
                                .owner = absl::GetFlag(FLAGS_owner),
                                .user = absl::GetFlag(FLAGS_user),
                                .cache_bytes = absl::GetFlag(FLAGS_cache_mib) << 20};
  const size_t from = absl::GetFlag(FLAGS_from), to = absl::GetFlag(FLAGS_to);
  nlohmann::json result = {{"keys", to}};
  if (from < to) {
    ASSIGN_OR_RETURN(const auto store, OpenStore(options));
    const absl::Time start = absl::Now();
    RETURN_IF_ERROR(FillStore(*store, from, to, [&](size_t done) { ShowProgress(done, to); }));
    ShowProgress(to, to);
    if (isatty(STDERR_FILENO) == 1) fprintf(stderr, "\r\033[K");
    result["filled"] = to - from;
    result["fill_s"] = absl::ToDoubleSeconds(absl::Now() - start);
  }
  // Opened anew: nothing is in this process's memory.
  StoreOptions filled = options;
  filled.owner.clear();
  ASSIGN_OR_RETURN(const auto store, OpenStore(filled));
  ASSIGN_OR_RETURN(const size_t count, store->Count(KeyState::kCommitted));
  if (count != to)
    return absl::InternalError("the store has another number of keys than it should");
  ASSIGN_OR_RETURN(const StoreCosts costs,
                   MeasureStore(*store, to, absl::GetFlag(FLAGS_logins), absl::GetFlag(FLAGS_batch),
                                absl::GetFlag(FLAGS_database_pid)));
  result.update({{"first", JsonOf(costs.first)},
                 {"again", JsonOf(costs.again)},
                 {"claims", JsonOf(costs.claims)}});
  printf("%s\n", result.dump().c_str());
  return absl::OkStatus();
}

}  // namespace
}  // namespace mpckdc::bench

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "mpc-store-bench --folder=FOLDER --from=N --to=N [--connection=...]");
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = mpckdc::bench::Run();
  if (status.ok()) return 0;
  fprintf(stderr, "mpc-store-bench: %s\n", std::string(status.message()).c_str());
  return 1;
}
