// SPDX-License-Identifier: Apache-2.0
//
// Who was refused at the door, in the audit log: streams and calls of the wrong role, messages that
// are damaged, job ids that do not rise. Whoever floods the server with such must not fill its
// disk: of one kind the first limits::kRefusalLinesPerSecond of a second have a line each, the
// others are counted, and the count is one line. Thread-safe.
#ifndef MPC_SERVER_SERVICE_REFUSAL_LOG_H_
#define MPC_SERVER_SERVICE_REFUSAL_LOG_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "mpc-server/audit/audit_log.h"
#include "mpc-server/base/clock.h"

namespace mpckdc {

class RefusalLog {
 public:
  // Not owned; both must outlive this.
  RefusalLog(AuditLog* audit, Clock* clock) : audit_(audit), clock_(clock) {}
  ~RefusalLog() { Flush(); }

  // A line of kind "refused". `call` tells kinds of refusals apart: there are few.
  void Note(const std::string& call, AuditLog::Fields details);
  // Writes the counts of a second that is over. To be called about once a second.
  void Tick();

 private:
  struct Kind {
    size_t lines = 0;
    uint64_t counted = 0;
    AuditLog::Fields last;  // of those counted
  };

  void Flush();
  void Write(AuditLog::Fields line);

  AuditLog* const audit_;
  Clock* const clock_;
  absl::Mutex mutex_;
  std::map<std::string, Kind> kinds_ ABSL_GUARDED_BY(mutex_);
  absl::Time second_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_REFUSAL_LOG_H_
