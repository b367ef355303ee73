// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/store/postgres_error.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/base/limits.h"

namespace mpckdc {
namespace {

constexpr char kDatabase[] = "the database of the share store";

absl::Status ReadOnly(absl::string_view message) {
  return absl::UnavailableError(absl::StrCat(
      kDatabase,
      " is read-only: name the primary, or all hosts, in [store] postgresql, and look at "
      "default_transaction_read_only (",
      message, ")"));
}

absl::Status NotLetIn(absl::string_view message) {
  return absl::PermissionDeniedError(
      absl::StrCat(kDatabase,
                   " lets this server not in: look at user= and passfile= (mode 0600) in [store] "
                   "postgresql and at the database's pg_hba.conf (",
                   message, ")"));
}

constexpr char kNoneLeft[] = "mpckdc/no-connection-left";

absl::Status NoneLeft(absl::string_view message) {
  absl::Status s = absl::UnavailableError(absl::StrCat(
      kDatabase, " has no connection left for this server: raise max_connections, or the "
      "CONNECTION LIMIT of the role or the database, or end who else takes them "
      "(pg_stat_activity); each mpc-server needs up to ",
      limits::kDatabaseReaders + limits::kDatabaseWriters + 1, " (", message, ")"));
  s.SetPayload(kNoneLeft, absl::Cord());
  return s;
}

absl::Status Grant(absl::string_view message) {
  return absl::PermissionDeniedError(
      absl::StrCat("the role of [store] postgresql lacks rights that mpc-server --migrate grants: "
                   "run it as the schema's owner (",
                   message, ")"));
}

absl::Status DiskFull(absl::string_view message) {
  return absl::ResourceExhaustedError(
      absl::StrCat("disk full: ", kDatabase, " has no room left: give it some (", message, ")"));
}

absl::Status NoSchema(absl::string_view message) {
  return absl::FailedPreconditionError(
      absl::StrCat(kDatabase,
                   " lacks the schema of this program: run mpc-server --config=FILE "
                   "--migrate (",
                   message, ")"));
}

absl::Status Slow(absl::string_view message) {
  return absl::UnavailableError(absl::StrCat(
      kDatabase,
      " is too slow, or another mpc-server of this party has been writing for long: look "
      "at its load and at pg_stat_activity (",
      message, ")"));
}

absl::Status OfState(absl::string_view state, absl::string_view message) {
  const auto is = [state](absl::string_view prefix) { return absl::StartsWith(state, prefix); };
  if (is("53100")) return DiskFull(message);
  if (is("25006")) return ReadOnly(message);
  if (is("42501")) return Grant(message);
  if (is("42P01") || is("3F000") || is("42883") || is("42703")) return NoSchema(message);
  if (is("28")) return NotLetIn(message);
  if (is("57014") || is("55P03") || is("40P01") || is("25P03")) return Slow(message);
  if (is("MK001")) {  // mpckdc.mark()
    return absl::FailedPreconditionError(absl::StrCat(
        "another mpc-server writes to the database under this one's name: each needs a "
        "data_dir of its own, never a copy (",
        message, ")"));
  }
  if (is("XX001") || is("XX002")) {
    return absl::DataLossError(absl::StrCat(kDatabase, " is damaged: ", message));
  }
  return absl::UnavailableError(absl::StrCat(kDatabase, " failed: ", message, " (", state, ")"));
}

}  // namespace

// libpq has no codes for these, only texts.
absl::Status ConnectError(absl::string_view message) {
  const auto says = [message](absl::string_view text) { return absl::StrContains(message, text); };
  if (says("too many connections") || says("too many clients") ||
      says("connection slots are reserved")) {
    return NoneLeft(message);
  }
  if (says("session is read-only") || says("session is not read-write")) return ReadOnly(message);
  if (says("authentication failed") || says("no password supplied") || says("pg_hba.conf") ||
      says("permission denied for database")) {
    return NotLetIn(message);
  }
  if ((says("database \"") || says("role \"")) && says("does not exist")) {
    return absl::FailedPreconditionError(
        absl::StrCat("make the database and the role that [store] postgresql names: ", message));
  }
  return GoneError(message);
}

bool IsNoneLeft(const absl::Status& status) { return status.GetPayload(kNoneLeft).has_value(); }

absl::Status GoneError(absl::string_view message) {
  return absl::UnavailableError(
      absl::StrCat(kDatabase,
                   " cannot be reached: look whether it runs and whether [store] "
                   "postgresql names all its hosts; this server tries again by itself (",
                   message, ")"));
}

absl::Status StatementError(const PGresult* result) {
  switch (PQresultStatus(result)) {
    case PGRES_COMMAND_OK:
    case PGRES_TUPLES_OK:
    case PGRES_SINGLE_TUPLE:
      return absl::OkStatus();
    case PGRES_PIPELINE_ABORTED:
      return absl::AbortedError("a statement before it failed");
    default:
      break;
  }
  // The primary message alone: details may repeat values.
  const char* const state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* const message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  if (state == nullptr) return GoneError(message == nullptr ? "the connection ended" : message);
  // The server is going down or coming up: another may be up.
  if (absl::StartsWith(state, "57P") || absl::StartsWith(state, "08")) return GoneError(message);
  return OfState(state, message == nullptr ? "" : message);
}

}  // namespace mpckdc
