// SPDX-License-Identifier: Apache-2.0
//
// What this server did and for whom: one JSON object per line, append only, one line per batch and
// per administrative act. Each line has a sequence number that rises by one; a field that chains
// lines by a hash can be added without changing the others. Nothing in it is secret.
//
// Fields of every line: v (format, 1), seq, time (UTC), realm, party, kind. The rest depends on the
// kind: "start", "stop", "batch", "admin", "refused", "sealing", "peers".
#ifndef MPC_SERVER_SERVICE_AUDIT_LOG_H_
#define MPC_SERVER_SERVICE_AUDIT_LOG_H_

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "mpc-server/clock/clock.h"
#include "mpc-server/store/share_store.h"

namespace mpckdc {

class AuditLog {
 public:
  using Fields = nlohmann::ordered_json;

  // Continues the file's numbering. `clock` must outlive the log.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(const std::string& path,
                                                        StoreIdentity identity, Clock* clock);
  ~AuditLog();

  // One line, written whole. An error means that nobody may rely on the act being recorded.
  absl::Status Append(const std::string& kind, Fields fields);
  // After the file was rotated away; numbering goes on.
  absl::Status Reopen();

 private:
  AuditLog(std::string path, StoreIdentity identity, Clock* clock)
      : path_(std::move(path)), identity_(std::move(identity)), clock_(clock) {}
  absl::StatusOr<int> OpenFile() const;

  const std::string path_;
  const StoreIdentity identity_;
  Clock* const clock_;
  absl::Mutex mutex_;
  int fd_ ABSL_GUARDED_BY(mutex_) = -1;
  uint64_t next_ ABSL_GUARDED_BY(mutex_) = 1;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_AUDIT_LOG_H_
