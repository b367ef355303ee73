// SPDX-License-Identifier: Apache-2.0
//
// One server's engine: takes jobs from any thread, agrees with the two other servers on the content
// and order of each batch, computes it on shares, judges it, and answers. doc/jobs.md draws it.
// Inside, steps.h lists the steps of a batch and the file of each.
#ifndef MPC_SERVER_AGREE_JOB_ENGINE_H_
#define MPC_SERVER_AGREE_JOB_ENGINE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "mpc-server/agree/batch_report.h"
#include "mpc-server/agree/engine_status.h"
#include "mpc-server/agree/executor.h"
#include "mpc-server/base/clock.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/random_source.h"
#include "mpc-server/compute/protocol_choice.h"
#include "mpc-server/job/job.h"
#include "mpc-server/judge/quota_rates.h"
#include "mpc-server/share/session.h"
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
  Security security = Security::kActive;                               // the same at all three
  // Of parts under keys of types 17 to 20. What one server forces is done at the three; servers
  // that force different ones do not work together. Exchanged randomness forces kReplicated.
  ProtocolSetting protocol = ProtocolSetting::kAuto;
  // Of fillers, the longest (line_trial.h); 0: lines are not tried. The same at all three.
  size_t line_trial_bytes = limits::kLineTrialBytes;
  QuotaRates quotas;  // unlimited unless set; the server sets those of its configuration
};

// What an engine works with. Not owned; must outlive it. `observer`, `recorder` and
// `certificates` may be null.
struct EngineTools {
  ShareStore* store = nullptr;
  Clock* clock = nullptr;
  RandomSource* random = nullptr;
  PeerLink* peers = nullptr;
  Executor* executor = nullptr;
  Executor* long_executor = nullptr;  // of the long ring (long_ring.h)
  EngineObserver* observer = nullptr;
  JobRecorder* recorder = nullptr;
  // Null: no login by certificate is believed. It must be silent when the engine is destroyed.
  CertificateVerifier* certificates = nullptr;
};

struct VerifyResult {
  Handle handle{};
  bool consistent = false;
  std::string detail;
};

// What CompareKeys() says of an old key.
enum class Comparison : uint8_t {
  kDifferent,
  kEqual,    // to one of the staged keys
  kUnknown,  // this server does not have the old key; the detail says so
};
struct CompareResult {
  Handle handle{};
  Comparison comparison = Comparison::kDifferent;
  std::string detail;
};

// The keys of a comparison: those of a transaction that is not committed, and old ones.
struct CompareRequest {
  std::array<uint8_t, 16> id{};  // the same for the three servers
  TransactionId txn{};
  std::vector<Handle> staged;
  std::vector<Handle> old;
  // Of each old key, as it was when quotas admitted the request (all zero: nobody had it). One that
  // is another's since is not compared. Empty: whoever it is.
  std::vector<PrincipalId> first_owners{};
};

// All calls but Start and Stop may come from any thread and do not wait for the network. Every
// callback is called exactly once, without a lock held, from the engine's thread or from inside the
// call itself; it must not block.
class JobEngine {
 public:
  using JobCallback = absl::AnyInvocable<void(JobResult)>;
  using DrawCallback = absl::AnyInvocable<void(absl::Status)>;
  using VerifyCallback = absl::AnyInvocable<void(absl::StatusOr<std::vector<VerifyResult>>)>;

  using CompareCallback = absl::AnyInvocable<void(absl::StatusOr<std::vector<CompareResult>>)>;

  virtual ~JobEngine() = default;

  // Reads the store's nonce mark, replay entries and quarantine and starts the engine's thread.
  virtual absl::Status Start() = 0;
  // Answers what is left with UNAVAILABLE. The destructor stops too.
  virtual void Stop() = 0;

  virtual void Submit(const KdcIdentity& kdc, Job job, JobCallback done) = 0;

  // The tag share of a seal that this server answered; local, once per seal.
  virtual TagResult FinishTag(const KdcIdentity& kdc, const TagRequest& request) = 0;

  // Draws a key with the two other servers, who must get the same call within
  // limits::kDrawKeyTimeout, derives its usage keys on shares and stages this server's record.
  // A repeated call for a handle that the transaction already staged succeeds without drawing.
  virtual void DrawKey(const TransactionId& txn, const KeyInfo& info, DrawCallback done) = 0;

  // Recomputes each key's records from its base on shares; reveals yes or no only.
  virtual void VerifyKeys(const std::array<uint8_t, 16>& request, std::vector<Handle> handles,
                          VerifyCallback done) = 0;

  // Asks for a refresh of the shares, from epoch `from` into the next (epoch_agreement.h). The two
  // other servers must be asked for the same before the deadline. OK when this server is in a later
  // epoch.
  virtual void Refresh(uint64_t from, absl::Time deadline, DrawCallback done) = 0;

  // Asks that `party`, whose store is empty, be rebuilt from the two others (hand_over.h); all
  // three must be asked before the deadline. OK when the three have entered a new share epoch and
  // its keys begin to come in.
  virtual void Replace(int party, absl::Time deadline, DrawCallback done) = 0;

  // This server's store was put back from a copy: what it lacks comes from the two others, in a new
  // session. Blocks on the store.
  virtual absl::Status CatchUp() = 0;
  // Sees what other machines of the party have changed in the store that they share. Now and then,
  // by a thread that may wait for the store.
  virtual void Look() = 0;

  virtual EngineStatus Status() const = 0;

  // Ends the quarantine after a deviation (quarantine.h): sessions with the two other servers are
  // opened again. What had been seen, or nothing if there was no quarantine. Blocks on the store.
  virtual absl::StatusOr<std::optional<DeviationReport>> Readmit() = 0;

  // From the next batch on. What is taken stays taken.
  virtual void SetQuotas(const QuotaRates& rates) = 0;

  // Which of the old keys are equal to a staged one of the same principal and enctype, computed on
  // the shares of the base keys; reveals one bit for each such pair. What may be asked, and how
  // often, the caller has judged (service/key_history.h).
  virtual void CompareKeys(CompareRequest request, CompareCallback done) = 0;
};

// Party, cluster and epoch are the store's.
std::unique_ptr<JobEngine> MakeJobEngine(const EngineOptions& options, const EngineTools& tools);

// Makes what the first batch under a key of 17 to 20 would otherwise wait for: about half a second
// of work. From any thread, at any time.
void PrepareCircuits();

}  // namespace mpckdc

#endif  // MPC_SERVER_AGREE_JOB_ENGINE_H_
