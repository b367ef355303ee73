// SPDX-License-Identifier: Apache-2.0
// One ring at one party: a channel, a session, the lanes that fell to it and a thread. All work is
// done on that thread, the first touch of its memory too.
#ifndef MPC_SERVER_BENCH_WORKER_H_
#define MPC_SERVER_BENCH_WORKER_H_

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "mpc-server/bench/report.h"
#include "mpc-server/bench/setup.h"
#include "mpc-server/circuit/aes_circuit.h"
#include "mpc-server/protocol/session.h"
#include "mpc-server/transport/peer_channel.h"

namespace mpckdc::bench {

class Worker {
 public:
  // `channel` outlives the worker.
  Worker(const BenchSetup& setup, int party, int number, PeerChannel& channel,
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
  absl::Span<const SharedBlock> outputs() const { return aes_.outputs(); }
  uint32_t last_batch() const { return batch_; }

 private:
  void Loop();
  void Start(std::function<absl::Status()> task);
  absl::Status Open();
  absl::Status MakeKeys();
  absl::Status Run(Work work, uint32_t batches);
  absl::Status AesBatch();
  absl::Status FloorBatch();

  const BenchSetup setup_;
  const int party_, number_;
  PeerChannel& channel_;
  const absl::Duration round_timeout_;
  std::unique_ptr<PartyContext> session_;
  AesEncrypt aes_;
  std::vector<SharedBlock> round_keys_;
  std::vector<AesLane> lanes_;
  uint32_t batch_ = 0;        // of Work::kAes, counted by the session
  uint32_t floor_batch_ = 0;  // in the frame headers of Work::kFloor
  // The floor's messages: two sets in turn, like the runner's.
  std::vector<size_t> sizes_;
  SecretBytes to_next_[2], from_prev_[2];
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
