// SPDX-License-Identifier: Apache-2.0
//
// What the share store asks of a database: the tables of record_format.h, each a map of byte
// strings in the order of its keys, changed in transactions. Engines: LMDB (lmdb.h), PostgreSQL
// (postgres.h), and memory for tests and the simulation (testing/memory_engine.h). An engine knows
// nothing of what it holds. Its calls are thread-safe and may block on the disk or the network;
// what an engine behind a network needs to ask for much at once (Prefetch, GetMany) costs the
// others nothing. store/engine_contract_test.cc is what all of them keep. Errors, the same for all:
//
//   NotFound           no such key
//   ResourceExhausted  disk or map full; nothing of the transaction was kept
//   DataLoss           the database is damaged
//   other codes        PermissionDenied, Unavailable: it cannot be reached or does not work
#ifndef MPC_SERVER_STORE_KV_H_
#define MPC_SERVER_STORE_KV_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpc-server/store/record_format.h"

namespace mpckdc {

// A transaction sees the state at its beginning and its own changes. What it returns lives until it
// changes something or ends; what a visitor is given, until the visitor returns.
class KvTxn {
 public:
  using Table = record_format::Table;

  virtual ~KvTxn() = default;  // of a write that was not committed: nothing happened

  virtual absl::StatusOr<absl::Span<const uint8_t>> Get(Table table,
                                                        absl::string_view key) const = 0;
  // Many at once: the values in the order of the keys, nullopt where there is none.
  using Values = std::vector<std::optional<std::string>>;
  virtual absl::StatusOr<Values> GetMany(Table table, absl::Span<const std::string> keys) const;
  // A hint: these keys will be read or changed next. One round trip instead of one for each.
  virtual absl::Status Prefetch(Table table, absl::Span<const std::string> keys) const;
  virtual absl::StatusOr<absl::string_view> LastKey(Table table) const = 0;  // NotFound: empty
  virtual absl::StatusOr<size_t> Count(Table table) const = 0;
  // Visits entries from the first key not below `from`, in order, until `visit` returns false.
  // `visit` changes nothing.
  using Visitor = absl::FunctionRef<bool(absl::string_view key, absl::Span<const uint8_t> value)>;
  virtual absl::Status Scan(Table table, absl::string_view from, Visitor visit) const = 0;
  // The same without the values.
  using KeyVisitor = absl::FunctionRef<bool(absl::string_view key)>;
  virtual absl::Status ScanNames(Table table, absl::string_view from, KeyVisitor visit) const;

  // A number that is another one after each committed change of `keys`, `records` or the identity
  // record, whoever made it. Of an engine that only one process changes, where it is of no use:
  // always 0.
  virtual absl::StatusOr<uint64_t> KeyVersion() const { return 0; }

  // In a write only.
  virtual absl::Status Put(Table table, absl::string_view key, absl::string_view value) = 0;
  // The same for a key greater than all others of the table: an engine may pack these closer.
  virtual absl::Status Append(Table table, absl::string_view key, absl::string_view value) = 0;
  virtual absl::Status Delete(Table table, absl::string_view key) = 0;
  // Adds the entries whose keys are not there. For each entry: nullopt if it was added, else the
  // value that was there, or that an entry before it has. Of two transactions that add one key at
  // once one adds it, and the other sees its value; and a value that was found stays as it is until
  // this transaction ends, which may Put() another. A transaction that does nothing else waits for
  // no other but one that adds the same key.
  using Entry = std::pair<std::string, std::string>;
  virtual absl::StatusOr<Values> InsertNew(Table table, absl::Span<const Entry> entries);
};

// What an engine behind a network says of its database, for administrators. Nothing in it is
// secret.
struct DatabaseState {
  std::string where;           // "host:port/name" of the connection that was made last; empty: none
  uint64_t system = 0;         // the cluster's identifier: its standbys have the same
  bool reachable = false;      // the last attempt to connect to it succeeded
  bool synchronous = false;    // it waits for a standby with each commit
  absl::Duration answer_time;  // of the last read that had a connection; zero: there was none
  absl::Duration commit_time;  // of the last commit, its standby's part included
  uint64_t commits = 0;        // by this server, since its data_dir was made
  size_t connections = 0;
  std::string trouble;  // why it is not reachable
};

class KvEngine {
 public:
  virtual ~KvEngine() = default;

  virtual absl::StatusOr<std::unique_ptr<const KvTxn>> BeginRead() const = 0;
  // Runs `body` in a write transaction and commits when it returns OK: durable then, unchanged
  // otherwise. One writer at a time, but for those that do nothing but InsertNew(). `what` says
  // what is done ("stage keys"), for errors.
  using Body = absl::FunctionRef<absl::Status(KvTxn&)>;
  virtual absl::Status Write(absl::string_view what, Body body) = 0;

  // Not empty: why something that was committed may be gone, found when the engine was opened. The
  // share store reads all there is before it goes on.
  virtual std::string Doubt() const { return ""; }

  // What its file takes on the disk; not of a remote engine.
  virtual std::optional<uint64_t> DiskBytes() const { return std::nullopt; }
  // Of a remote engine.
  virtual std::optional<DatabaseState> Database() const { return std::nullopt; }
  // Reads cross a network and other processes write: worth a cache (record_cache.h).
  virtual bool remote() const { return false; }
  // A remote engine calls it soon after another process changed keys, or may have. Set it once,
  // before anything else is called.
  virtual void OnKeysChanged(std::function<void()>) {}
  // Of a remote engine: this machine's, drawn once, kept beside its other files.
  virtual std::array<uint8_t, 16> Name() const { return {}; }
};

}  // namespace mpckdc

#endif  // MPC_SERVER_STORE_KV_H_
