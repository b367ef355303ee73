// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/key_stream.h"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/base/version.h"
#include "mpc-server/service/job_log.h"
#include "mpc-server/service/line_limit.h"
#include "mpc-server/service/log.h"
#include "mpc-server/service/proto_convert.h"
#include "mpc-server/service/refusal_log.h"
#include "mpc-server/service/refused_jobs.h"
#include "proto/wipe_shares.h"

namespace mpckdc {

namespace {

// Streams also end because the KDC goes, comes back on another one, or the server stops.
bool IsRefusal(const absl::Status& status) {
  return !status.ok() && !absl::IsCancelled(status) && !absl::IsAborted(status) &&
         !absl::IsUnavailable(status);
}

// A KDC may come and go as often as it likes.
void LogStream(spdlog::level::level_enum level, const std::string& text) {
  static auto* const lines = new LineLimit;
  size_t left_out = 0;
  const bool room = lines->Take(absl::ToUnixSeconds(absl::Now()), &left_out);
  if (left_out > 0) Log().info("streams of KDCs: {} lines more in one second before", left_out);
  if (room) Log().log(level, "{}", text);
}

// What a job takes until its answer is written: itself, and the plaintexts of its answer.
size_t BytesOf(const v1::Job& job) {
  size_t bytes = job.ByteSizeLong();
  for (const v1::Open& open : job.opens()) bytes += open.message().size();
  for (const v1::Seal& seal : job.seals()) {
    bytes += std::min<size_t>(seal.max_plaintext(), limits::kMaxSealBytes);
  }
  return bytes;
}

}  // namespace

std::shared_ptr<KeyStream> KeyStream::Start(KeyService* service, Caller caller) {
  std::shared_ptr<KeyStream> stream(new KeyStream(service, std::move(caller)));
  stream->self_ = stream;
  stream->Advance();
  return stream;
}

KeyStream::KeyStream(KeyService* service, Caller caller)
    : service_(service), caller_(std::move(caller)), started_(service->tools().clock->Now()) {}

void KeyStream::Close(absl::Status status) {
  {
    absl::MutexLock lock(&mutex_);
    if (!closing_) closing_ = std::move(status);
  }
  Advance();
}

absl::Status KeyStream::Check() const {
  RETURN_IF_ERROR(service_->tools().doorkeeper->StillGood(caller_));
  service_->tools().doorkeeper->Note(caller_);
  absl::MutexLock lock(&mutex_);
  if (!greeted_ && service_->tools().clock->Now() > started_ + limits::kHelloTimeout) {
    return absl::DeadlineExceededError(absl::StrCat(
        "no hello within ", absl::FormatDuration(limits::kHelloTimeout), " of the stream's start"));
  }
  return absl::OkStatus();
}

// ---- gRPC's side ----

void KeyStream::OnReadDone(bool ok) {
  {
    absl::MutexLock lock(&mutex_);
    reading_ = false;
    half_closed_ = half_closed_ || !ok;
    handling_ = ok && !closing_;
    ok = handling_;
  }
  if (ok) {
    absl::Status status = HandleIncoming();
    absl::MutexLock lock(&mutex_);
    handling_ = false;
    if (!status.ok() && !closing_) closing_ = std::move(status);
  }
  Advance();
}

void KeyStream::OnWriteDone(bool ok) {
  {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
    broken_ = broken_ || !ok;
  }
  Advance();
}

void KeyStream::OnCancel() {
  {
    absl::MutexLock lock(&mutex_);
    broken_ = true;
    half_closed_ = true;
  }
  Advance();
}

void KeyStream::OnDone() {
  service_->Unregister(this);
  self_.reset();  // the engine may still hold a reference for a job's answer
}

void KeyStream::Advance() {
  const std::shared_ptr<KeyStream> keep = shared_from_this();  // OnDone may run at any time below
  std::optional<absl::Status> finish;
  {
    absl::MutexLock lock(&mutex_);
    finish = AdvanceLocked();
  }
  if (!finish) return;
  if (!finish->ok()) {
    LogStream(spdlog::level::warn,
              absl::StrCat("stream of ", caller_.Text(), " closed: ", finish->message()));
  }
  if (IsRefusal(*finish)) NoteRefusal("KeyService.stream", *finish);
  Finish(ToGrpc(*finish));
}

// gRPC never calls back from inside StartRead or StartWrite, so they may start under the lock; and
// must, or a finish on another thread could overtake them.
std::optional<absl::Status> KeyStream::AdvanceLocked() {
  if (finished_) return std::nullopt;
  NoteEnd();
  if (!writing_ && !queue_.empty()) {
    FillOutgoing();
    writing_ = true;
    StartWrite(&outgoing_);
  }
  if (closing_ && !writing_ && !handling_) {
    finished_ = true;
    return closing_;
  }
  const size_t here = in_flight_ + queued_;  // with none nothing would wake a stream that waits
  const bool room = here < limits::kMaxJobsInFlight && (here == 0 || service_->HasRoomForBytes());
  if (!reading_ && !handling_ && !half_closed_ && !closing_ && room) {
    reading_ = true;
    incoming_.Clear();
    StartRead(&incoming_);
  }
  return std::nullopt;
}

void KeyStream::NoteEnd() {
  if (broken_) {
    for (const std::unique_ptr<Outgoing>& waiting : queue_) {
      WipeShares(*waiting->message);
      service_->GiveBytes(waiting->taken);
    }
    queue_.clear();
    queued_ = 0;
    if (!closing_) closing_ = absl::CancelledError("the KDC went away");
  }
  const bool idle = !handling_ && in_flight_ == 0 && queue_.empty() && !writing_;
  if (half_closed_ && idle && !closing_) closing_ = absl::OkStatus();
}

void KeyStream::FillOutgoing() {
  assert(!queue_.empty());
  const std::unique_ptr<Outgoing> next = std::move(queue_.front());
  queue_.pop_front();
  const v1::ServerMessage& message = *next->message;
  queued_ -= static_cast<size_t>(message.jobs_size() + message.tags_size());
  service_->GiveBytes(next->taken);
  outgoing_.Clear();
  bool own = false;
  const grpc::Status encoded =
      grpc::SerializationTraits<v1::ServerMessage>::Serialize(message, &outgoing_, &own);
  assert(encoded.ok());
  WipeShares(*next->message);
}

// A message holds about limits::kMaxAnswerBytes; the welcome stands alone.
KeyStream::Outgoing& KeyStream::NextMessage() {
  const bool full = queue_.empty() || queue_.back()->bytes >= limits::kMaxAnswerBytes ||
                    queue_.back()->message->has_welcome();
  if (full) queue_.push_back(std::make_unique<Outgoing>());
  return *queue_.back();
}

// ---- What a message means ----

absl::Status KeyStream::HandleIncoming() {
  RETURN_IF_ERROR(service_->tools().doorkeeper->StillGood(caller_));
  google::protobuf::Arena arena;  // of thousands of small fields
  v1::KdcMessage& message = *google::protobuf::Arena::CreateMessage<v1::KdcMessage>(&arena);
  if (!grpc::SerializationTraits<v1::KdcMessage>::Deserialize(&incoming_, &message).ok()) {
    return absl::InvalidArgumentError("the message is damaged: it is no KdcMessage");
  }
  bool greeted;
  {
    absl::MutexLock lock(&mutex_);
    greeted = greeted_;
  }
  return greeted ? HandleJobs(message) : HandleHello(message);
}

absl::Status KeyStream::CheckHello(const v1::Hello& hello) const {
  // Both go into logs, which no KDC must fill.
  if (std::max(hello.realm().size(), hello.software().size()) > limits::kMaxRealmBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the hello names a realm in ", hello.realm().size(), " and a program in ",
        hello.software().size(), " bytes, at most ", limits::kMaxRealmBytes, " are allowed"));
  }
  if (hello.min_version() > limits::kMaxKdcVersion ||
      hello.max_version() < limits::kMinKdcVersion || hello.min_version() > hello.max_version()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "no common version: the KDC speaks ", hello.min_version(), " to ", hello.max_version(),
        ", this server ", limits::kMinKdcVersion, " to ", limits::kMaxKdcVersion,
        "; the KDC's plugin and the servers must be of the same version"));
  }
  const std::string& realm = service_->tools().doorkeeper->realm();
  if (hello.realm() != realm) {
    return absl::FailedPreconditionError(absl::StrCat("the KDC serves realm ", hello.realm(),
                                                      ", this server realm ", realm));
  }
  return Bytes16(hello.session(), "the session id").status();
}

