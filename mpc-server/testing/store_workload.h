// SPDX-License-Identifier: Apache-2.0
//
// For the fault tests: a seeded series of operations on the real share store. Each has steps; a
// step that was acknowledged has happened for good, one that was tried and not acknowledged has
// happened or not, as a whole. Operations touch different keys, so each is judged by itself.
#ifndef MPC_SERVER_TESTING_STORE_WORKLOAD_H_
#define MPC_SERVER_TESTING_STORE_WORKLOAD_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "mpc-server/base/random_source.h"
#include "mpc-server/store/share_store.h"

namespace mpckdc {

struct StoreOperation {
  enum class Kind { kEnrol, kEnrolAndDelete, kAbort, kStageOnly, kMark, kReplays };
  Kind kind = Kind::kEnrol;
  TransactionId txn{};
  std::vector<KeyRecord> records;
  NonceMark mark{};
  std::vector<ReplayEntry> replays;

  std::vector<Handle> Handles() const;
  int Steps() const;
  absl::Status Do(ShareStore& store, int step) const;
};

// The same for the process that works and the one that judges.
std::vector<StoreOperation> StoreWorkload(uint64_t seed);

// How far an operation came: its first `acknowledged` steps did; the next one was `tried`, and
// `failed` if it returned an error.
struct StoreProgress {
  int acknowledged = 0;
  bool tried = false;
  bool failed = false;
};

// What is wrong with the store after such progress of the operations; empty: nothing.
// `failed_changes_nothing`: a step that returned an error must not have happened.
std::string JudgeStore(ShareStore& store, const std::vector<StoreOperation>& operations,
                       const std::vector<StoreProgress>& progress, bool failed_changes_nothing);

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_STORE_WORKLOAD_H_
