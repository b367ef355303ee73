// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/audit/files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc::audit {
namespace {

namespace fs = std::filesystem;

constexpr size_t kFirstTail = 64 << 10;
constexpr absl::string_view kGzip = "\x1f\x8b";

constexpr size_t kBlock = 64 << 10;
// A line that is being written at this moment is waited for.
constexpr int kPatience = 5;
constexpr absl::Duration kPause = absl::Milliseconds(20);

absl::Status Unreadable(const std::string& path) {
  return absl::InvalidArgumentError(absl::StrCat("cannot read ", path, ": ", strerror(errno)));
}

absl::Status SystemError(const std::string& what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", strerror(errno)));
}

// The last `size` bytes of the file, or all of it.
absl::StatusOr<std::string> LastBytes(const std::string& path, size_t size, bool* whole) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) return SystemError(absl::StrCat("cannot read the audit log ", path));
  const auto end = static_cast<size_t>(std::max<std::streamoff>(0, in.tellg()));
  const size_t from = end - std::min(end, size);
  *whole = from == 0;
  std::string bytes(end - from, '\0');
  in.seekg(static_cast<std::streamoff>(from));
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(in.gcount()));
  return bytes;
}

// Finds the last whole line in `bytes`; what follows it is torn. False when there is none.
bool FindLast(absl::string_view bytes, Tail* tail) {
  size_t end = bytes.size();
  while (true) {
    const size_t newline = end == 0 ? absl::string_view::npos : bytes.rfind('\n', end - 1);
    const size_t start = newline == absl::string_view::npos ? 0 : newline + 1;
    const std::optional<Line> line = ParseLine(bytes.substr(start, end - start));
    if (line && HashHolds(*line)) {
      tail->head = Head{line->seq, std::string(line->hash)};
      tail->owner = std::string(line->owner);
      bytes.remove_prefix(std::min(end + 1, bytes.size()));
      break;
    }
    if (newline == absl::string_view::npos) break;
    end = newline;
  }
  if (!bytes.empty() && bytes.back() == '\n') bytes.remove_suffix(1);
  tail->torn = bytes.size();
  if (tail->torn > 0) tail->torn_hash = HashText(bytes);
  return tail->head.has_value();
}

constexpr char kEmpty[] = "is empty";

bool IsCompressed(const std::string& name) {
  return absl::EndsWith(name, ".gz") || absl::EndsWith(name, ".xz") ||
         absl::EndsWith(name, ".zst") || absl::EndsWith(name, ".bz2");
}

// "" when the file holds a line of an audit log, or begins like one; otherwise why not.
absl::StatusOr<std::string> WhyNotALog(const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<LineReader> reader, LineReader::Open(path));
  absl::string_view line;
  bool ended;
  if (!reader->Next(&line, &ended)) {
    RETURN_IF_ERROR(reader->status());
    return std::string(kEmpty);
  }
  if (absl::StartsWith(line, kGzip)) return std::string("is compressed: unpack it first (gunzip)");
  if (absl::StartsWith(line, "{\"v\":1,")) {
    return std::string("has format 1, which had no chain and cannot be verified");
  }
  if (absl::StartsWith(line, "{\"v\":")) return std::string();
  ASSIGN_OR_RETURN(uint64_t first, FirstLine(path));  // its beginning may have been altered
  return std::string(first == 0 ? "is no audit log" : "");
}

// Reads no more than the beginning: a folder may hold anything.
bool BeginsLikeALog(const std::string& path) {
  char start[5] = {};
  std::ifstream(path, std::ios::binary).read(start, sizeof start);
  return absl::string_view(start, sizeof start) == "{\"v\":";
}

// The audit logs of a folder: what begins like one, and what is called so. A compressed one is an
// error: its lines would seem to be missing.
absl::Status AddFolder(const std::string& folder, std::vector<std::string>* paths) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string path = it->path().string();
    std::error_code ignored;
    if (!it->is_regular_file(ignored)) continue;
    const bool named = absl::StrContains(it->path().filename().string(), "audit");
    if (!named && !BeginsLikeALog(path)) continue;
    ASSIGN_OR_RETURN(std::string why, WhyNotALog(path));
    if (why.empty()) paths->push_back(path);
    if (named && absl::StrContains(why, "compressed")) {
      return absl::InvalidArgumentError(absl::StrCat(path, " ", why));
    }
  }
  if (!error) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("cannot read the folder ", folder, ": ", error.message()));
}

}  // namespace

