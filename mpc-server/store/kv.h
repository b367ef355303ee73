// SPDX-License-Identifier: Apache-2.0
//
// What the share store asks of a database: the tables of record_format.h, each a map of byte
// strings in the order of its keys, changed in transactions. Engines: LMDB (lmdb.h), and memory for
// tests and the simulation (testing/memory_engine.h). An engine knows nothing of what it holds. Its
// calls are thread-safe and may block on the disk. Errors, the same for all:
//
//   NotFound           no such key
//   ResourceExhausted  disk or map full; nothing of the transaction was kept
//   DataLoss           the database is damaged
//   other codes        PermissionDenied, Unavailable: it cannot be reached or does not work
#ifndef MPC_SERVER_STORE_KV_H_
#define MPC_SERVER_STORE_KV_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mpc-server/store/record_format.h"

namespace mpckdc {

// A transaction sees the state at its beginning and its own changes. What it returns lives until it
// changes something or ends.
class KvTxn {
 public:
  using Table = record_format::Table;

  virtual ~KvTxn() = default;  // of a write that was not committed: nothing happened

  virtual absl::StatusOr<absl::Span<const uint8_t>> Get(Table table,
                                                        absl::string_view key) const = 0;
  virtual absl::StatusOr<absl::string_view> LastKey(Table table) const = 0;  // NotFound: empty
  virtual absl::StatusOr<size_t> Count(Table table) const = 0;
  // Visits entries from the first key not below `from`, in order, until `visit` returns false.
  // `visit` changes nothing.
  using Visitor = absl::FunctionRef<bool(absl::string_view key, absl::Span<const uint8_t> value)>;
  virtual absl::Status Scan(Table table, absl::string_view from, Visitor visit) const = 0;

  // In a write only.
  virtual absl::Status Put(Table table, absl::string_view key, absl::string_view value) = 0;
  // The same for a key greater than all others of the table: an engine may pack these closer.
  virtual absl::Status Append(Table table, absl::string_view key, absl::string_view value) = 0;
  virtual absl::Status Delete(Table table, absl::string_view key) = 0;
  // Puts those entries whose key is not there, and returns what stood under the others; the keys
  // differ. Of several writers that put one key, at whatever machine, one alone finds it absent;
  // and a value that was found stays as it is until this transaction ends.
  using Entry = std::pair<std::string, std::string>;
  virtual absl::StatusOr<std::vector<std::optional<std::string>>> InsertNew(
      Table table, absl::Span<const Entry> entries) = 0;
};

class KvEngine {
 public:
  virtual ~KvEngine() = default;

  virtual absl::StatusOr<std::unique_ptr<const KvTxn>> BeginRead() const = 0;
  // Runs `body` in a write transaction and commits when it returns OK: durable then, unchanged
  // otherwise. One writer at a time. `what` says what is done ("stage keys"), for errors.
  using Body = absl::FunctionRef<absl::Status(KvTxn&)>;
  virtual absl::Status Write(absl::string_view what, Body body) = 0;

  // Not empty: why something that was committed may be gone, found when the engine was opened. The
  // share store reads all there is before it goes on.
  virtual std::string Doubt() const { return ""; }
};

}  // namespace mpckdc

#endif  // MPC_SERVER_STORE_KV_H_
