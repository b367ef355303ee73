// SPDX-License-Identifier: Apache-2.0
//
// The share store's engine on PostgreSQL: what one party's mpc-servers share. The database is the
// party's own, made highly available by its own means; it sees what LMDB's file shows, sealed
// records (doc/share_store_format.md).
//
// Reads are snapshots (REPEATABLE READ READ ONLY). The first statement brings the transaction's
// beginning with it and the end is not waited for, so that a single read is one round trip.
//
// Writes are READ COMMITTED under a transaction's advisory lock, which the first call takes that is
// not InsertNew(): one lock for `meta`, one for all other tables, so that a nonce mark waits for no
// enrolment. Who has it sees all that was committed before, as each statement has its own snapshot,
// and nothing changes beneath it. SERIALIZABLE would do without the lock, but a bulk enrolment and
// every other writer would fail each other and begin again, and each page that a batch's replay
// entries were put into would count as a conflict. InsertNew() needs neither: its keys are unique,
// so that a batch's entries wait for nobody but who inserts the same ones. (A body that takes both
// locks takes that of the keys first.)
//
// Changes are kept until the commit, or until something is asked that they bear on; they go as one
// statement for each table together with COMMIT, in one round trip. Write() returns when the
// database says that it is durable: fsync and synchronous_commit are looked at. If the answer is
// lost, the writer's own row (migrations/0001.sql) says what happened; if that cannot be asked
// either the error says so.
#ifndef MPC_SERVER_STORE_POSTGRES_H_
#define MPC_SERVER_STORE_POSTGRES_H_

#include <functional>
#include <memory>
#include <string>

#include "mpc-server/base/random_source.h"
#include "mpc-server/store/kv.h"

namespace mpckdc {

class PgPool;

class PostgresEngine : public KvEngine {
 public:
  // `folder`, data_dir, remembers which database it was (postgres_memory.h); one process at a time.
  // Errors say what to do: no connection, not let in, not durable, no schema or another version,
  // put back.
  static absl::StatusOr<std::unique_ptr<PostgresEngine>> Open(const std::string& conninfo,
                                                              const std::string& folder,
                                                              RandomSource& random);
  // Whether `folder` belongs to a store already (then a missing key file must not be replaced).
  static bool Exists(const std::string& folder);
  ~PostgresEngine() override;

  absl::StatusOr<std::unique_ptr<const KvTxn>> BeginRead() const override;
  absl::Status Write(absl::string_view what, Body body) override;
  bool remote() const override { return true; }
  std::optional<DatabaseState> Database() const override;
  void OnKeysChanged(std::function<void()> callback) override;
  std::array<uint8_t, 16> Name() const override;

 private:
  PostgresEngine(int lock, std::unique_ptr<PgPool> pool);

  const int lock_;
  const std::unique_ptr<PgPool> pool_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_STORE_POSTGRES_H_