absl::StatusOr<uint64_t> FirstLine(const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<LineReader> reader, LineReader::Open(path));
  absl::string_view text;
  bool ended;
  while (reader->Next(&text, &ended)) {
    if (const std::optional<Line> line = ParseLine(text)) return line->seq;
  }
  RETURN_IF_ERROR(reader->status());
  return 0;
}

absl::StatusOr<std::vector<LogFile>> FindFiles(absl::Span<const std::string> paths) {
  std::vector<std::string> all;
  for (const std::string& path : paths) {
    std::error_code error;
    if (fs::is_directory(path, error)) {
      const size_t before = all.size();
      RETURN_IF_ERROR(AddFolder(path, &all));
      if (all.size() > before) continue;
      return absl::InvalidArgumentError(absl::StrCat(path, " holds no audit log"));
    }
    absl::StatusOr<std::string> why = WhyNotALog(path);
    if (!why.ok()) return why.status();
    if (*why == kEmpty && paths.size() > 1) continue;  // the server just rotated
    if (!why->empty()) return absl::InvalidArgumentError(absl::StrCat(path, " ", *why));
    all.push_back(path);
  }
  if (all.empty()) return absl::InvalidArgumentError("all files are empty");
  std::vector<LogFile> files;
  std::set<std::pair<dev_t, ino_t>> seen;  // a file named twice is one file
  for (const std::string& path : all) {
    struct stat info = {};
    if (stat(path.c_str(), &info) == 0 && !seen.emplace(info.st_dev, info.st_ino).second) continue;
    ASSIGN_OR_RETURN(uint64_t first, FirstLine(path));
    files.push_back({path, first});
  }
  // A file without any whole line can only be the newest.
  std::stable_sort(files.begin(), files.end(), [](const LogFile& a, const LogFile& b) {
    return a.first - 1 < b.first - 1;
  });
  return files;
}

absl::StatusOr<Tail> ReadTail(const std::string& path) {
  for (size_t size = kFirstTail;; size *= 4) {
    bool whole = false;
    ASSIGN_OR_RETURN(std::string bytes, LastBytes(path, size, &whole));
    Tail tail;
    tail.ended = bytes.empty() || bytes.back() == '\n';
    if (FindLast(bytes, &tail) || whole) {
      tail.foreign = !tail.head && absl::StrContains(bytes, "\n");
      return tail;
    }
    if (size <= 2 * limits::kMaxAuditLineBytes) continue;
    tail.foreign = true;
    return tail;
  }
}

// ---- Lines ----

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

// ---- Names ----

std::string RotatedName(const std::string& path, uint64_t first) {
  return absl::StrFormat("%s.%012d", path, first);
}

std::vector<std::string> Siblings(const std::string& path) {
  const fs::path base(path);
  const std::string name = base.filename().string();
  const fs::path folder = base.has_parent_path() ? base.parent_path() : fs::path(".");
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string other = it->path().filename().string();
    std::error_code ignored;
    if (!absl::StartsWith(other, name + ".") && !absl::StartsWith(other, name + "-")) continue;
    if (IsCompressed(other)) continue;  // its end cannot be read
    if (it->is_regular_file(ignored)) found.push_back(it->path().string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::string> RotatedFiles(const std::string& path) {
  const size_t name_size = fs::path(path).filename().string().size();
  std::vector<std::string> rotated;
  for (const std::string& sibling : Siblings(path)) {
    const std::string suffix = fs::path(sibling).filename().string().substr(name_size);
    const bool ours = suffix.size() == 13 && suffix[0] == '.' &&
                      suffix.find_first_not_of("0123456789", 1) == std::string::npos;
    if (ours) rotated.push_back(sibling);
  }
  return rotated;
}

}  // namespace mpckdc::audit
