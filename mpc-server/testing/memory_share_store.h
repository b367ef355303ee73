// SPDX-License-Identifier: Apache-2.0
//
// A share store over memory.
#ifndef MPC_SERVER_TESTING_MEMORY_SHARE_STORE_H_
#define MPC_SERVER_TESTING_MEMORY_SHARE_STORE_H_

#include <cstdlib>
#include <memory>
#include <utility>

#include "mpc-server/testing/memory_engine.h"
#include "mpc-server/testing/records.h"

namespace mpckdc {

class MemoryShareStore : public ShareStore {
 public:
  explicit MemoryShareStore(StoreIdentity identity)
      : MemoryShareStore(std::make_shared<MemoryEngine>(), std::move(identity)) {}

  MemoryEngine& engine() { return *engine_; }
  void FailWrites(absl::Status status) { engine_->FailWrites(std::move(status)); }

 private:
  MemoryShareStore(std::shared_ptr<MemoryEngine> engine, StoreIdentity identity)
      : ShareStore(engine, {std::move(identity), StoreKeysForTest(), &SystemRandom()}),
        engine_(std::move(engine)) {
    if (!Load().ok()) abort();
  }

  const std::shared_ptr<MemoryEngine> engine_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_MEMORY_SHARE_STORE_H_
