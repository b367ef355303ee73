// SPDX-License-Identifier: Apache-2.0
//
// One connection to PostgreSQL: statements that go together travel together (libpq's pipeline mode)
// and every wait has an end. A connection on which anything went wrong but a statement's own error
// is broken for good: its owner makes another. Not thread-safe.
#ifndef MPC_SERVER_STORE_POSTGRES_CONNECTION_H_
#define MPC_SERVER_STORE_POSTGRES_CONNECTION_H_

#include <libpq-fe.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace mpckdc {

// A value that goes with a statement, in PostgreSQL's binary form.
struct PgValue {
  static PgValue Bytes(absl::string_view bytes);                     // bytea
  static PgValue BytesArray(absl::Span<const absl::string_view> v);  // bytea[]
  static PgValue Integer(int64_t value);                             // bigint
  static PgValue Text(absl::string_view text);

  Oid type;
  std::string data;
};

struct PgStatement {
  std::string sql;
  std::vector<PgValue> values = {};
};

class PgResult {
 public:
  explicit PgResult(PGresult* result) : result_(result, PQclear) {}

  int rows() const { return PQntuples(result_.get()); }
  absl::string_view Bytes(int row, int column) const;
  int64_t Integer(int row, int column) const;  // bigint or integer
  bool Bool(int row, int column) const;
  absl::string_view Tag() const { return PQcmdStatus(result_.get()); }

 private:
  std::unique_ptr<PGresult, void (*)(PGresult*)> result_;
};

// What is wrong with a connection string, without repeating it: it may hold a password.
absl::Status CheckConnectionString(const std::string& conninfo);
// The role that it names; empty: none.
std::string UserOf(const std::string& conninfo);

class PgConnection {
 public:
  // Blocks for limits::kDatabaseConnect for each host, one after the other.
  static absl::StatusOr<std::unique_ptr<PgConnection>> Connect(const std::string& conninfo);
  PgConnection(const PgConnection&) = delete;
  PgConnection& operator=(const PgConnection&) = delete;

  // Sends the statements in one piece and waits for all results, in their order. Returns the first
  // error; the statements behind it were not executed. Those that are not inside BEGIN and COMMIT
  // are one transaction.
  using Results = std::vector<PgResult>;
  absl::StatusOr<Results> Run(absl::Span<const PgStatement> statements, absl::Duration limit);
  absl::StatusOr<PgResult> RunOne(const PgStatement& statement, absl::Duration limit);
  // Statements without values, in text, one string: for what comes once in a connection's life.
  absl::Status RunScript(const std::string& sql, absl::Duration limit);
  // Sends it and does not wait: the next Run() takes its result first.
  void Send(const PgStatement& statement);

  // "host:port/database", the host as the connection string calls it, or its socket's folder.
  std::string Where() const;
  // Nothing can be asked any more, and what was sent last may have happened or not.
  bool broken() const { return broken_; }
  // The last Run() brought a warning, as when a commit did not wait for the standby.
  const std::string& warning() const { return warning_; }
  // Waits for notifications; true: one came. Marks itself broken when the connection ended.
  bool WaitForNotification(absl::Duration limit);

 private:
  struct Expected {        // of one statement's result
    std::string prepares;  // the statement that it prepared; empty: it executed one
    bool wanted;           // false: of Send()
  };
  explicit PgConnection(PGconn* connection);
  bool Queue(const PgStatement& statement, bool wanted);
  absl::Status Await(absl::Time end, absl::Span<const int> also = {});
  absl::StatusOr<PGresult*> Next(absl::Time end);
  absl::Status Collect(absl::Time end, Results* results);
  absl::Status CollectToSync(absl::Time end, Results* results, absl::Status* error);
  absl::Status Break(absl::string_view what);
  static void OnNotice(void* self, const PGresult* notice);

  std::unique_ptr<PGconn, void (*)(PGconn*)> connection_;
  std::set<std::string> prepared_;
  std::vector<Expected> expected_;
  size_t syncs_ = 0;  // on the way
  std::string warning_;
  bool broken_ = false;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_STORE_POSTGRES_CONNECTION_H_
