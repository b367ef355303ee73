// SPDX-License-Identifier: Apache-2.0
//
// Key records that were read, decoded, in locked memory, for a store behind a network. It holds
// what one version of the keys was (KvTxn::KeyVersion): a reader says which it sees, and another
// version than the cache's empties it. So a record that any server of the party has replaced is
// never taken from here by a reader that could see the new one. Thread-safe.
#ifndef MPC_SERVER_STORE_RECORD_CACHE_H_
#define MPC_SERVER_STORE_RECORD_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "mpc-server/store/key_record.h"

namespace mpckdc {

class RecordCache {
 public:
  using Record = std::shared_ptr<const KeyRecord>;

  explicit RecordCache(size_t max_bytes) : max_bytes_(max_bytes) {}

  // nullptr: not here. A reader of an older version than the cache's gets nothing.
  Record Find(uint64_t version, const Handle& handle);
  void Add(uint64_t version, const Handle& handle, Record record);
  void Clear();

  size_t bytes() const;  // of the records, as they lie in memory
  struct Use {
    size_t records = 0, bytes = 0, max_bytes = 0;
    uint64_t found = 0, missed = 0;  // since the start
  };
  Use Usage() const;

 private:
  using Entries = std::list<std::pair<Handle, Record>>;  // the one used last first
  bool IsOf(uint64_t version) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Empty() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t max_bytes_;
  mutable absl::Mutex mutex_;
  uint64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t found_ ABSL_GUARDED_BY(mutex_) = 0, missed_ ABSL_GUARDED_BY(mutex_) = 0;
  Entries entries_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<Handle, Entries::iterator> places_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mpckdc

#endif  // MPC_SERVER_STORE_RECORD_CACHE_H_
