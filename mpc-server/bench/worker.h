// SPDX-License-Identifier: Apache-2.0
// One team at one party (setup.h): its rings, each with a channel and a session, the lanes that
// fell to it, and a thread. All work is done on that thread, the first touch of its memory too;
// further rings have threads of their own.
#ifndef MPC_SERVER_BENCH_WORKER_H_
#define MPC_SERVER_BENCH_WORKER_H_

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "mpc-server/bench/floor.h"
#include "mpc-server/bench/hmac_workload.h"
#include "mpc-server/bench/links.h"
#include "mpc-server/bench/login_batch.h"
#include "mpc-server/bench/report.h"
#include "mpc-server/bench/setup.h"
#include "mpc-server/circuit/aes_batch.h"
#include "mpc-server/share/rings.h"

namespace mpckdc::bench {

class Worker {
 public:
  // As many channels as the team has rings.
  Worker(const BenchSetup& setup, int party, int number, RingsOfParty channels,
         absl::Duration round_timeout);
  ~Worker();

  // Start hands a task to the thread; Wait() returns its status. Tasks follow one another.
  void StartOpen();                          // the session with both neighbours
  void StartKeys();                          // the shares of the keys
  void StartRun(Work work, uint32_t batches);
  absl::Status Wait();

  // Between tasks.
  const WorkerReport& report() const { return report_; }
  size_t key_bytes() const;
  // Of the last batch of Work::kAes.
  absl::Span<const SharedBlock> outputs() const {
    if (login_ != nullptr) return login_->outputs();
    if (setup_.hmac.has_value()) return digests_;
    return setup_.bits == AesBits::k128 ? aes_.outputs128() : aes_.outputs256();
  }

 private:
  void Loop();
  void Start(std::function<absl::Status()> task);
  ChannelCounters Sent() const;
  absl::Status Open();
  absl::Status MakeKeys();
  absl::Status Run(Work work, uint32_t batches);
  absl::Status AesOfBatch();
  absl::Status HmacOfBatch();
  absl::Status FloorOfBatch();

  const BenchSetup setup_;
  const int party_, number_;
  const RingsOfParty channels_;
  const absl::Duration round_timeout_;
  std::vector<std::unique_ptr<PartyContext>> sessions_;
  std::unique_ptr<Rings> rings_;
  AesBatch aes_;
  SecretVector<SharedBlock> round_keys_;
  std::vector<AesLane> lanes_;
  std::unique_ptr<Hmac> hmac_;
  std::unique_ptr<HmacLanes> hmac_lanes_;
  SecretVector<SharedBlock> digests_;
  std::unique_ptr<LoginBatch> login_;
  uint32_t batch_ = 0;        // of Work::kAes, counted by the session
  uint32_t floor_batch_ = 0;  // in the frame headers of Work::kFloor
  std::vector<ChannelFloor> floors_;  // of each ring that the batch uses
  WorkerReport report_;

  absl::Mutex mutex_;
  std::function<absl::Status()> task_ ABSL_GUARDED_BY(mutex_);
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace mpckdc::bench

#endif  // MPC_SERVER_BENCH_WORKER_H_
