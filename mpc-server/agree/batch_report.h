// SPDX-License-Identifier: Apache-2.0
//
// What an engine reports of its batches, and who wants to hear it: an observer (metrics, log), and
// the recorder, without which no answer leaves.
#ifndef MPC_SERVER_AGREE_BATCH_REPORT_H_
#define MPC_SERVER_AGREE_BATCH_REPORT_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpc-server/agree/deviation_report.h"
#include "mpc-server/compute/protocol_choice.h"
#include "mpc-server/job/digest.h"
#include "mpc-server/job/job.h"
#include "mpc-server/job/operation_table.h"
#include "mpc-server/store/epochs.h"

namespace mpckdc {

// A key under which a job sealed, opened, made or verified something, or wanted to.
struct KeyUsed {
  PartKind part{};
  uint32_t usage = 0;
  Handle handle{};
  PrincipalId principal{};  // zero: this server has no key of the handle
  int32_t enctype = 0;      // 0: likewise
};

// What happened to one job of a batch, for the audit log. Principals are named by their ids.
struct BatchJob {
  KdcIdentity kdc;
  JobId id = 0;
  Operation operation = Operation::kUnspecified;
  // The principal of the client handle or of the parent ticket; zero if the job has neither. For a
  // job that was not computed it is what the KDC claims.
  PrincipalId principal{};
  Digest digest{};  // of the job as this server received it
  Judgement judgement;
  std::vector<KeyUsed> keys{};  // of its parts, in their order
  bool computed = false;        // or its computation began
  uint64_t request = 0;         // what the KDC said of the job: for logs alone; 0: nothing
};

// One batch that ended, well or not.
struct BatchReport {
  std::array<uint8_t, 16> session{};  // between the three servers, the same at all (PartyContext)
  uint64_t batch = 0;                 // within the session
  Digest view{};  // what this server believes the three agreed on; confirmed unless status says not
  absl::Time time;  // of the proposal: the leader's clock, the same at the three
  absl::Time started;
  absl::Duration waited;    // by the oldest of its jobs
  absl::Duration agreed;    // spent on agreement
  absl::Duration computed;  // spent on rounds
  uint64_t aes_blocks = 0;  // really computed
  uint64_t rounds = 0;
  uint64_t bytes = 0;       // sent to the next party in rounds
  std::optional<CtsProtocol> protocol;  // of its parts under keys of types 17 to 20
  absl::Status status;      // of the rounds; jobs have their own judgements
  std::vector<BatchJob> jobs;
};

// Called on the engine's thread.
class EngineObserver {
 public:
  virtual ~EngineObserver() = default;
  // After each batch that held jobs.
  virtual void OnBatch(const BatchReport&) {}
  // Sealing stopped, or (empty) goes on.
  virtual void OnDegraded(const std::string& /*reason*/) {}
  virtual void OnPeers(bool /*connected*/, const std::string& /*detail*/) {}
  // A peer's clock began, or ceased, to differ by more than limits::kMaxPeerSkew.
  virtual void OnPeerSkew(int /*peer*/, absl::Duration /*theirs_minus_ours*/) {}
  // Another server deviated: from now on this one opens no session (quarantine.h).
  virtual void OnDeviation(const DeviationReport&) {}
  // This server's shares are of a new epoch.
  virtual void OnEpoch(const EpochState&) {}
  // The three hold different records of a key: whose differs; or (empty) the same again.
  virtual void OnRecord(const KeyInfo&, const std::string& /*text*/) {}
};

// Writes down what the engine answers (the audit log). All calls come from the engine's thread.
class JobRecorder {
 public:
  virtual ~JobRecorder() = default;
  // OK, or why nothing can be written down: the engine then admits no job.
  virtual absl::Status Ready() = 0;
  // Before any answer of the batch leaves. After an error none does: all are UNAVAILABLE. Jobs of a
  // flood that were refused before they were computed may be counted instead.
  virtual absl::Status Record(const BatchReport& report) = 0;
  // Jobs that were answered without a batch, so refused, within about a second after. `left_out`
  // more were too many to keep.
  virtual void RecordUnbatched(absl::Span<const BatchJob> jobs, uint64_t left_out) = 0;
  // What was counted instead of written down: about once a second, and when the engine stops.
  virtual void WriteCounts() {}
};

}  // namespace mpckdc

#endif  // MPC_SERVER_AGREE_BATCH_REPORT_H_