absl::Status KeyStream::HandleHello(const v1::KdcMessage& message) {
  if (!message.has_hello() || message.jobs_size() > 0 || message.tags_size() > 0) {
    return absl::InvalidArgumentError("the first message must hold hello and nothing else");
  }
  const v1::Hello& hello = message.hello();
  RETURN_IF_ERROR(CheckHello(hello));
  kdc_ = {caller_.name, *Bytes16(hello.session(), "the session id")};
  session_ = service_->Register(kdc_, shared_from_this());
  LogStream(spdlog::level::info,
            absl::StrCat("KDC ", caller_.name, " connected (", hello.software(), ")"));

  const StoreMeta meta = service_->tools().store->Meta();
  absl::MutexLock lock(&mutex_);
  v1::Welcome* welcome = NextMessage().message->mutable_welcome();
  welcome->set_version(std::min(hello.max_version(), limits::kMaxKdcVersion));
  welcome->set_party(static_cast<uint32_t>(meta.identity.party));
  welcome->set_realm(meta.identity.realm);
  welcome->set_cluster(service_->tools().store->cluster());
  welcome->set_epoch(meta.epoch);
  welcome->set_time_us(absl::ToUnixMicros(service_->tools().clock->Now()));
  welcome->set_max_message_bytes(limits::kMaxMessageBytes);
  welcome->set_max_jobs_in_flight(limits::kMaxJobsInFlight);
  welcome->set_software("mpc-server " MPCKDC_VERSION);
  greeted_ = true;
  return absl::OkStatus();
}

