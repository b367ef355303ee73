// SPDX-License-Identifier: Apache-2.0
//
// One server's engine: takes jobs from any thread, agrees with the two other servers on the content
// and order of each batch, computes it on shares, judges it, and answers. doc/jobs.md draws it.
//
// Threads. Submit, DrawKey, VerifyKeys, FinishTag, Status may be called from any thread and do not
// wait for the network. Every callback is called exactly once, without a lock held, from the
// engine's thread or from inside the call itself; it must not block. Stop() answers what is left
// with UNAVAILABLE.
#ifndef MPC_SERVER_AGREE_JOB_ENGINE_H_
#define MPC_SERVER_AGREE_JOB_ENGINE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpc-server/agree/executor.h"
#include "mpc-server/base/clock.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/random_source.h"
#include "mpc-server/job/digest.h"
#include "mpc-server/job/job.h"
#include "mpc-server/judge/quota_rates.h"
#include "mpc-server/share/zero_shares.h"
#include "mpc-server/store/share_store.h"
#include "mpc-server/wire/peer_link.h"

namespace mpckdc {

enum class BatchMode : uint8_t {
  kWorkConserving,  // a batch starts when the engine is free and something waits
  kFixed,           // a batch starts at each tick of batch_window (the paper's timer)
};

struct EngineOptions {
  absl::Duration batch_window = limits::kDefaultBatchWindow;
  BatchMode mode = BatchMode::kWorkConserving;
  size_t max_jobs = limits::kDefaultBatchJobs;
  absl::Duration max_renewable_life = limits::kDefaultMaxRenewableLife;  // the same at all three
  absl::Duration clock_skew = limits::kDefaultClockSkew;
  Randomness randomness = Randomness::kKeyed;                          // the same at all three
  QuotaRates quotas;  // unlimited unless set; the server sets those of its configuration
};

// What happened to one job of a batch, for the audit log. Principals are named by their ids.
struct BatchJob {
  KdcIdentity kdc;
  JobId id = 0;
  Operation operation = Operation::kUnspecified;
  // Of the client handle or of the parent ticket; zero if neither. Of a job that was not computed:
  // as the KDC claims.
  PrincipalId principal{};
  Digest digest{};  // of the job as this server received it
  Judgement judgement;
};

// One batch that ended, well or not.
struct BatchReport {
  std::array<uint8_t, 16> session{};  // between the three servers, the same at all (PartyContext)
  uint64_t batch = 0;                 // within the session
  Digest view{};  // what this server believes the three agreed on; confirmed unless status says not
  absl::Time started;
  absl::Duration waited;    // by the oldest of its jobs
  absl::Duration agreed;    // spent on agreement
  absl::Duration computed;  // spent on rounds
  uint64_t aes_blocks = 0;  // really computed
  uint64_t rounds = 0;
  uint64_t bytes = 0;       // sent to the next party in rounds
  absl::Status status;      // of the rounds; jobs have their own judgements
  std::vector<BatchJob> jobs;
};

// Called on the engine's thread after each batch that held jobs, and when sealing stops or resumes.
class EngineObserver {
 public:
  virtual ~EngineObserver() = default;
  virtual void OnBatch(const BatchReport& report) = 0;
  virtual void OnDegraded(const std::string& reason) = 0;  // empty: sealing again
  virtual void OnPeers(bool connected, const std::string& detail) = 0;
  // A peer's clock began, or ceased, to differ by more than limits::kMaxPeerSkew.
  virtual void OnPeerSkew(int peer, absl::Duration theirs_minus_ours) {
    (void)peer, (void)theirs_minus_ours;
  }
};

// Writes down what the engine answers (the audit log). All calls come from the engine's thread.
class JobRecorder {
 public:
  virtual ~JobRecorder() = default;
  // OK, or why nothing can be written down: the engine then admits no job.
  virtual absl::Status Ready() = 0;
  // Before any answer of the batch leaves. After an error none does: all are UNAVAILABLE.
  virtual absl::Status Record(const BatchReport& report) = 0;
  // Jobs that were answered without a batch, so refused, within about a second after. `left_out`
  // more were too many to keep.
  virtual void RecordUnbatched(absl::Span<const BatchJob> jobs, uint64_t left_out) = 0;
};

struct EngineStatus {
  bool peers_connected = false;
  std::string peers_detail;  // when not connected: the last error
  int party = 0;
  absl::Duration skew_prev;  // that neighbour's clock minus ours, at its last message
  absl::Duration skew_next;
  bool clock_suspect = false;  // no timestamp is judged: `degraded` says why
  uint64_t sessions = 0;
  uint64_t batches = 0;
  uint64_t jobs = 0;         // answered
  uint64_t jobs_failed = 0;  // answered with anything but OK
  uint64_t aes_blocks = 0;
  uint64_t rounds = 0;
  size_t waiting = 0;        // jobs not yet in a batch
  size_t pending_seals = 0;
  size_t grants = 0;
  std::string degraded;      // empty, or why this server does not seal (one sentence)
  QuotaRates quotas;
  size_t quota_buckets = 0;  // principals and KDCs whose buckets are not full
  std::array<uint64_t, kQuotaKinds> quota_refused{};  // jobs that this server refused, by QuotaKind
  std::string unrecorded;    // empty, or why it answers no job: they cannot be written down
};

struct VerifyResult {
  Handle handle{};
  bool consistent = false;
  std::string detail;
};

// Not owned; must outlive the engine. `observer` and `recorder` may be null.
struct EngineParts {
  ShareStore* store = nullptr;
  Clock* clock = nullptr;
  RandomSource* random = nullptr;
  PeerLink* peers = nullptr;
  Executor* executor = nullptr;
  EngineObserver* observer = nullptr;
  JobRecorder* recorder = nullptr;
};

class JobEngine {
 public:
  using JobCallback = absl::AnyInvocable<void(JobResult)>;
  using DrawCallback = absl::AnyInvocable<void(absl::Status)>;
  using VerifyCallback = absl::AnyInvocable<void(absl::StatusOr<std::vector<VerifyResult>>)>;

  // Party, cluster and epoch are the store's.
  JobEngine(const EngineOptions& options, const EngineParts& parts);
  ~JobEngine();  // stops
  JobEngine(const JobEngine&) = delete;
  JobEngine& operator=(const JobEngine&) = delete;

  // Reads the store's nonce mark and replay entries and starts the engine's thread.
  absl::Status Start();
  // Makes what the first batch under a key of 17 to 20 would otherwise wait for, about half a
  // second's work. From any thread, at any time.
  static void PreparePrograms();
  void Stop();

  void Submit(const KdcIdentity& kdc, Job job, JobCallback done);

  // The tag share of a seal that this server answered; local, once per seal.
  TagResult FinishTag(const KdcIdentity& kdc, const TagRequest& request);

  // Draws a key with the two other servers, who must get the same call within
  // limits::kDrawKeyTimeout, derives its usage keys on shares and stages this server's record.
  // A repeated call for a handle that the transaction already staged succeeds without drawing.
  void DrawKey(const TransactionId& txn, const KeyInfo& info, DrawCallback done);

  // Recomputes each key's records from its base on shares; reveals yes or no only.
  void VerifyKeys(const std::array<uint8_t, 16>& request, std::vector<Handle> handles,
                  VerifyCallback done);

  EngineStatus Status() const;

  // From the next batch on. What is taken stays taken.
  void SetQuotas(const QuotaRates& rates);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_AGREE_JOB_ENGINE_H_
