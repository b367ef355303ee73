// SPDX-License-Identifier: Apache-2.0
//
// Writes the audit log of one server: what it did and for whom, one JSON object per line, append
// only, each line chained to the one before by its hash (doc/audit_log_format.md). Nothing in it is
// secret.
//
// A line is written by one write(2) before Append() returns; when it reaches the disk is the choice
// of AuditSync. A line that could not be written is no part of the chain, and Ready() says why
// until one can be written again; the next line then is one of kind "audit" that says since when
// lines may be missing.
#ifndef MPC_SERVER_AUDIT_AUDIT_LOG_H_
#define MPC_SERVER_AUDIT_AUDIT_LOG_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "mpc-server/audit/files.h"
#include "mpc-server/audit/line.h"
#include "mpc-server/audit/sync.h"
#include "mpc-server/base/clock.h"
#include "mpc-server/base/limits.h"

namespace mpckdc {

struct AuditLogOptions {
  std::string path;
  audit::Owner owner;
  AuditSync sync = AuditSync::kInterval;
  uint64_t rotate_bytes = limits::kDefaultAuditRotateMib << 20;  // 0: never
  size_t keep_files = 0;  // rotated files kept beside the one that is written; 0: all
  // Told what the administrator should know and no call returns. May be empty.
  std::function<void(const std::string&)> complain;
};

struct AuditStatus {
  audit::Head head;
  uint64_t lines = 0;     // written since the start
  uint64_t failures = 0;  // lines that could not be written
  std::string failing;    // empty, or why no line can be written now
};

class AuditLog {
 public:
  using Fields = audit::Fields;

  // Continues the chain of the file, or of the file that was rotated away from its place. `clock`
  // must outlive the log.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(AuditLogOptions options, Clock* clock);
  ~AuditLog();
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  // One line. An error means that nobody may rely on the act being recorded.
  absl::Status Append(absl::string_view kind, const Fields& fields) {
    return AppendMembers(kind, audit::MembersOf(fields));
  }
  absl::Status AppendMembers(absl::string_view kind, const audit::Members& members);
  // OK, or why the last line was not written.
  absl::Status Ready() const;
  // After logrotate took the file away: goes on in a new one.
  absl::Status Reopen();
  // About once a second: syncs, and tries again after a failure.
  void Tick();
  AuditStatus Status() const;

 private:
  AuditLog(AuditLogOptions options, Clock* clock) : options_(std::move(options)), clock_(clock) {}
  absl::Status OpenFile() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status FindHead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status HeadOfSiblings() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckOwner(const std::string& path, const audit::Tail& tail) const;
  absl::Status Write(absl::string_view kind, const audit::Members& members)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string Encode(absl::string_view kind, const audit::Members& members, audit::Head* head)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeBack(int64_t size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteTail(const audit::Tail& tail) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteFailure(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RotateIfDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Rotate() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Fields DropOldFiles() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Complain(const std::string& what) const;

  const AuditLogOptions options_;
  Clock* const clock_;
  mutable absl::Mutex mutex_;
  int fd_ ABSL_GUARDED_BY(mutex_) = -1;
  bool regular_ ABSL_GUARDED_BY(mutex_) = true;  // a file, no device
  audit::Head head_ ABSL_GUARDED_BY(mutex_);
  uint64_t first_ ABSL_GUARDED_BY(mutex_) = 1;   // number of the file's first line
  bool ended_ ABSL_GUARDED_BY(mutex_) = true;    // the file ends with a newline
  uint64_t torn_ ABSL_GUARDED_BY(mutex_) = 0;    // bytes of an unfinished line that the next names
  std::string torn_hash_ ABSL_GUARDED_BY(mutex_);
  bool dirty_ ABSL_GUARDED_BY(mutex_) = false;   // written and not synced
  uint64_t lines_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t failures_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status failing_ ABSL_GUARDED_BY(mutex_);
  absl::Time failing_since_ ABSL_GUARDED_BY(mutex_);
  absl::Time rotate_after_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

// What a line of kind "start" says besides: the kernel's boot id, by which `audit reconcile` tells
// a killed process, which loses no written line, from a power failure; and the policy.
AuditLog::Fields AuditStartFields(AuditSync sync);

}  // namespace mpckdc

#endif  // MPC_SERVER_AUDIT_AUDIT_LOG_H_