// Whatever becomes of the jobs, no share of a plaintext stays in the message.
absl::Status KeyStream::HandleJobs(v1::KdcMessage& message) {
  const absl::Cleanup wipe = [&message] { WipeShares(message); };
  if (message.has_hello()) return absl::InvalidArgumentError("a second hello on one stream");
  const size_t count = static_cast<size_t>(message.jobs_size()) + message.tags_size();
  if (count > limits::kMaxJobsPerMessage) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a message holds at most ", limits::kMaxJobsPerMessage,
                     " jobs and tag requests, not ", count));
  }
  for (v1::TagRequest& request : *message.mutable_tags()) TakeTag(request);
  for (v1::Job& job : *message.mutable_jobs()) {
    RETURN_IF_ERROR(TakeJob(job));
  }
  return absl::OkStatus();
}

// A job id that does not rise ends the stream: an answer could not say which job it is for.
absl::Status KeyStream::TakeJob(v1::Job& in) {
  if (!session_->Raise(in.id())) {
    return absl::InvalidArgumentError(absl::StrCat("job id ", in.id(), " after ",
                                                   session_->last_id.load(),
                                                   ": ids must rise and are never used again"));
  }
  {
    absl::MutexLock lock(&mutex_);
    ++in_flight_;
  }
  const size_t bytes = BytesOf(in);
  service_->TakeBytes(bytes);
  absl::StatusOr<Job> job = JobFromProto(in);
  if (!job.ok()) {
    NoteRefusal("KeyService.job", job.status(), in.id(), in.request());
    service_->tools().metrics->JobDone(Operation::kUnspecified, Verdict::kMalformed,
                                       absl::ZeroDuration());
    Judgement malformed = Refuse(Verdict::kMalformed, std::string(job.status().message()));
    LogJob({caller_.name, in.id(), "a job", in.request()}, malformed);
    Answer({in.id(), std::move(malformed), {}, {}, {}}, bytes);
  } else if (service_->draining()) {
    Answer({in.id(), Refuse(Verdict::kUnavailable, "the server is stopping"), {}, {}, {}}, bytes);
  } else {
    SubmitJob(*std::move(job), bytes);
  }
  return absl::OkStatus();
}

// What the engine never sees: it accounts for the jobs that it answers itself.
void KeyStream::NoteRefusal(const char* call, const absl::Status& status, JobId id,
                            uint64_t request) {
  AuditLog::Fields details = {{"kdc", caller_.name}};
  if (id != 0) details["id"] = id;
  if (request != 0) details["request"] = RequestText(request);
  details["reason"] = Text(status);
  service_->tools().refusals->Note(call, std::move(details));
}

void KeyStream::SubmitJob(Job job, size_t bytes) {
  const absl::Time start = service_->tools().clock->Now();
  const Operation operation = job.operation;
  const uint64_t request = job.request;
  service_->tools().engine->Submit(
      kdc_, std::move(job),
      [self = shared_from_this(), start, operation, request, bytes](JobResult result) {
        const KeyServiceTools& tools = self->service_->tools();
        tools.metrics->JobDone(operation, result.judgement.verdict, tools.clock->Now() - start);
        if (!result.judgement.ok()) {
          LogJob({self->caller_.name, result.id, OperationText(operation), request},
                 result.judgement);
        }
        if (self->Answer(std::move(result), bytes)) self->Advance();
      });
}

bool KeyStream::Answer(JobResult result, size_t bytes) {
  absl::MutexLock lock(&mutex_);
  assert(in_flight_ > 0);
  --in_flight_;
  if (gone()) {
    service_->GiveBytes(bytes);
    return !writing_;
  }
  ++queued_;
  Outgoing& next = NextMessage();
  v1::JobAnswer* answer = next.message->add_jobs();
  JobResultToProto(std::move(result), answer);
  next.bytes += answer->ByteSizeLong();
  next.taken += bytes;
  return !writing_;
}

void KeyStream::TakeTag(v1::TagRequest& in) {
  const TagResult result =
      service_->tools().engine->FinishTag(kdc_, TagRequestFromProto(in));
  if (!result.judgement.ok()) {
    NoteRefusal("KeyService.tag", absl::FailedPreconditionError(result.judgement.detail),
                result.job, in.request());
    LogJob({caller_.name, result.job, "a tag", in.request()}, result.judgement);
  }
  service_->tools().metrics->TagDone(result.judgement.verdict);
  absl::MutexLock lock(&mutex_);
  if (gone()) return;
  ++queued_;
  Outgoing& next = NextMessage();
  v1::TagAnswer* answer = next.message->add_tags();
  TagResultToProto(result, answer);
  next.bytes += answer->ByteSizeLong();
}

}  // namespace mpckdc
