// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/store/postgres.h"

#include <unistd.h>

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/store/folder_lock.h"
#include "mpc-server/store/postgres_pool.h"
#include "mpc-server/store/postgres_txn.h"

namespace mpckdc {

PostgresEngine::PostgresEngine(int lock, std::unique_ptr<PgPool> pool)
    : lock_(lock), pool_(std::move(pool)) {}

PostgresEngine::~PostgresEngine() { close(lock_); }

bool PostgresEngine::Exists(const std::string& folder) { return DatabaseMemory::Exists(folder); }

absl::StatusOr<std::unique_ptr<PostgresEngine>> PostgresEngine::Open(const std::string& conninfo,
                                                                     const std::string& folder,
                                                                     RandomSource& random) {
  RETURN_IF_ERROR(CheckConnectionString(conninfo));
  ASSIGN_OR_RETURN(const int lock, LockFolder(folder));
  auto unlock = absl::MakeCleanup([lock] { close(lock); });
  ASSIGN_OR_RETURN(std::unique_ptr<DatabaseMemory> memory, DatabaseMemory::Load(folder, random));
  auto pool = std::make_unique<PgPool>(conninfo, std::move(memory));
  RETURN_IF_ERROR(pool->Start());
  std::move(unlock).Cancel();
  return std::unique_ptr<PostgresEngine>(new PostgresEngine(lock, std::move(pool)));
}

absl::StatusOr<std::unique_ptr<const KvTxn>> PostgresEngine::BeginRead() const {
  auto txn = std::make_unique<PgReadTxn>(pool_.get());
  RETURN_IF_ERROR(txn->Open());
  return txn;
}

absl::Status PostgresEngine::Write(absl::string_view what, Body body) {
  PgWriteTxn txn(pool_.get());
  RETURN_IF_ERROR(body(txn));
  return txn.Commit(what);
}

std::optional<DatabaseState> PostgresEngine::Database() const { return pool_->State(); }
std::array<uint8_t, 16> PostgresEngine::Name() const { return pool_->memory().name(); }

void PostgresEngine::OnKeysChanged(std::function<void()> callback) {
  pool_->OnKeysChanged(std::move(callback));
}

}  // namespace mpckdc
