// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/store/postgres_schema.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc {
namespace {

// One migration at a time, of all programs of the database. Session locks: "mpckdc" and 0.
constexpr int64_t kMigrationLock = 0x6d70636b646300;

absl::Status WrongVersion(int64_t found) {
  const int wanted = static_cast<int>(Migrations().size());
  const std::string which =
      absl::StrCat("the database's schema has version ", found, ", this program's is ", wanted);
  return absl::FailedPreconditionError(
      found > wanted ? absl::StrCat(which, ": a newer mpc-server has migrated it, install that one")
                     : absl::StrCat(which, ": run mpc-server --config=FILE --migrate"));
}

// 0: there is none.
absl::StatusOr<int64_t> SchemaVersion(PgConnection& connection) {
  ASSIGN_OR_RETURN(PgResult there,
                   connection.RunOne({"SELECT to_regclass('mpckdc.schema_version') IS NOT NULL"},
                                     limits::kDatabaseAnswer));
  if (!there.Bool(0, 0)) return 0;
  ASSIGN_OR_RETURN(PgResult version,
                   connection.RunOne({"SELECT max(n)::bigint FROM mpckdc.schema_version"},
                                     limits::kDatabaseAnswer));
  return version.rows() == 1 ? version.Integer(0, 0) : 0;
}

absl::Status Apply(PgConnection& connection, const Migration& migration) {
  return connection.RunScript(
      absl::StrCat("BEGIN;\n", migration.sql, "\nINSERT INTO mpckdc.schema_version VALUES (",
                   migration.number, ");\nCOMMIT;"),
      limits::kDatabaseMigration);
}

std::string Quoted(absl::string_view name) {
  return absl::StrCat("\"", absl::StrReplaceAll(name, {{"\"", "\"\""}}), "\"");
}

// Reads and changes rows: neither makes nor drops anything.
absl::Status Grant(PgConnection& connection, const std::string& user) {
  const std::string role = Quoted(user);
  return connection.RunScript(
      absl::StrCat("GRANT USAGE ON SCHEMA mpckdc TO ", role,
                   "; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA mpckdc TO ",
                   role, "; REVOKE INSERT, UPDATE, DELETE ON mpckdc.schema_version FROM ", role,
                   "; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA mpckdc TO ", role),
      limits::kDatabaseAnswer);
}

absl::Status NotDurable(absl::string_view setting, absl::string_view value,
                        absl::string_view want) {
  return absl::FailedPreconditionError(
      absl::StrCat("the database has ", setting, " = ", value,
                   ": what it says it has committed may be lost. Set it to ", want,
                   " in postgresql.conf, or for the role by ALTER ROLE, and reload"));
}

absl::Status CheckDurable(absl::string_view fsync, absl::string_view commit,
                          absl::string_view standbys) {
  if (fsync != "on") return NotDurable("fsync", fsync, "on");
  if (commit == "off") return NotDurable("synchronous_commit", commit, "on");
  const bool waits = commit == "on" || commit == "remote_apply";
  if (!waits && !standbys.empty()) {
    return NotDurable("synchronous_commit",
                      absl::StrCat(commit, " beside synchronous_standby_names"),
                      "on, so that a promoted standby has each commit");
  }
  return absl::OkStatus();
}

// enable_seqscan: each statement here is by key; a plan that was made while the tables were empty
// must not go on reading all of them. The idle limit frees what a lost mpc-server had locked.
std::string SessionSettings() {
  const auto ms = [](absl::Duration d) { return absl::StrCat(absl::ToInt64Milliseconds(d)); };
  return absl::StrCat(
      "SET search_path TO pg_catalog; SET enable_seqscan TO off; SET jit TO off; "
      "SET lock_timeout TO ",
      ms(limits::kDatabaseLock), "; SET statement_timeout TO ", ms(limits::kDatabaseBulkAnswer),
      "; SET idle_in_transaction_session_timeout TO ", ms(limits::kDatabaseBulkAnswer));
}

}  // namespace

uint64_t ParseLsn(absl::string_view text) {
  const std::vector<absl::string_view> halves = absl::StrSplit(text, '/');
  uint64_t high = 0, low = 0;
  if (halves.size() != 2 || !absl::SimpleHexAtoi(halves[0], &high) ||
      !absl::SimpleHexAtoi(halves[1], &low)) {
    return 0;
  }
  return high << 32 | low;
}

absl::StatusOr<int> Migrate(const std::string& conninfo, const std::string& user) {
  ASSIGN_OR_RETURN(std::unique_ptr<PgConnection> connection, PgConnection::Connect(conninfo));
  RETURN_IF_ERROR(connection->RunScript(
      absl::StrCat("SELECT pg_advisory_lock(", kMigrationLock, ")"), limits::kDatabaseMigration));
  ASSIGN_OR_RETURN(int64_t version, SchemaVersion(*connection));
  const auto& all = Migrations();
  if (version > static_cast<int64_t>(all.size())) return WrongVersion(version);
  if (version == 0) {
    RETURN_IF_ERROR(connection->RunScript(
        "CREATE SCHEMA IF NOT EXISTS mpckdc; "
        "CREATE TABLE IF NOT EXISTS mpckdc.schema_version (n integer PRIMARY KEY)",
        limits::kDatabaseAnswer));
  }
  int applied = 0;
  for (const Migration& migration : all) {
    if (migration.number <= version) continue;
    RETURN_IF_ERROR(Apply(*connection, migration));
    ++applied;
  }
  ASSIGN_OR_RETURN(PgResult self,
                   connection->RunOne({"SELECT current_user::text"}, limits::kDatabaseAnswer));
  if (!user.empty() && user != self.Bytes(0, 0)) RETURN_IF_ERROR(Grant(*connection, user));
  return applied;
}

absl::StatusOr<DatabaseFacts> PrepareSession(PgConnection& connection) {
  RETURN_IF_ERROR(connection.RunScript(SessionSettings(), limits::kDatabaseAnswer));
  ASSIGN_OR_RETURN(int64_t version, SchemaVersion(connection));
  if (version != static_cast<int64_t>(Migrations().size())) return WrongVersion(version);
  ASSIGN_OR_RETURN(
      PgResult facts,
      connection.RunOne({"SELECT system_identifier::bigint, pg_current_wal_insert_lsn()::text, "
                         "current_setting('fsync'), current_setting('synchronous_commit'), "
                         "current_setting('synchronous_standby_names') FROM pg_control_system()"},
                        limits::kDatabaseAnswer));
  RETURN_IF_ERROR(CheckDurable(facts.Bytes(0, 2), facts.Bytes(0, 3), facts.Bytes(0, 4)));
  // Beside a standby anything less than waiting for it was refused.
  return DatabaseFacts{static_cast<uint64_t>(facts.Integer(0, 0)), ParseLsn(facts.Bytes(0, 1)),
                       !facts.Bytes(0, 4).empty()};
}

}  // namespace mpckdc
