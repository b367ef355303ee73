// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/store/postgres_connection.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <string.h>

#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/store/postgres_error.h"

namespace mpckdc {
namespace {

constexpr Oid kBytea = 17, kInt8 = 20, kText = 25, kByteaArray = 1001;
constexpr int kBinary = 1;

// libpq's messages end with a newline and may have several lines.
std::string OneLine(const char* text) {
  std::string line(absl::StripSuffix(text == nullptr ? "" : text, "\n"));
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

using Options = std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)>;
Options ParseOptions(const std::string& conninfo) {
  return Options(PQconninfoParse(conninfo.c_str(), nullptr), PQconninfoFree);
}

absl::string_view Find(const Options& options, absl::string_view keyword) {
  for (const PQconninfoOption* o = options.get(); o != nullptr && o->keyword != nullptr; ++o) {
    if (keyword == o->keyword && o->val != nullptr) return o->val;
  }
  return "";
}

// Of the connection string, with what a dead server must not cost where it says nothing itself.
struct Parameters {
  std::vector<std::string> keywords, values;
  void Add(absl::string_view keyword, absl::string_view value) {
    keywords.emplace_back(keyword);
    values.emplace_back(value);
  }
};

Parameters ParametersOf(const Options& options) {
  Parameters all;
  const auto preset = [&](absl::string_view keyword, absl::string_view value) {
    if (Find(options, keyword).empty()) all.Add(keyword, value);
  };
  const std::string connect = absl::StrCat(absl::ToInt64Seconds(limits::kDatabaseConnect));
  preset("connect_timeout", connect);
  preset("tcp_user_timeout", absl::StrCat(absl::ToInt64Milliseconds(limits::kDatabaseAnswer)));
  preset("keepalives_idle", connect);
  preset("keepalives_interval", "1");
  preset("keepalives_count", "2");
  preset("target_session_attrs", "read-write");
  preset("application_name", "mpc-server");
  all.Add("client_encoding", "UTF8");
  for (const PQconninfoOption* o = options.get(); o->keyword != nullptr; ++o) {
    if (o->val != nullptr) all.Add(o->keyword, o->val);
  }
  return all;
}

}  // namespace

// ---- Values: PostgreSQL's binary forms are big-endian ----

PgValue PgValue::Bytes(absl::string_view bytes) { return {kBytea, std::string(bytes)}; }
PgValue PgValue::Text(absl::string_view text) { return {kText, std::string(text)}; }

PgValue PgValue::Integer(int64_t value) {
  PgValue out{kInt8, ""};
  AppendUint(out.data, static_cast<uint64_t>(value), 8);
  return out;
}

// dimensions (4) | has nulls (4) | type (4) | elements (4) | first index (4) |
// per element: length (4), bytes
PgValue PgValue::BytesArray(absl::Span<const absl::string_view> v) {
  PgValue out{kByteaArray, ""};
  AppendUint(out.data, v.empty() ? 0 : 1, 4);
  AppendUint(out.data, 0, 4);
  AppendUint(out.data, kBytea, 4);
  if (v.empty()) return out;
  AppendUint(out.data, v.size(), 4);
  AppendUint(out.data, 1, 4);
  for (absl::string_view bytes : v) {
    AppendUint(out.data, bytes.size(), 4);
    out.data.append(bytes.data(), bytes.size());
  }
  return out;
}

absl::string_view PgResult::Bytes(int row, int column) const {
  return {PQgetvalue(result_.get(), row, column),
          static_cast<size_t>(PQgetlength(result_.get(), row, column))};
}

int64_t PgResult::Integer(int row, int column) const {
  const absl::string_view bytes = Bytes(row, column);
  const uint64_t value = ByteReader(AsBytes(bytes)).Uint(bytes.size());
  return bytes.size() == 4 ? static_cast<int32_t>(value) : static_cast<int64_t>(value);
}

bool PgResult::Bool(int row, int column) const { return Bytes(row, column) != std::string(1, 0); }

// ---- Connecting ----

absl::Status CheckConnectionString(const std::string& conninfo) {
  char* raw = nullptr;
  const Options options(PQconninfoParse(conninfo.c_str(), &raw), PQconninfoFree);
  const auto free_error = absl::MakeCleanup([raw] { PQfreemem(raw); });
  if (options == nullptr) {
    return absl::InvalidArgumentError(
        "is no connection string of libpq (host=... port=... dbname=... user=... passfile=...)");
  }
  if (!Find(options, "password").empty() || !Find(options, "sslpassword").empty()) {
    return absl::InvalidArgumentError(
        "holds a password: write it into a file of mode 0600 and name that by passfile=FILE");
  }
  if (Find(options, "dbname").empty())
    return absl::InvalidArgumentError("names no database: dbname=");
  return absl::OkStatus();
}

std::string UserOf(const std::string& conninfo) {
  return std::string(Find(ParseOptions(conninfo), "user"));
}

PgConnection::PgConnection(PGconn* connection) : connection_(connection, PQfinish) {
  PQsetNoticeReceiver(connection, OnNotice, this);
}

absl::StatusOr<std::unique_ptr<PgConnection>> PgConnection::Connect(const std::string& conninfo) {
  const Options options = ParseOptions(conninfo);
  if (options == nullptr) return CheckConnectionString(conninfo);
  const Parameters all = ParametersOf(options);
  std::vector<const char*> keywords, values;
  for (const std::string& keyword : all.keywords) keywords.push_back(keyword.c_str());
  for (const std::string& value : all.values) values.push_back(value.c_str());
  keywords.push_back(nullptr);
  values.push_back(nullptr);
  std::unique_ptr<PgConnection> made(
      new PgConnection(PQconnectdbParams(keywords.data(), values.data(), 0)));
  PGconn* const raw = made->connection_.get();
  if (PQstatus(raw) != CONNECTION_OK) return ConnectError(OneLine(PQerrorMessage(raw)));
  if (PQsetnonblocking(raw, 1) != 0 || PQenterPipelineMode(raw) != 1) {
    return ConnectError(OneLine(PQerrorMessage(raw)));
  }
  return made;
}

std::string PgConnection::Where() const {
  const auto text = [](const char* value) { return value == nullptr ? "" : value; };
  return absl::StrCat(text(PQhost(connection_.get())), ":", text(PQport(connection_.get())), "/",
                      text(PQdb(connection_.get())));
}

void PgConnection::OnNotice(void* self, const PGresult* notice) {
  const char* const severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
  if (severity == nullptr || strcmp(severity, "WARNING") != 0) return;
  static_cast<PgConnection*>(self)->warning_ =
      OneLine(PQresultErrorField(notice, PG_DIAG_MESSAGE_PRIMARY));
}

absl::Status PgConnection::Break(absl::string_view what) {
  broken_ = true;
  return GoneError(what);
}

// ---- Asking ----

// A statement is prepared where it is first used: later ones are not parsed again.
bool PgConnection::Queue(const PgStatement& statement, bool wanted) {
  PGconn* const raw = connection_.get();
  std::vector<Oid> types;
  std::vector<const char*> values;
  std::vector<int> lengths, formats;
  for (const PgValue& value : statement.values) {
    types.push_back(value.type);
    values.push_back(value.data.data());
    lengths.push_back(static_cast<int>(value.data.size()));
    formats.push_back(kBinary);
  }
  const int count = static_cast<int>(values.size());
  const char* const sql = statement.sql.c_str();
  if (count == 0) {
    expected_.push_back({"", wanted});
    return PQsendQueryParams(raw, sql, 0, nullptr, nullptr, nullptr, nullptr, kBinary) == 1;
  }
  // A hash of its text is its name: there are some dozens in all.
  const std::string name = absl::StrCat("s", std::hash<std::string>()(statement.sql));
  if (prepared_.insert(name).second) {
    expected_.push_back({name, false});
    if (PQsendPrepare(raw, name.c_str(), sql, count, types.data()) != 1) return false;
  }
  expected_.push_back({"", wanted});
  return PQsendQueryPrepared(raw, name.c_str(), count, values.data(), lengths.data(),
                             formats.data(), kBinary) == 1;
}

void PgConnection::Send(const PgStatement& statement) {
  if (broken_) return;
  if (!Queue(statement, /*wanted=*/false) || PQpipelineSync(connection_.get()) != 1 ||
      PQflush(connection_.get()) < 0) {
    broken_ = true;
  }
  ++syncs_;
}

absl::StatusOr<PgConnection::Results> PgConnection::Run(absl::Span<const PgStatement> statements,
                                                        absl::Duration limit) {
  if (broken_) return GoneError("the connection broke before");
  warning_.clear();
  for (const PgStatement& statement : statements) {
    if (!Queue(statement, /*wanted=*/true))
      return Break(OneLine(PQerrorMessage(connection_.get())));
  }
  if (PQpipelineSync(connection_.get()) != 1) {
    return Break(OneLine(PQerrorMessage(connection_.get())));
  }
  ++syncs_;
  Results results;
  RETURN_IF_ERROR(Collect(absl::Now() + limit, &results));
  return results;
}

absl::StatusOr<PgResult> PgConnection::RunOne(const PgStatement& statement, absl::Duration limit) {
  ASSIGN_OR_RETURN(Results results, Run({&statement, 1}, limit));
  return std::move(results[0]);
}

absl::Status PgConnection::RunScript(const std::string& sql, absl::Duration limit) {
  PGconn* const raw = connection_.get();
  if (broken_ || PQexitPipelineMode(raw) != 1 || PQsendQuery(raw, sql.c_str()) != 1) {
    return Break(OneLine(PQerrorMessage(raw)));
  }
  const absl::Time end = absl::Now() + limit;
  absl::Status status;
  for (;;) {
    ASSIGN_OR_RETURN(PGresult* const raw_result, Next(end));
    if (raw_result == nullptr) break;
    const PgResult result(raw_result);
    status.Update(StatementError(raw_result));
  }
  if (PQenterPipelineMode(raw) != 1) return Break(OneLine(PQerrorMessage(raw)));
  return status;
}

// ---- Waiting ----

// Until the socket has something to read; what is to be sent goes out meanwhile.
absl::Status PgConnection::Await(absl::Time end, absl::Span<const int>) {
  PGconn* const raw = connection_.get();
  const int unsent = PQflush(raw);
  if (unsent < 0) return Break(OneLine(PQerrorMessage(raw)));
  pollfd socket = {PQsocket(raw), static_cast<short>(unsent > 0 ? POLLIN | POLLOUT : POLLIN), 0};
  const int64_t left =
      absl::ToInt64Milliseconds(absl::Ceil(end - absl::Now(), absl::Milliseconds(1)));
  const int ready =
      left <= 0 ? 0 : poll(&socket, 1, static_cast<int>(std::min<int64_t>(left, 1 << 30)));
  if (ready < 0 && errno != EINTR) return Break(strerror(errno));
  if (ready == 0 && absl::Now() >= end) return Break("it did not answer in time");
  if (ready > 0 && (socket.revents & ~POLLOUT) != 0 && PQconsumeInput(raw) != 1) {
    return Break(OneLine(PQerrorMessage(raw)));
  }
  return absl::OkStatus();
}

absl::StatusOr<PGresult*> PgConnection::Next(absl::Time end) {
  // All that is to be sent leaves first: the last statement may be small, and answered with the
  // rest.
  while (PQflush(connection_.get()) > 0 || PQisBusy(connection_.get())) RETURN_IF_ERROR(Await(end));
  return PQgetResult(connection_.get());
}

// Takes what the statements up to the last sync brought.
absl::Status PgConnection::Collect(absl::Time end, Results* results) {
  absl::Status error;
  while (syncs_ > 0) {
    absl::Status sent;  // an error of what Send() sent is nobody's
    const bool last = syncs_ == 1;
    RETURN_IF_ERROR(CollectToSync(end, results, last ? &error : &sent));
  }
  return error;
}

absl::Status PgConnection::CollectToSync(absl::Time end, Results* results, absl::Status* error) {
  size_t at = 0;
  for (;;) {
    ASSIGN_OR_RETURN(PGresult* const raw, Next(end));
    if (raw == nullptr) {  // between two statements
      if (PQstatus(connection_.get()) != CONNECTION_OK) {
        return Break(OneLine(PQerrorMessage(connection_.get())));
      }
      continue;
    }
    PgResult result(raw);
    const ExecStatusType status = PQresultStatus(raw);
    if (status == PGRES_PIPELINE_SYNC) break;
    const absl::Status failed = StatementError(raw);
    if (at >= expected_.size()) return Break("it sent a result too many");
    const Expected& what = expected_[at++];
    if (!failed.ok()) {
      error->Update(failed);
      if (!what.prepares.empty()) prepared_.erase(what.prepares);
    } else if (what.wanted) {
      results->push_back(std::move(result));
    }
    if (PQstatus(connection_.get()) != CONNECTION_OK) return Break(error->message());
  }
  expected_.erase(expected_.begin(), expected_.begin() + static_cast<ptrdiff_t>(at));
  --syncs_;
  return absl::OkStatus();
}

bool PgConnection::WaitForNotification(absl::Duration limit) {
  if (broken_) return false;
  const absl::Time end = absl::Now() + limit;
  bool came = false;
  for (;;) {
    if (PQconsumeInput(connection_.get()) != 1) {
      broken_ = true;
      return came;
    }
    while (PGnotify* notify = PQnotifies(connection_.get())) {
      PQfreemem(notify);
      came = true;
    }
    const absl::Duration left = end - absl::Now();
    if (came || left <= absl::ZeroDuration()) return came;
    pollfd socket = {PQsocket(connection_.get()), POLLIN, 0};
    poll(&socket, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
  }
}

}  // namespace mpckdc
