// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/audit/audit_log.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cassert>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc {
namespace {

using audit::Head;
using audit::Members;
using audit::MembersOf;
using audit::Tail;

constexpr mode_t kMode = 0640;
constexpr absl::Duration kRotateRetry = absl::Minutes(1);

absl::Status SystemError(const std::string& what) {
  const std::string text = absl::StrCat(what, ": ", strerror(errno));
  return errno == ENOSPC || errno == EDQUOT ? absl::ResourceExhaustedError(text)
                                            : absl::UnavailableError(text);
}

absl::Status WriteWhole(int fd, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError("cannot write the audit log");
    text.remove_prefix(static_cast<size_t>(count));
  }
  return absl::OkStatus();
}

absl::Status SyncFile(int fd) {
  if (fdatasync(fd) == 0 || errno == EINVAL) return absl::OkStatus();  // EINVAL: a device
  return SystemError("cannot bring the audit log to the disk");
}

// A new name is durable once its folder is.
void SyncFolderOf(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const int fd = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  (void)fsync(fd);
  close(fd);
}

std::string Rfc3339(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", time, absl::UTCTimeZone());
}

std::string BaseName(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

const char* SyncName(AuditSync sync) {
  switch (sync) {
    case AuditSync::kBatch: return "batch";
    case AuditSync::kInterval: return "interval";
    case AuditSync::kNever: return "never";
  }
  return "";
}

}  // namespace

// ---- Opening ----

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(AuditLogOptions options, Clock* clock) {
  std::unique_ptr<AuditLog> log(new AuditLog(std::move(options), clock));
  absl::MutexLock lock(&log->mutex_);
  RETURN_IF_ERROR(log->OpenFile());
  RETURN_IF_ERROR(log->FindHead());
  return log;
}

AuditLog::~AuditLog() {
  absl::MutexLock lock(&mutex_);
  if (fd_ < 0) return;
  if (dirty_ && options_.sync == AuditSync::kInterval) (void)SyncFile(fd_);
  close(fd_);
}

// Takes the place of fd_. Two writers would fork the chain: the file is locked.
absl::Status AuditLog::OpenFile() {
  const int fd =
      open(options_.path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, kMode);
  if (fd < 0) return SystemError(absl::StrCat("cannot open the audit log ", options_.path));
  struct stat info = {};
  struct stat current = {};
  (void)fstat(fd, &info);
  const bool same = fd_ >= 0 && fstat(fd_, &current) == 0 && current.st_dev == info.st_dev &&
                    current.st_ino == info.st_ino;
  if (same) {  // closing it would drop the lock as well
    close(fd);
    return absl::OkStatus();
  }
  regular_ = S_ISREG(info.st_mode);
  if (regular_ && flock(fd, LOCK_EX | LOCK_NB) != 0) {
    close(fd);
    return absl::FailedPreconditionError(
        absl::StrCat("another process writes the audit log ", options_.path,
                     ": give each server its own [audit] file"));
  }
  if (fd_ >= 0) {
    if (dirty_ && options_.sync != AuditSync::kNever) (void)SyncFile(fd_);
    close(fd_);
  }
  fd_ = fd;
  dirty_ = false;
  SyncFolderOf(options_.path);
  return absl::OkStatus();
}

absl::Status AuditLog::CheckOwner(const std::string& path, const Tail& tail) const {
  if (!tail.head || tail.owner == audit::OwnerText(options_.owner)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(path, " is the audit log of ", tail.owner, ", and this server is ",
                   audit::OwnerText(options_.owner), ": name another [audit] file"));
}

// What the end of the file says about the next line.
void AuditLog::NoteTail(const Tail& tail) {
  ended_ = tail.ended;
  torn_ = tail.torn;
  torn_hash_ = tail.torn_hash;
}

