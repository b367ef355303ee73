// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/audit_log.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace mpckdc {
namespace {

constexpr int kFormatVersion = 1;
constexpr off_t kTailBytes = 8 << 20;  // longer than the longest line

// The last bytes of the file, at most kTailBytes.
std::string ReadTail(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  const off_t size = lseek(fd, 0, SEEK_END);
  const off_t from = std::max<off_t>(0, size - kTailBytes);
  std::string tail(static_cast<size_t>(std::max<off_t>(0, size - from)), '\0');
  const ssize_t got = pread(fd, tail.data(), tail.size(), from);
  close(fd);
  tail.resize(static_cast<size_t>(std::max<ssize_t>(0, got)));
  return tail;
}

// One more than the number of the last line that can be read; a torn last line is skipped.
uint64_t NextSequence(const std::string& tail) {
  size_t end = tail.size();
  while (end > 0) {
    const size_t newline = tail.rfind('\n', end - 1);
    const size_t start = newline == std::string::npos ? 0 : newline + 1;
    const auto line = nlohmann::json::parse(tail.begin() + static_cast<ptrdiff_t>(start),
                                            tail.begin() + static_cast<ptrdiff_t>(end), nullptr,
                                            /*allow_exceptions=*/false);
    if (line.is_object() && line.contains("seq") && line["seq"].is_number_unsigned()) {
      return line["seq"].get<uint64_t>() + 1;
    }
    if (newline == std::string::npos) break;
    end = newline;
  }
  return 1;
}

absl::Status WriteWhole(int fd, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const std::string what = absl::StrCat("cannot write the audit log: ", strerror(errno));
      return errno == ENOSPC || errno == EDQUOT ? absl::ResourceExhaustedError(what)
                                                : absl::UnavailableError(what);
    }
    text.remove_prefix(static_cast<size_t>(count));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(const std::string& path,
                                                         StoreIdentity identity, Clock* clock) {
  std::unique_ptr<AuditLog> log(new AuditLog(path, std::move(identity), clock));
  const std::string tail = ReadTail(path);
  absl::StatusOr<int> fd = log->OpenFile();
  if (!fd.ok()) return fd.status();
  absl::MutexLock lock(&log->mutex_);
  log->fd_ = *fd;
  log->next_ = NextSequence(tail);
  if (!tail.empty() && tail.back() != '\n') {  // the last line was torn by a crash: end it
    if (absl::Status status = WriteWhole(*fd, "\n"); !status.ok()) return status;
  }
  return log;
}

AuditLog::~AuditLog() {
  absl::MutexLock lock(&mutex_);
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<int> AuditLog::OpenFile() const {
  const int fd = open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
  if (fd >= 0) return fd;
  return absl::UnavailableError(
      absl::StrCat("cannot open the audit log ", path_, ": ", strerror(errno)));
}

absl::Status AuditLog::Append(const std::string& kind, Fields fields) {
  assert(fields.is_object() || fields.is_null());
  absl::MutexLock lock(&mutex_);
  Fields line;
  line["v"] = kFormatVersion;
  line["seq"] = next_;
  line["time"] = absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", clock_->Now(), absl::UTCTimeZone());
  line["realm"] = identity_.realm;
  line["party"] = identity_.party;
  line["kind"] = kind;
  for (auto& [key, value] : fields.items()) line[key] = value;
  const std::string text =
      line.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
  absl::Status status = WriteWhole(fd_, text);
  if (status.ok()) ++next_;
  return status;
}

absl::Status AuditLog::Reopen() {
  absl::StatusOr<int> fd = OpenFile();
  if (!fd.ok()) return fd.status();
  absl::MutexLock lock(&mutex_);
  close(fd_);
  fd_ = *fd;
  return absl::OkStatus();
}

}  // namespace mpckdc
