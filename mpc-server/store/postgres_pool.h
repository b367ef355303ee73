// SPDX-License-Identifier: Apache-2.0
//
// The connections of a PostgresEngine. One thread makes them, so that whoever asks waits for
// kDatabaseWait at most, and not at all while the database is known to be away; another listens for
// what other servers write, and notices first when the database goes.
//
// Each connection that is made is looked at: is it the database that was written to, with all that
// was committed (postgres_memory.h)? The answer is the caller's error until a later one is good.
#ifndef MPC_SERVER_STORE_POSTGRES_POOL_H_
#define MPC_SERVER_STORE_POSTGRES_POOL_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/steady_wait.h"
#include "mpc-server/store/kv.h"
#include "mpc-server/store/postgres_connection.h"
#include "mpc-server/store/postgres_memory.h"

namespace mpckdc {

class PgPool {
 public:
  static constexpr int kReader = -1;

  // Until it is given back: a reader, or the connection of a lane. A lane is what one writing
  // connection and those that take its place are: its commits are counted.
  struct Lease {
    std::unique_ptr<PgConnection> connection;
    int lane = kReader;
    uint64_t generation = 0;
  };

  PgPool(std::string conninfo, std::unique_ptr<DatabaseMemory> memory);
  ~PgPool();
  PgPool(const PgPool&) = delete;
  PgPool& operator=(const PgPool&) = delete;

  // Waits for the first connection; the error says why there is none.
  absl::Status Start();
  absl::StatusOr<Lease> Take(bool writer);
  void GiveBack(Lease lease);
  // This process's turn to write more than replay entries and marks: those who wait for it have no
  // connection, so that there is always one for a batch.
  absl::Status TakeTurn();
  void EndTurn();
  // A connection in the place of one that broke. After a commit whose outcome is not known
  // (`unsure`) the lane's count in memory() says what became of it.
  absl::Status Replace(Lease* lease, bool unsure, absl::Duration limit);

  DatabaseMemory& memory() { return *memory_; }
  DatabaseState State() const;
  // How long the database took, for State().
  void Answered(absl::Duration time);
  void Committed(absl::Duration time);
  void OnKeysChanged(std::function<void()> callback);

 private:
  struct Lane {
    std::unique_ptr<PgConnection> connection;
    bool taken = false;
    bool wanted = false;  // to be connected
    bool unsure = false;
  };
  void Connector();
  void Listener();
  bool Work() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int NextWanted() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Connections of that kind, in use or not.
  bool HasSome(int lane) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::unique_ptr<PgConnection>> Connect(int lane);
  absl::StatusOr<std::unique_ptr<PgConnection>> Listen();
  void Offer(int lane, absl::StatusOr<std::unique_ptr<PgConnection>> made, uint64_t generation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TakeIdle(bool writer, Lease* lease) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropIdle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Await(absl::Time end, std::function<bool()> done)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string conninfo_;
  const std::unique_ptr<DatabaseMemory> memory_;

  mutable absl::Mutex mutex_;
  SteadyCondition changed_;
  std::vector<std::unique_ptr<PgConnection>> idle_ ABSL_GUARDED_BY(mutex_);
  std::array<Lane, limits::kDatabaseWriters> lanes_ ABSL_GUARDED_BY(mutex_);
  size_t readers_ ABSL_GUARDED_BY(mutex_) = 0;         // idle and taken
  size_t readers_wanted_ ABSL_GUARDED_BY(mutex_) = 0;  // by those who wait
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;    // of connections: another since one broke
  uint64_t attempts_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);  // of the last attempt
  absl::Status none_left_ ABSL_GUARDED_BY(mutex_);  // the same, where there are others
  bool turn_taken_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Of the connection that was made last.
  std::string where_ ABSL_GUARDED_BY(mutex_);
  DatabaseFacts facts_ ABSL_GUARDED_BY(mutex_);
  absl::Duration answer_time_ ABSL_GUARDED_BY(mutex_);
  absl::Duration commit_time_ ABSL_GUARDED_BY(mutex_);

  absl::Mutex callback_mutex_;
  std::function<void()> callback_ ABSL_GUARDED_BY(callback_mutex_);
  std::thread connector_, listener_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_STORE_POSTGRES_POOL_H_
