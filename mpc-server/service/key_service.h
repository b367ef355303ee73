// SPDX-License-Identifier: Apache-2.0
//
// KeyService::Serve: one bidirectional stream per KDC process. A stream (key_stream.h) reads jobs,
// hands them to the engine and writes answers, many per message. This class admits streams and
// keeps what must outlive one of them.
#ifndef MPC_SERVER_SERVICE_KEY_SERVICE_H_
#define MPC_SERVER_SERVICE_KEY_SERVICE_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "mpc-server/agree/job_engine.h"
#include "mpc-server/base/clock.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/service/caller.h"
#include "mpc-server/service/metrics.h"
#include "mpc-server/store/share_store.h"
#include "proto/kdc_key.grpc.pb.h"

namespace mpckdc {

class Acquaintances;
class KeyStream;
class RefusalLog;

// What outlives a stream: a KDC process that lost its connection comes back with the same session.
struct KdcSession {
  std::weak_ptr<KeyStream> stream;  // under KeyService's mutex, as is `seen`
  absl::Time seen;
  std::atomic<JobId> last_id = 0;

  // False unless `id` is above all ids that the session has used.
  bool Raise(JobId id);
};

struct KeyServiceTools {  // not owned; must outlive the service
  JobEngine* engine = nullptr;
  const ShareStore* store = nullptr;
  const Doorkeeper* doorkeeper = nullptr;
  RefusalLog* refusals = nullptr;
  Metrics* metrics = nullptr;
  Clock* clock = nullptr;
  Acquaintances* known = nullptr;  // may be null
};

// Messages pass as bytes, so that one that cannot be parsed is answered as such: gRPC would report
// it like the end of the stream.
using RawStreamReactor = grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

class KeyService final
    : public v1::KeyService::WithRawCallbackMethod_Serve<v1::KeyService::Service> {
 public:
  explicit KeyService(const KeyServiceTools& tools) : tools_(tools) {}
  ~KeyService() override;

  RawStreamReactor* Serve(grpc::CallbackServerContext* context) override;

  // Closes streams that never said hello, or whose certificate expired or was denied meanwhile.
  void Housekeeping();
  // From now on jobs are answered UNAVAILABLE. Call before stopping the engine.
  void Drain();
  // Closes every stream; answers that are ready are written first.
  void CloseAll();
  size_t streams() const;

  // ---- For KeyStream ----
  const KeyServiceTools& tools() const { return tools_; }
  bool draining() const;
  // What the jobs of all streams take, and their answers until they are written.
  void TakeBytes(size_t bytes) { job_bytes_ += bytes; }
  void GiveBytes(size_t bytes) { job_bytes_ -= bytes; }
  bool HasRoomForBytes() const { return job_bytes_ < limits::kMaxJobBytesInFlight; }
  // Binds the stream to its KDC session. An older stream of the session is closed: its connection
  // broke and this server has not noticed.
  std::shared_ptr<KdcSession> Register(const KdcIdentity& kdc,
                                       const std::shared_ptr<KeyStream>& stream);
  void Unregister(KeyStream* stream);

 private:
  using SessionKey = std::pair<std::string, SessionId>;
  absl::Status CheckRoom() const;
  void ForgetOldSessions() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<std::shared_ptr<KeyStream>> Streams() const;

  const KeyServiceTools tools_;
  std::atomic<size_t> job_bytes_ = 0;
  mutable absl::Mutex mutex_;
  std::map<KeyStream*, std::weak_ptr<KeyStream>> streams_ ABSL_GUARDED_BY(mutex_);
  std::map<SessionKey, std::shared_ptr<KdcSession>> sessions_ ABSL_GUARDED_BY(mutex_);
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_KEY_SERVICE_H_
