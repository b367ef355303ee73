// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/key_service.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "mpc-server/audit/audit_log.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/service/key_stream.h"
#include "mpc-server/service/log.h"
#include "mpc-server/service/proto_convert.h"
#include "mpc-server/service/refusal_log.h"
#include "mpc-server/wire/front_door.h"

namespace mpckdc {
namespace {

constexpr size_t kMaxSessions = 8 * limits::kMaxStreamsPerServer;

// A stream that is refused before it begins.
class Refusal final : public RawStreamReactor {
 public:
  explicit Refusal(const absl::Status& status) { Finish(ToGrpc(status)); }
  void OnDone() override { delete this; }
};

}  // namespace

bool KdcSession::Raise(JobId id) {
  JobId last = last_id.load();
  while (id > last) {
    if (last_id.compare_exchange_weak(last, id)) return true;
  }
  return false;
}

KeyService::~KeyService() = default;

absl::Status KeyService::CheckRoom() const {
  absl::MutexLock lock(&mutex_);
  if (draining_) return absl::UnavailableError("the server is stopping");
  if (streams_.size() < limits::kMaxStreamsPerServer) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(limits::kMaxStreamsPerServer, " streams are open already"));
}

RawStreamReactor* KeyService::Serve(grpc::CallbackServerContext* context) {
  absl::StatusOr<Caller> caller =
      tools_.doorkeeper->Admit(*context->auth_context(), "KeyService.Serve", {"kdc"});
  absl::Status status = caller.status();
  status.Update(CheckRoom());
  if (!status.ok()) {
    Log().warn("refused a stream from {}: {}", context->peer(), Text(status));
    tools_.refusals->Note("KeyService.Serve",
                          {{"from", context->peer()}, {"reason", Text(status)}});
    return new Refusal(status);
  }
  if (tools_.known != nullptr) tools_.known->Meet(context->peer());
  std::shared_ptr<KeyStream> stream = KeyStream::Start(this, *std::move(caller));
  absl::MutexLock lock(&mutex_);
  streams_[stream.get()] = stream;
  return stream.get();
}

std::vector<std::shared_ptr<KeyStream>> KeyService::Streams() const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::shared_ptr<KeyStream>> streams;
  for (const auto& [pointer, weak] : streams_) {
    if (auto stream = weak.lock()) streams.push_back(std::move(stream));
  }
  return streams;
}

void KeyService::Housekeeping() {
  for (const std::shared_ptr<KeyStream>& stream : Streams()) {
    if (absl::Status status = stream->Check(); !status.ok()) stream->Close(std::move(status));
  }
}

void KeyService::Drain() {
  absl::MutexLock lock(&mutex_);
  draining_ = true;
}

void KeyService::CloseAll() {
  for (const std::shared_ptr<KeyStream>& stream : Streams()) {
    stream->Close(absl::UnavailableError("the server is stopping"));
  }
}

size_t KeyService::streams() const {
  absl::MutexLock lock(&mutex_);
  return streams_.size();
}

bool KeyService::draining() const {
  absl::MutexLock lock(&mutex_);
  return draining_;
}

std::shared_ptr<KdcSession> KeyService::Register(const KdcIdentity& kdc,
                                                 const std::shared_ptr<KeyStream>& stream) {
  std::shared_ptr<KeyStream> older;
  std::shared_ptr<KdcSession> session;
  {
    absl::MutexLock lock(&mutex_);
    std::shared_ptr<KdcSession>& slot = sessions_[{kdc.name, kdc.session}];
    if (slot == nullptr) slot = std::make_shared<KdcSession>();
    session = slot;
    older = session->stream.lock();
    session->stream = stream;
    session->seen = tools_.clock->Now();
    ForgetOldSessions();
  }
  if (older != nullptr) {
    older->Close(absl::AbortedError("the KDC session has opened a new stream"));
  }
  return session;
}

// Sessions without a stream go, the oldest first, when there are too many.
void KeyService::ForgetOldSessions() {
  while (sessions_.size() > kMaxSessions) {
    auto oldest = sessions_.end();
    for (auto it = sessions_.begin(); it != sessions_.end(); ++it) {
      if (!it->second->stream.expired()) continue;
      if (oldest == sessions_.end() || it->second->seen < oldest->second->seen) oldest = it;
    }
    if (oldest == sessions_.end()) return;
    sessions_.erase(oldest);
  }
}

void KeyService::Unregister(KeyStream* stream) {
  absl::MutexLock lock(&mutex_);
  streams_.erase(stream);
}

}  // namespace mpckdc
