// SPDX-License-Identifier: Apache-2.0
//
// The share store's schema in PostgreSQL, and what a database must be to be trusted with commits.
#ifndef MPC_SERVER_STORE_POSTGRES_SCHEMA_H_
#define MPC_SERVER_STORE_POSTGRES_SCHEMA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "mpc-server/store/postgres_connection.h"

namespace mpckdc {

// store/migrations/NUMBER.sql, in their order, from 1 without a gap.
struct Migration {
  int number;
  const char* sql;
};
const std::vector<Migration>& Migrations();

// Brings the database's schema to this program's version, each migration in a transaction of its
// own; waits for another one that does the same. The connection's role owns the schema; `user`, if
// it is another, gets the rights that mpc-server needs. Returns how many migrations were applied.
// FailedPrecondition: the schema is newer than this program.
absl::StatusOr<int> Migrate(const std::string& conninfo, const std::string& user);

// A database as it was when a connection to it was made.
struct DatabaseFacts {
  uint64_t system = 0;  // the cluster's identifier: its standbys have the same
  uint64_t lsn = 0;     // the end of its log
  bool synchronous = false;  // commits wait for a standby
};

// Makes the session what the engine needs and looks at the database. FailedPrecondition, saying
// what to set: a commit would not be durable; the schema is missing, older or newer.
absl::StatusOr<DatabaseFacts> PrepareSession(PgConnection& connection);

// Of PostgreSQL's text, "1A/2B3C4D".
uint64_t ParseLsn(absl::string_view text);

}  // namespace mpckdc

#endif  // MPC_SERVER_STORE_POSTGRES_SCHEMA_H_