absl::Status AuditLog::FindHead() {
  if (!regular_) return absl::OkStatus();
  ASSIGN_OR_RETURN(Tail tail, audit::ReadTail(options_.path));
  if (tail.foreign) {
    return absl::FailedPreconditionError(
        absl::StrCat(options_.path, " does not end with a line of an audit log of format ",
                     audit::kFormatVersion, ": move it away, or name another [audit] file"));
  }
  RETURN_IF_ERROR(CheckOwner(options_.path, tail));
  if (tail.head) {
    head_ = *tail.head;
    ASSIGN_OR_RETURN(first_, audit::FirstLine(options_.path));
  } else if (absl::Status s = HeadOfSiblings(); !s.ok()) {
    return s;
  }
  if (tail.head || tail.torn > 0) NoteTail(tail);
  if (!tail.head) first_ = head_.seq + 1;
  return absl::OkStatus();
}

// The file is new. It goes on where the newest of those rotated away ended.
absl::Status AuditLog::HeadOfSiblings() {
  for (const std::string& path : audit::Siblings(options_.path)) {
    ASSIGN_OR_RETURN(Tail tail, audit::ReadTail(path));
    if (!tail.head || tail.head->seq <= head_.seq) continue;
    RETURN_IF_ERROR(CheckOwner(path, tail));
    head_ = *tail.head;
    torn_ = tail.torn;  // named by the next line, in the new file
    torn_hash_ = tail.torn_hash;
  }
  return absl::OkStatus();
}

// ---- Writing ----

absl::Status AuditLog::AppendMembers(absl::string_view kind, const Members& members) {
  absl::MutexLock lock(&mutex_);
  RotateIfDue();
  return Write(kind, members);
}

// One line; the first after an unfinished one names what is torn.
std::string AuditLog::Encode(absl::string_view kind, const Members& members, Head* head) {
  if (torn_ == 0) return audit::EncodeLine(options_.owner, clock_->Now(), kind, members, head);
  const Members torn = MembersOf({{"torn", {{"bytes", torn_}, {"sha256", torn_hash_}}}});
  const Members named = {
      absl::StrCat(members.text, members.text.empty() ? "" : ",", torn.text)};
  return audit::EncodeLine(options_.owner, clock_->Now(), kind, named, head);
}

// One write(2) for the line and what has to come before it.
absl::Status AuditLog::Write(absl::string_view kind, const Members& members) {
  struct stat info = {};
  if (regular_ && fstat(fd_, &info) == 0 && info.st_nlink == 0) {
    Complain(absl::StrCat("the audit log ", options_.path,
                          " was deleted while it was written: going on in a new file"));
    const absl::Status reopened = OpenFile();
    if (!reopened.ok()) {
      NoteFailure(reopened);
      return reopened;
    }
    ended_ = true;
    first_ = head_.seq + 1;
    info.st_size = 0;
  }
  Head head = head_;
  std::string text = ended_ ? "" : "\n";
  if (!failing_.ok()) {
    text += Encode("audit", MembersOf({{"event", "resumed"},
                                       {"since", Rfc3339(failing_since_)},
                                       {"reason", std::string(failing_.message())}}), &head);
  }
  const bool named = !failing_.ok();  // then the line above names what is torn
  if (!kind.empty()) {
    text += named ? audit::EncodeLine(options_.owner, clock_->Now(), kind, members, &head)
                  : Encode(kind, members, &head);
  }
  absl::Status status = text.size() <= limits::kMaxAuditLineBytes
                            ? WriteWhole(fd_, text)
                            : absl::ResourceExhaustedError("a line of the audit log is too long");
  if (!status.ok()) {
    TakeBack(info.st_size);
    NoteFailure(status);
    return status;
  }
  lines_ += head.seq - head_.seq;
  head_ = std::move(head);
  ended_ = true;
  torn_ = 0;
  dirty_ = true;
  // After a failure the disk is asked at once whether it is well again.
  const bool at_once = options_.sync == AuditSync::kBatch ||
                       (options_.sync == AuditSync::kInterval && !failing_.ok());
  if (at_once) status = SyncFile(fd_);
  if (status.ok()) {
    dirty_ = !at_once;
    failing_ = absl::OkStatus();
  } else {
    NoteFailure(status);
  }
  return status;
}

// Removes what a failed write left. Where the file may not be cut (chattr +a), the next line names
// it.
void AuditLog::TakeBack(int64_t size) {
  if (!regular_ || ftruncate(fd_, size) == 0) return;
  absl::StatusOr<Tail> tail = audit::ReadTail(options_.path);
  if (tail.ok()) NoteTail(*tail);
}

