// SPDX-License-Identifier: Apache-2.0
//
// For tests only: three engines on three threads of one process over memory channels, and a KDC
// that sends to all of them and waits for the answers.
#ifndef MPC_SERVER_TESTING_ENGINES_H_
#define MPC_SERVER_TESTING_ENGINES_H_

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "mpc-server/agree/job_engine.h"
#include "mpc-server/testing/deviating_channel.h"
#include "mpc-server/testing/locked_random.h"
#include "mpc-server/testing/memory_channel.h"
#include "mpc-server/testing/memory_share_store.h"
#include "mpc-server/testing/realm.h"

namespace mpckdc {

// The machine's clock, set off by a constant.
class OffsetClock : public Clock {
 public:
  absl::Time Now() override { return SystemClock().Now() + offset(); }
  void SleepUntil(absl::Time when) override { SystemClock().SleepUntil(when - offset()); }
  void Set(absl::Duration offset) { offset_us_ = absl::ToInt64Microseconds(offset); }

 private:
  absl::Duration offset() const { return absl::Microseconds(offset_us_.load()); }
  std::atomic<int64_t> offset_us_{0};
};

// Hands the three parties a new MemoryRing each time all three ask for them. A channel that is
// dropped closes its ring for all, as a closed connection does.
class MemoryHub {
 public:
  std::unique_ptr<PeerLink> Link(int party, Clock* clock);
  // For the rings made from now on: how many a party has (1) beside the long one, who sees their
  // frames.
  void SetRings(size_t count);
  void SetInterceptor(MemoryRing::Interceptor interceptor);
  // The party lies on the connections made from now on. `liar` outlives them.
  void SetLiar(int party, Liar* liar);
  // What the servers measure of each line on the connections made from now on.
  void SetLine(const LineState& line);
  void CloseCurrent();
  // Sent by all parties on a ring of the present connections.
  uint64_t FramesOn(size_t ring);

 private:
  class LinkOf;
  class ChannelOf;
  void MakeRings() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  absl::Mutex mu_;
  MemoryRing::Interceptor interceptor_ ABSL_GUARDED_BY(mu_);
  size_t count_ ABSL_GUARDED_BY(mu_) = 2;
  std::vector<std::shared_ptr<MemoryRing>> rings_ ABSL_GUARDED_BY(mu_);
  std::array<bool, 3> waiting_ ABSL_GUARDED_BY(mu_){};
  uint64_t generation_ ABSL_GUARDED_BY(mu_) = 0;
  std::array<Liar*, 3> liars_ ABSL_GUARDED_BY(mu_){};
  LineState line_ ABSL_GUARDED_BY(mu_);
};

// What was told on the engine's thread, for the test's.
template <typename T>
class Told {
 public:
  void Add(T item) {
    const absl::MutexLock lock(&mu_);
    items_.push_back(std::move(item));
  }
  std::vector<T> All() const {
    const absl::MutexLock lock(&mu_);
    return items_;
  }

 private:
  mutable absl::Mutex mu_;
  std::vector<T> items_ ABSL_GUARDED_BY(mu_);
};

// Collects the reports of one engine.
class RecordingObserver : public EngineObserver {
 public:
  void OnBatch(const BatchReport& report) override { batches_.Add(report); }
  void OnPeerSkew(int peer, absl::Duration skew) override { skews_.Add({peer, skew}); }
  void OnPeers(bool connected, const std::string& detail) override {
    if (!connected) lost_.Add(detail);
  }
  std::vector<BatchReport> Batches() const { return batches_.All(); }
  std::vector<std::pair<int, absl::Duration>> PeerSkews() const { return skews_.All(); }
  // Why sessions with the peers ended, or did not begin.
  std::vector<std::string> Lost() const { return lost_.All(); }

 private:
  Told<BatchReport> batches_;
  Told<std::pair<int, absl::Duration>> skews_;
  Told<std::string> lost_;
};

// An audit log in memory that can be made to fail.
class MemoryRecorder : public JobRecorder {
 public:
  absl::Status Ready() override {
    const absl::MutexLock lock(&mu_);
    return status_;
  }
  absl::Status Record(const BatchReport& report) override {
    const absl::MutexLock lock(&mu_);
    if (hook_) hook_();
    if (status_.ok()) batches_.Add(report);
    return status_;
  }
  void RecordUnbatched(absl::Span<const BatchJob> jobs, uint64_t) override {
    for (const BatchJob& job : jobs) unbatched_.Add(job);
  }

  // OK: it can write again.
  void Fail(const absl::Status& status) {
    const absl::MutexLock lock(&mu_);
    status_ = status;
  }
  // Called when a batch is to be written down.
  void SetHook(std::function<void()> hook) {
    const absl::MutexLock lock(&mu_);
    hook_ = std::move(hook);
  }
  std::vector<BatchReport> Batches() const { return batches_.All(); }
  std::vector<BatchJob> Unbatched() const { return unbatched_.All(); }

