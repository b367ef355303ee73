// SPDX-License-Identifier: Apache-2.0
//
// The share store's engine on disk: one LMDB file (doc/share_store_format.md), durable at each
// commit. One process at a time has a data directory open.
#ifndef MPC_SERVER_STORE_LMDB_H_
#define MPC_SERVER_STORE_LMDB_H_

#include <lmdb.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "mpc-server/store/kv.h"

namespace mpckdc {

class LmdbEngine : public KvEngine {
 public:
  // Opens FOLDER/shares.mdb, or creates it (mode 0600). FailedPrecondition, naming the folder, when
  // another process has it open.
  static absl::StatusOr<std::unique_ptr<LmdbEngine>> Open(const std::string& folder,
                                                          uint64_t map_bytes);
  // Copies the store of `folder`, as it is at one moment, to FOLDER/shares.mdb of `target`, durable
  // and as small as can be; a server may have it open meanwhile. AlreadyExists: a store is there.
  static absl::Status Backup(const std::string& folder, uint64_t map_bytes,
                             const std::string& target);
  // Whether `folder` holds a store already (then a missing key file must not be replaced).
  static bool Exists(const std::string& folder);
  ~LmdbEngine() override;
  LmdbEngine(const LmdbEngine&) = delete;
  LmdbEngine& operator=(const LmdbEngine&) = delete;

  absl::StatusOr<std::unique_ptr<const KvTxn>> BeginRead() const override;
  absl::Status Write(absl::string_view what, Body body) override;
  // The file was shorter than its last page says, and was extended with zero bytes. No page of the
  // trees is missing (Open() would have failed), but pages of long values may be.
  std::string Doubt() const override;
  std::optional<uint64_t> DiskBytes() const override;

 private:
  LmdbEngine() = default;
  static absl::Status CreateFile(const std::string& folder, uint64_t map_bytes);
  absl::Status OpenFile(const std::string& path, uint64_t map_bytes);
  absl::Status OpenEnvironment(const std::string& path, uint64_t map_bytes);
  absl::Status OpenTables();
  absl::Status ExtendShortFile();
  absl::Status WalkTrees() const;

  int lock_fd_ = -1;  // -1: a file of its own that nobody else knows yet
  MDB_env* env_ = nullptr;
  std::array<MDB_dbi, record_format::kTables> tables_{};
  bool was_short_ = false;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_STORE_LMDB_H_
