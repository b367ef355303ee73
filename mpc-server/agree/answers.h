// SPDX-License-Identifier: Apache-2.0
//
// How a job is answered. Nothing leaves this server that is not written down: a batch's line first,
// then its answers; what is refused without a batch is written down within about a second.
#ifndef MPC_SERVER_AGREE_ANSWERS_H_
#define MPC_SERVER_AGREE_ANSWERS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "mpc-server/agree/ballot.h"
#include "mpc-server/agree/batch_report.h"
#include "mpc-server/agree/job_queue.h"
#include "mpc-server/judge/pending_seals.h"

namespace mpckdc {

struct EngineState;

// A job and its result, not yet told to anybody.
struct Answer {
  WaitingJobPtr job;
  JobResult result;
  PendingJob pending;
  bool computed = false;
};
// The judgement alone.
Answer BareAnswer(const WaitingJobPtr& job, Judgement judgement);

class Answers {
 public:
  // `recorder` may be null.
  Answers(EngineState* state, JobRecorder* recorder) : state_(*state), recorder_(recorder) {}

  // Asks the recorder whether anything can be written down; empty, or why not.
  const std::string& CheckRecorder();
  const std::string& unrecorded() const { return unrecorded_; }

  // Writes the jobs of a batch down, then tells their results; where they cannot be written down,
  // UNAVAILABLE to all.
  void RecordThenAnswer(std::vector<Answer> answers, BatchRecords& records, BatchReport* report);

  // A job that never waited, from any thread.
  void RefuseOnSight(const WaitingJobPtr& job, Judgement why);
  // A job that no batch took.
  void Fail(const WaitingJobPtr& job, Judgement why);
  void FailExpired(absl::Time now);
  // Writes down what was answered without a batch.
  void RecordUnbatched();
  void WriteCounts() {
    if (recorder_ != nullptr) recorder_->WriteCounts();
  }

 private:
  void Tell(const WaitingJobPtr& job, JobResult result);
  void KeepUnbatched(const WaitingJob& job, const Judgement& why);

  EngineState& state_;
  JobRecorder* const recorder_;
  std::string unrecorded_;

  absl::Mutex mu_;
  // The client, and the line but for its principals.
  std::vector<std::pair<std::optional<Handle>, BatchJob>> unbatched_ ABSL_GUARDED_BY(mu_);
  uint64_t left_out_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_AGREE_ANSWERS_H_
