// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/audit/line_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mpc-server/base/limits.h"

namespace mpckdc::audit {
namespace {

constexpr size_t kBlock = 1 << 20;
// A line that is being written at this moment is waited for.
constexpr int kPatience = 5;
constexpr absl::Duration kPause = absl::Milliseconds(20);

absl::Status Unreadable(const std::string& path) {
  return absl::InvalidArgumentError(absl::StrCat("cannot read ", path, ": ", strerror(errno)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<LineReader>> LineReader::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Unreadable(path);
  return std::unique_ptr<LineReader>(new LineReader(path, fd));
}

LineReader::~LineReader() { close(fd_); }

bool LineReader::Fill() {
  if (start_ > 0) {
    buffer_.erase(0, start_);
    scanned_ -= start_;
    start_ = 0;
  }
  const size_t have = buffer_.size();
  buffer_.resize(have + kBlock);
  ssize_t got = read(fd_, buffer_.data() + have, kBlock);
  while (got < 0 && errno == EINTR) got = read(fd_, buffer_.data() + have, kBlock);
  if (got < 0) status_ = Unreadable(path_);
  buffer_.resize(have + static_cast<size_t>(std::max<ssize_t>(got, 0)));
  return got > 0;
}

bool LineReader::Next(absl::string_view* line, bool* ended) {
  size_t newline;
  int waited = 0;
  while ((newline = buffer_.find('\n', std::max(scanned_, start_))) == std::string::npos) {
    scanned_ = buffer_.size();
    if (scanned_ - start_ >= limits::kMaxAuditLineBytes) break;
    if (Fill()) continue;
    const bool unfinished = status_.ok() && !buffer_.empty();
    if (!unfinished || waited++ == kPatience) break;
    absl::SleepFor(kPause);
  }
  if (!status_.ok() || start_ == buffer_.size()) return false;
  const size_t end = std::min(newline, buffer_.size());
  *line = absl::string_view(buffer_).substr(start_, end - start_);
  *ended = newline != std::string::npos;
  if (at_line_start_) ++number_;
  at_line_start_ = *ended;
  start_ = scanned_ = end + (*ended ? 1 : 0);
  return true;
}

}  // namespace mpckdc::audit
