// SPDX-License-Identifier: Apache-2.0
//
// One KDC's stream of jobs and answers.
//
// At most one read, one write and one finish are under way, and every decision about them is made
// under mutex_. Reading stops while limits::kMaxJobsInFlight jobs are unanswered or unwritten, or
// the jobs of all streams hold limits::kMaxJobBytesInFlight and this one has some of them: the KDC
// is held back by HTTP/2 flow control and no queue grows. Answers that become ready while a write
// is under way leave together in the next one.
//
//     hello -> welcome, then   read jobs -> Submit -> answer -> queue -> write
//                              read tags -> FinishTag ------------^
#ifndef MPC_SERVER_SERVICE_KEY_STREAM_H_
#define MPC_SERVER_SERVICE_KEY_STREAM_H_

#include <google/protobuf/arena.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "mpc-server/service/caller.h"
#include "mpc-server/service/key_service.h"

namespace mpckdc {

class KeyStream final : public RawStreamReactor, public std::enable_shared_from_this<KeyStream> {
 public:
  // The stream keeps itself alive until gRPC has let go of it.
  static std::shared_ptr<KeyStream> Start(KeyService* service, Caller caller);

  // Ends the stream with `status` after the write under way.
  void Close(absl::Status status);
  // OK, or why the stream must be closed now (no hello in time, certificate).
  absl::Status Check() const;

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  KeyStream(KeyService* service, Caller caller);

  absl::Status HandleIncoming();
  absl::Status HandleHello(const v1::KdcMessage& message);
  absl::Status CheckHello(const v1::Hello& hello) const;
  absl::Status HandleJobs(v1::KdcMessage& message);
  absl::Status TakeJob(v1::Job& job);
  void TakeTag(v1::TagRequest& request);
  void NoteRefusal(const char* call, const absl::Status& status, JobId id = 0,
                   uint64_t request = 0);
  void SubmitJob(Job job, size_t bytes);
  // Returns whether nothing is being written, so that Advance() must be called: otherwise the end
  // of the write will see to the answer. `bytes`: what the job took of the service's room.
  bool Answer(JobResult result, size_t bytes);
  // Answers that wait for the write under way, joined.
  struct Outgoing {
    google::protobuf::Arena arena;
    v1::ServerMessage* const message =
        google::protobuf::Arena::CreateMessage<v1::ServerMessage>(&arena);
    size_t bytes = 0;  // of the answers, without the few that frame each of them
    size_t taken = 0;  // of the service's room
  };
  // That to which the next answer is added.
  Outgoing& NextMessage() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Starts whatever can be started: a read, a write, or the finish.
  void Advance();
  // Returns the status to finish with, once, when nothing else is to be done.
  std::optional<absl::Status> AdvanceLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteEnd() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FillOutgoing() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool gone() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return finished_ || broken_; }

  KeyService* const service_;
  const Caller caller_;
  const absl::Time started_;
  std::shared_ptr<KeyStream> self_;  // until OnDone

  grpc::ByteBuffer incoming_;   // only by the read under way and its handler
  grpc::ByteBuffer outgoing_;   // only by the write under way
  KdcIdentity kdc_;             // set once, by the hello
  std::shared_ptr<KdcSession> session_;  // set once, by the hello

  mutable absl::Mutex mutex_;
  std::deque<std::unique_ptr<Outgoing>> queue_ ABSL_GUARDED_BY(mutex_);
  size_t queued_ ABSL_GUARDED_BY(mutex_) = 0;     // answers in queue_
  size_t in_flight_ ABSL_GUARDED_BY(mutex_) = 0;  // jobs with the engine
  bool greeted_ ABSL_GUARDED_BY(mutex_) = false;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool handling_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool half_closed_ ABSL_GUARDED_BY(mutex_) = false;  // the KDC will send no more
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;       // nothing can be written any more
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> closing_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_KEY_STREAM_H_
