// SPDX-License-Identifier: Apache-2.0
//
// What a server remembers of its database, so that one that was put back, or another one, is never
// taken for it. In memory exactly; in DATA_DIR/database as of a second ago at most:
//
//     system   the cluster's identifier; its standbys have the same
//     lsn      a position of the log that was reached before this server's last commit
//     writer   16 bytes drawn at the first start: the name under which this server writes
//     commits  how many transactions each of its writing connections has committed
//
// A promoted standby has the system and, when it was a synchronous one, everything that was
// committed; an older backup lacks the last commits, and its log may end before the position.
#ifndef MPC_SERVER_STORE_POSTGRES_MEMORY_H_
#define MPC_SERVER_STORE_POSTGRES_MEMORY_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/random_source.h"
#include "mpc-server/store/postgres_schema.h"

namespace mpckdc {

class DatabaseMemory {
 public:
  // Reads FOLDER/database, or begins one. DataLoss: the file is damaged.
  static absl::StatusOr<std::unique_ptr<DatabaseMemory>> Load(const std::string& folder,
                                                              RandomSource& random);
  static bool Exists(const std::string& folder);
  ~DatabaseMemory();

  // FailedPrecondition: it is another database, or it was put back. A first one is adopted.
  absl::Status Check(const DatabaseFacts& facts);
  // The key of `writers` for a connection; how many commits it is known to have, after `found` were
  // found in the database: FailedPrecondition if some are missing, or were made by somebody else.
  // `unsure`: the outcome of one more is not known.
  std::string WriterId(size_t lane) const;
  std::array<uint8_t, 16> name() const { return writer_; }
  absl::Status CheckCommits(size_t lane, uint64_t found, bool unsure);
  uint64_t Commits(size_t lane) const;
  void Committed(size_t lane, uint64_t lsn);

 private:
  explicit DatabaseMemory(std::string path) : path_(std::move(path)) {}
  absl::Status Read();
  absl::Status Write() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status PutBack(absl::string_view how) const;

  const std::string path_;
  mutable absl::Mutex mutex_;
  std::array<uint8_t, 16> writer_{};
  uint64_t system_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t lsn_ ABSL_GUARDED_BY(mutex_) = 0;
  std::array<uint64_t, limits::kDatabaseWriters> commits_ ABSL_GUARDED_BY(mutex_){};
  // Counted by this process: found in the database, not only read from the file.
  std::array<bool, limits::kDatabaseWriters> exact_ ABSL_GUARDED_BY(mutex_){};
  absl::Time written_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace mpckdc

#endif  // MPC_SERVER_STORE_POSTGRES_MEMORY_H_