void AuditLog::NoteFailure(const absl::Status& why) {
  ++failures_;
  if (!failing_.ok()) return;
  failing_ = why;
  failing_since_ = clock_->Now();
}

absl::Status AuditLog::Ready() const {
  absl::MutexLock lock(&mutex_);
  return failing_;
}

AuditStatus AuditLog::Status() const {
  absl::MutexLock lock(&mutex_);
  return {head_, lines_, failures_, std::string(failing_.message())};
}

// Syncs without the lock, so that no line waits for it.
void AuditLog::Tick() {
  int copy = -1;
  {
    absl::MutexLock lock(&mutex_);
    if (!failing_.ok()) (void)Write("", Members());
    if (dirty_ && options_.sync == AuditSync::kInterval) {
      copy = dup(fd_);
      dirty_ = false;
    }
  }
  if (copy < 0) return;
  const absl::Status synced = SyncFile(copy);
  close(copy);
  if (synced.ok()) return;
  absl::MutexLock lock(&mutex_);
  dirty_ = true;
  NoteFailure(synced);
}

void AuditLog::Complain(const std::string& what) const {
  if (options_.complain) options_.complain(what);
}

// ---- Rotation ----

absl::Status AuditLog::Reopen() {
  absl::MutexLock lock(&mutex_);
  const int before = fd_;
  RETURN_IF_ERROR(OpenFile());
  if (fd_ == before) return absl::OkStatus();
  ASSIGN_OR_RETURN(Tail tail, audit::ReadTail(options_.path));
  ended_ = tail.ended;
  first_ = head_.seq + 1;
  if (tail.head || tail.torn > 0) {
    return absl::DataLossError(
        absl::StrCat("the audit log ", options_.path,
                     " was not empty when it was opened again: its chain is broken there"));
  }
  return absl::OkStatus();
}

void AuditLog::RotateIfDue() {
  struct stat info = {};
  if (options_.rotate_bytes == 0 || !regular_ || fstat(fd_, &info) != 0) return;
  if (static_cast<uint64_t>(info.st_size) < options_.rotate_bytes) return;
  const absl::Time now = clock_->Now();
  if (now < rotate_after_ || !failing_.ok()) return;
  const absl::Status rotated = Rotate();
  if (rotated.ok()) return;
  rotate_after_ = now + kRotateRetry;
  Complain(absl::StrCat("cannot rotate the audit log, it grows on: ", rotated.message()));
}

// Everything of the old file is on the disk before it gets its name. A failure changes nothing.
absl::Status AuditLog::Rotate() {
  if (!ended_) return absl::OkStatus();  // the next line ends it first
  RETURN_IF_ERROR(SyncFile(fd_));
  const std::string name = audit::RotatedName(options_.path, first_);
  if (access(name.c_str(), F_OK) == 0) {
    return absl::AlreadyExistsError(absl::StrCat(name, " is there already: move it away"));
  }
  if (rename(options_.path.c_str(), name.c_str()) != 0) {
    return SystemError(absl::StrCat("cannot rename it to ", name));
  }
  if (absl::Status s = OpenFile(); !s.ok()) {
    (void)rename(name.c_str(), options_.path.c_str());
    return s;
  }
  const uint64_t from = std::exchange(first_, head_.seq + 1);
  Fields line = {{"event", "rotated"}, {"file", BaseName(name)}, {"from", from}, {"to", head_.seq}};
  line["deleted"] = DropOldFiles();
  return Write("audit", MembersOf(line));
}

AuditLog::Fields AuditLog::DropOldFiles() {
  Fields deleted = Fields::array();
  if (options_.keep_files == 0) return deleted;
  std::vector<std::string> files = audit::RotatedFiles(options_.path);
  for (size_t i = 0; i + options_.keep_files < files.size(); ++i) {
    if (unlink(files[i].c_str()) == 0) deleted.push_back(BaseName(files[i]));
  }
  return deleted;
}

AuditLog::Fields AuditStartFields(AuditSync sync) {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return {{"boot", boot}, {"sync", SyncName(sync)}};
}

}  // namespace mpckdc
