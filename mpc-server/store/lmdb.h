// SPDX-License-Identifier: Apache-2.0
//
// The little of LMDB that the share store uses, with Status and with transactions that abort unless
// committed. Spans returned by a transaction point into the map and live as long as it.
#ifndef MPC_SERVER_STORE_LMDB_H_
#define MPC_SERVER_STORE_LMDB_H_

#include <lmdb.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace mpckdc {

// ResourceExhausted for a full map or disk, DataLoss for a damaged file, else Unavailable.
absl::Status LmdbStatus(int error, absl::string_view what);

class LmdbTxn;

class LmdbEnv {
 public:
  // Opens or creates `path` (mode 0600) and the named databases; Dbi(i) is names[i].
  static absl::StatusOr<std::unique_ptr<LmdbEnv>> Open(const std::string& path, uint64_t map_bytes,
                                                       absl::Span<const char* const> names);
  ~LmdbEnv();
  LmdbEnv(const LmdbEnv&) = delete;
  LmdbEnv& operator=(const LmdbEnv&) = delete;

  absl::StatusOr<LmdbTxn> BeginRead() const;
  // Runs `body` in a write transaction and commits when it returns OK: durable then, unchanged
  // otherwise. One writer at a time.
  absl::Status Write(absl::FunctionRef<absl::Status(LmdbTxn&)> body);

  MDB_dbi Dbi(size_t i) const { return dbis_[i]; }
  // The file was shorter than its last page says, and was extended with zero bytes. No page of the
  // trees is missing (Open() would have failed), but pages of long values may be.
  bool was_short() const { return was_short_; }

 private:
  LmdbEnv() = default;
  absl::Status OpenFile(const std::string& path, uint64_t map_bytes, size_t databases);
  absl::Status OpenDatabases(absl::Span<const char* const> names);
  absl::Status ExtendShortFile();
  absl::Status WalkTrees() const;

  MDB_env* env_ = nullptr;
  std::vector<MDB_dbi> dbis_;
  bool was_short_ = false;
};

class LmdbTxn {
 public:
  LmdbTxn(LmdbTxn&& other) noexcept;
  LmdbTxn& operator=(LmdbTxn&&) = delete;
  ~LmdbTxn();

  absl::StatusOr<absl::Span<const uint8_t>> Get(MDB_dbi dbi, absl::string_view key) const;
  absl::Status Put(MDB_dbi dbi, absl::string_view key, absl::string_view value);
  // The same for a key greater than all others: pages are filled to the end.
  absl::Status Append(MDB_dbi dbi, absl::string_view key, absl::string_view value);
  absl::Status Delete(MDB_dbi dbi, absl::string_view key);  // NotFound when there is none
  absl::StatusOr<absl::string_view> LastKey(MDB_dbi dbi) const;  // NotFound when it is empty
  absl::StatusOr<size_t> Count(MDB_dbi dbi) const;

  // Visits entries from the first key not below `from`, in order, until `visit` returns false.
  using Visitor = absl::FunctionRef<bool(absl::string_view key, absl::Span<const uint8_t> value)>;
  absl::Status Scan(MDB_dbi dbi, absl::string_view from, Visitor visit) const;

 private:
  friend class LmdbEnv;
  explicit LmdbTxn(MDB_txn* txn) : txn_(txn) {}
  absl::Status Commit();

  MDB_txn* txn_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_STORE_LMDB_H_
