// SPDX-License-Identifier: Apache-2.0
//
// A share store over memory; of one machine, or of one of several that share it.
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

  MemoryShareStore(std::shared_ptr<MemoryEngine> engine, StoreIdentity identity, int triple)
      : ShareStore(std::make_shared<SharedMemoryEngine>(engine, NameOf(triple)),
                   {std::move(identity), StoreKeysForTest(), &SystemRandom(), 1 << 20, triple}),
        engine_(std::move(engine)) {
    if (!Load().ok()) abort();
  }

  MemoryEngine& engine() { return *engine_; }
  void FailWrites(absl::Status status) { engine_->FailWrites(std::move(status)); }

 private:
  static MachineName NameOf(int triple) { return {static_cast<uint8_t>(triple + 1)}; }

  MemoryShareStore(std::shared_ptr<MemoryEngine> engine, StoreIdentity identity)
      : ShareStore(engine, {std::move(identity), StoreKeysForTest(), &SystemRandom()}),
        engine_(std::move(engine)) {
    if (!Load().ok()) abort();
  }

  const std::shared_ptr<MemoryEngine> engine_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_MEMORY_SHARE_STORE_H_
