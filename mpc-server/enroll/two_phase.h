// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_ENROLL_TWO_PHASE_H_
#define MPC_SERVER_ENROLL_TWO_PHASE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace mpckdc::enroll {

struct TransactionTimeouts {
  absl::Duration stage = absl::Seconds(10);
  absl::Duration draw = absl::Seconds(30);
  absl::Duration commit = absl::Seconds(10);
  absl::Duration cleanup = absl::Seconds(3);
  int commit_attempts = 3;
  absl::Duration commit_pause = absl::Milliseconds(300);
};

// What a transaction asks of the three servers, by party. Production's is gRPC (transaction.cc);
// the simulator's has simulated messages.
class TransactionServers {
 public:
  virtual ~TransactionServers() = default;

  // Runs `call` for the three parties at once and returns when all are back.
  virtual std::array<absl::Status, 3> OnAll(const std::function<absl::Status(int party)>& call) = 0;
  virtual absl::StatusOr<uint32_t> CommitKeys(int party, absl::Duration timeout) = 0;
  virtual absl::Status AbortKeys(int party, absl::Duration timeout) = 0;
  virtual absl::Status DeleteKeys(int party, absl::Duration timeout) = 0;
  virtual std::string Name(int party) = 0;
  virtual void Pause(absl::Duration d) = 0;
};

// The order of a change on all three servers or on none; what is staged is the caller's business.
//
//   stage ok x3 -> commit ok x3 -> handles may be written to the KDB
//     any failure before the last commit -> abort and delete everywhere, best effort
class TwoPhase {
 public:
  // `servers` must outlive this.
  TwoPhase(TransactionServers* servers, const TransactionTimeouts& timeouts)
      : servers_(servers), timeouts_(timeouts) {}
  ~TwoPhase();  // rolls an unfinished change back
  TwoPhase(const TwoPhase&) = delete;
  TwoPhase& operator=(const TwoPhase&) = delete;

  bool open() const { return state_ == State::kOpen; }
  // The first call to a server is about to be made: from here on there is something to take back.
  absl::Status Begin();
  // One staging call at each of the three; rolls back when one fails.
  absl::Status Stage(const std::function<absl::Status(int party)>& call);
  // Makes the staged keys, of which there are `keys`, usable. Rolls back on failure.
  absl::Status Commit(size_t keys);
  // Takes the keys away again, committed or not. The status names the servers where something may
  // be left.
  absl::Status Rollback();
  // The same because of `why`; returns the error that says both.
  absl::Status RollbackAfter(const absl::Status& why);

 private:
  enum class State { kOpen, kStaged, kCommitted, kFinished };

  absl::Status CommitOne(int party, size_t keys);

  TransactionServers* const servers_;
  const TransactionTimeouts timeouts_;
  State state_ = State::kOpen;
};

}  // namespace mpckdc::enroll

#endif  // MPC_SERVER_ENROLL_TWO_PHASE_H_