 private:
  absl::Mutex mu_;
  absl::Status status_ ABSL_GUARDED_BY(mu_);
  std::function<void()> hook_ ABSL_GUARDED_BY(mu_);
  Told<BatchReport> batches_;
  Told<BatchJob> unbatched_;
};

class ThreeEngines {
 public:
  // What several triples' servers keep their shares in.
  using SharedStores = PerParty<std::shared_ptr<MemoryEngine>>;

  explicit ThreeEngines(const EngineOptions& options = {}, uint64_t seed = 1)
      : ThreeEngines(options, seed, {}, 0) {}
  // Triple `triple` of the realm that has these stores; of one of its own if there are none.
  ThreeEngines(const EngineOptions& options, uint64_t seed, const SharedStores& stores, int triple);
  // Of one server's configuration, from its next start on.
  EngineOptions& options(int party) { return servers_[party].options; }
  ~ThreeEngines() { StopAll(); }

  void StartAll();
  void Start(int party) { StartWith(party, nullptr); }
  void StartWith(int party, JobRecorder* recorder);  // null: its own
  // From its next start on; it must outlive the engine. Null: none.
  void SetCertificates(int party, CertificateVerifier* certificates) {
    servers_[party].certificates = certificates;
  }
  void Stop(int party);  // the store stays: Start() again is a restart
  void StopAll();
  // Of a stopped server: its next start is with an empty store, under the same key file.
  void LoseStore(int party);
  bool WaitConnected(absl::Duration limit = absl::Seconds(10));

  PlainKey AddKey(const std::string& principal, KeyClass key_class, int32_t enctype,
                  Gate gate = Gate::kTimestamp);

  // Sends job p to server p; waits for all answers.
  PerParty<JobResult> Run(const PerParty<Job>& jobs);
  PerParty<JobResult> RunEach(const Job& job) { return Run(PerParty<Job>{job, job, job}); }
  JobResult Run(const Job& job) { return Combine(RunEach(job)); }
  // All at once, each to all servers.
  std::vector<JobResult> RunAll(const std::vector<Job>& jobs);
  // To some servers only; the answers of the others are empty.
  PerParty<JobResult> RunAt(const std::vector<int>& parties, const Job& job);
  // To P2, `delay` later to P0, `delay` later to P1.
  JobResult RunStaggered(const Job& job, absl::Duration delay);
  PerParty<TagResult> Tags(const PerParty<TagRequest>& requests);
  PerParty<TagResult> Tags(const TagRequest& request) {
    return Tags(PerParty<TagRequest>{request, request, request});
  }
  // The whole message for a seal of the job that was just run.
  std::string FinishSeal(const JobResult& result, uint32_t seal, const std::string& plaintext);

  absl::Status Draw(const TransactionId& txn, const KeyInfo& info);
  PerParty<absl::StatusOr<std::vector<VerifyResult>>> VerifyEach(
      const std::vector<Handle>& handles);
  // The three servers' answers to one comparison; each asks as `request_of` says for it.
  PerParty<absl::StatusOr<std::vector<CompareResult>>> CompareEach(
      absl::FunctionRef<CompareRequest(int party)> request_of);
  absl::StatusOr<std::vector<VerifyResult>> Verify(const std::vector<Handle>& handles);

  JobId NextId() { return ++last_id_; }
  RandomSource& random() { return *random_; }
  KdcIdentity& kdc() { return kdc_; }
  JobEngine& engine(int party) { return *servers_[party].engine; }
  MemoryShareStore& store(int party) { return *servers_[party].store; }
  OffsetClock& clock(int party) { return servers_[party].clock; }
  RecordingObserver& observer(int party) { return *servers_[party].observer; }
  MemoryRecorder& recorder(int party) { return servers_[party].recorder; }
  MemoryHub& hub() { return hub_; }

 private:
  struct Server {
    EngineOptions options;
    std::unique_ptr<MemoryShareStore> store;
    OffsetClock clock;
    std::unique_ptr<LockedRandom> random;
    std::unique_ptr<RecordingObserver> observer;
    MemoryRecorder recorder;
    std::unique_ptr<PeerLink> link;
    std::unique_ptr<ThreadExecutor> executor, long_executor;
    CertificateVerifier* certificates = nullptr;
    std::unique_ptr<JobEngine> engine;
  };

  MemoryHub hub_;
  std::unique_ptr<LockedRandom> random_;
  PerParty<Server> servers_;
  KdcIdentity kdc_;
  std::atomic<JobId> last_id_{0};
};

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_ENGINES_H_
