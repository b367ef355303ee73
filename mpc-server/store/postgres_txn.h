// SPDX-License-Identifier: Apache-2.0
//
// The transactions of a PostgresEngine (postgres.h says what they promise).
#ifndef MPC_SERVER_STORE_POSTGRES_TXN_H_
#define MPC_SERVER_STORE_POSTGRES_TXN_H_

#include <array>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mpc-server/store/kv.h"
#include "mpc-server/store/postgres_pool.h"

namespace mpckdc {

// What both can do. Gives its connection back when it ends.
class PgTxn : public KvTxn {
 public:
  ~PgTxn() override;
  PgTxn(const PgTxn&) = delete;
  PgTxn& operator=(const PgTxn&) = delete;

  absl::StatusOr<Values> GetMany(Table table, absl::Span<const std::string> keys) const override;
  absl::Status Scan(Table table, absl::string_view from, Visitor visit) const override;
  absl::Status ScanNames(Table table, absl::string_view from, KeyVisitor visit) const override;
  absl::StatusOr<absl::string_view> LastKey(Table table) const override;
  absl::StatusOr<size_t> Count(Table table) const override;

 protected:
  explicit PgTxn(PgPool* pool) : pool_(*pool) {}

  // Runs the statement; the first of a transaction brings Beginning() with it. If that finds the
  // connection dead, as all are after the database's restart, a new one is tried once.
  absl::StatusOr<PgResult> Ask(const PgStatement& statement, Table table) const;
  virtual absl::Status Ready(Table) const { return absl::OkStatus(); }  // to ask: has a connection
  absl::Status Lease(bool writer) const;
  virtual std::vector<PgStatement> Before(Table table) const = 0;  // what must come first
  virtual void After(Table table, absl::Span<const PgResult> results) const = 0;
  virtual absl::Status Settle(Table) const { return absl::OkStatus(); }  // own changes
  virtual void Saw(Table, absl::string_view) const {}                    // a key that is there
  virtual absl::Duration limit(Table table) const;                       // of one round trip
  absl::Status ScanPages(Table table, absl::string_view from, bool values, Visitor visit) const;

  PgPool& pool_;
  mutable PgPool::Lease lease_;
  mutable bool leased_ = false;
  mutable bool begun_ = false;
  mutable std::deque<std::string> kept_;  // what was returned as a view
};

class PgReadTxn : public PgTxn {
 public:
  explicit PgReadTxn(PgPool* pool) : PgTxn(pool) {}
  absl::Status Open() { return Lease(/*writer=*/false); }

  absl::StatusOr<absl::Span<const uint8_t>> Get(Table table, absl::string_view key) const override;
  absl::StatusOr<uint64_t> KeyVersion() const override;
  absl::Status Put(Table, absl::string_view, absl::string_view) override;
  absl::Status Append(Table, absl::string_view, absl::string_view) override;
  absl::Status Delete(Table, absl::string_view) override;
  absl::StatusOr<Values> InsertNew(Table table, absl::Span<const Entry> entries) override;

 private:
  std::vector<PgStatement> Before(Table table) const override;
  void After(Table table, absl::Span<const PgResult> results) const override;

  mutable uint64_t version_ = 0;
};

class PgWriteTxn : public PgTxn {
 public:
  explicit PgWriteTxn(PgPool* pool) : PgTxn(pool) {}
  ~PgWriteTxn() override;

  absl::StatusOr<absl::Span<const uint8_t>> Get(Table table, absl::string_view key) const override;
  absl::StatusOr<Values> GetMany(Table table, absl::Span<const std::string> keys) const override;
  absl::Status Prefetch(Table table, absl::Span<const std::string> keys) const override;
  absl::StatusOr<absl::string_view> LastKey(Table table) const override;
  absl::StatusOr<size_t> Count(Table table) const override;
  absl::StatusOr<uint64_t> KeyVersion() const override;
  absl::Status Put(Table table, absl::string_view key, absl::string_view value) override;
  absl::Status Append(Table table, absl::string_view key, absl::string_view value) override {
    return Put(table, key, value);
  }
  absl::Status Delete(Table table, absl::string_view key) override;
  absl::StatusOr<Values> InsertNew(Table table, absl::Span<const Entry> entries) override;

  // `what` as in KvEngine::Write().
  absl::Status Commit(absl::string_view what);

 private:
  // What is known of a key: whether it is there, and perhaps its value.
  struct Known {
    bool there = false;
    std::optional<std::string> value;
  };
  using Changes = std::map<std::string, std::optional<std::string>, std::less<>>;

  std::vector<PgStatement> Before(Table table) const override;
  void After(Table table, absl::Span<const PgResult> results) const override;
  absl::Status Ready(Table table) const override;
  absl::Status Settle(Table table) const override;
  void Saw(Table table, absl::string_view key) const override;
  absl::Duration limit(Table table) const override;
  std::optional<int64_t> LockOf(Table table) const;
  absl::Status Learn(Table table, absl::Span<const std::string> keys) const;
  absl::StatusOr<std::map<std::string, std::string, std::less<>>> LockFound(
      Table table, absl::Span<const absl::string_view> keys) const;
  std::vector<PgStatement> Flush(Table table) const;
  void Flushed(Table table) const;
  std::vector<PgStatement> CommitStatements() const;
  absl::Status Committed(absl::Span<const PgResult> results);
  absl::Status LookWhatHappened(absl::string_view what, const absl::Status& lost);

  mutable std::array<Changes, record_format::kTables> changes_;
  mutable std::array<bool, record_format::kTables> deletes_{};  // whether there may be one in it
  mutable std::array<std::map<std::string, Known, std::less<>>, record_format::kTables> known_;
  mutable std::array<std::optional<std::string>, record_format::kTables> last_;  // in the database
  mutable std::array<int64_t, record_format::kTables> added_{};  // to `counts`, by InsertNew()
  mutable bool has_turn_ = false;
  mutable bool meta_locked_ = false, keys_locked_ = false;
  mutable bool changed_ = false, keys_changed_ = false;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_STORE_POSTGRES_TXN_H_
