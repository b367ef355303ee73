// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/storm/login_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "integration-tests/storm/limits.h"
#include "integration-tests/storm/options.h"
#include "integration-tests/storm/run.h"

namespace mpckdc::storm {
namespace {

// By Outcome.
constexpr const char* kNames[] = {"ok", "refused", "failed", "wrong", "lost"};

}  // namespace

absl::Status EmptyLoginLog(const std::string& file) {
  if (std::ofstream(file, std::ios::trunc)) return absl::OkStatus();
  return Bad("--log ", file, " cannot be written: ", strerror(errno));
}

LoginLog::~LoginLog() {
  if (fd_ >= 0) close(fd_);
}

absl::Status LoginLog::Open(const std::string& file) {
  fd_ = open(file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd_ < 0) return Bad("--log ", file, " cannot be written: ", strerror(errno));
  to_wall_ = absl::Now() - MonotonicNow();
  next_ = MonotonicNow() + limits::kLogInterval;
  return absl::OkStatus();
}

void LoginLog::Add(absl::Time due, absl::Time ended, Outcome outcome, int code, int sends,
                   absl::string_view user) {
  if (fd_ < 0) return;
  absl::StrAppendFormat(&buffer_, "%.6f %.3f %s %d %d %s\n",
                        absl::ToDoubleSeconds(due + to_wall_ - absl::UnixEpoch()),
                        absl::ToDoubleMilliseconds(ended - due),
                        kNames[static_cast<size_t>(outcome)], code, sends, user);
}

absl::Status LoginLog::WriteSome(absl::Time now) {
  if (now < next_) return absl::OkStatus();
  next_ = now + limits::kLogInterval;
  return WriteAll();
}

absl::Status LoginLog::WriteAll() {
  if (buffer_.empty()) return absl::OkStatus();
  const ssize_t written = write(fd_, buffer_.data(), buffer_.size());
  if (written != static_cast<ssize_t>(buffer_.size())) {
    return absl::InternalError(
        absl::StrFormat("the log cannot be written: %s", written < 0 ? strerror(errno) : "full"));
  }
  buffer_.clear();
  return absl::OkStatus();
}

}  // namespace mpckdc::storm
