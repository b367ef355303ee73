// SPDX-License-Identifier: Apache-2.0
//
// A PostgreSQL server of a test's own: made by initdb in a fresh folder, reached by a Unix socket
// alone, with passwords; root runs it as `nobody`. Optionally with a synchronous standby.
#ifndef MPC_SERVER_TESTING_POSTGRES_CLUSTER_H_
#define MPC_SERVER_TESTING_POSTGRES_CLUSTER_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mpckdc {

class PostgresCluster {
 public:
  // Says which package is missing if there is no PostgreSQL.
  static absl::StatusOr<std::unique_ptr<PostgresCluster>> Create();
  // A standby of it, following by streaming.
  absl::StatusOr<std::unique_ptr<PostgresCluster>> CreateStandby();
  ~PostgresCluster();
  PostgresCluster(const PostgresCluster&) = delete;
  PostgresCluster& operator=(const PostgresCluster&) = delete;

  absl::Status Start();
  void Stop();               // "immediate": as a crash, after which it recovers
  void Kill();               // -9, all processes
  void Freeze(bool frozen);  // all processes stand still
  absl::Status Promote();
  // As a superuser; an error is one of the test. Returns the first value, as text.
  std::string Sql(const std::string& sql, const std::string& database = "postgres");
  absl::StatusOr<std::string> TrySql(const std::string& sql, const std::string& database);
  // An empty database, or one with the schema.
  std::string NewDatabase(bool migrated = true);

  // For the run-time role, which owns nothing, and for the schema's owner.
  std::string ConnInfo(const std::string& database) const { return InfoOf(database, "mpcserver"); }
  std::string OwnerInfo(const std::string& database) const { return InfoOf(database, "mpcowner"); }
  const std::string& folder() const { return folder_; }
  const std::string& socket_folder() const { return folder_; }
  int port() const { return port_; }
  std::string data() const { return folder_ + "/data"; }
  bool running() const { return server_ > 0; }

 private:
  PostgresCluster() = default;
  std::string InfoOf(const std::string& database, const std::string& user) const;
  absl::Status Run(const std::string& command) const;
  std::vector<pid_t> Processes() const;

  std::string programs_, folder_;
  int port_ = 5432;
  pid_t server_ = -1;
  int databases_ = 0;
};

// One for all tests of the program, made when it is first asked for; ends with them. nullptr, and a
// failure of the test, if it cannot be made.
PostgresCluster* SharedPostgresCluster();

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_POSTGRES_CLUSTER_H_
