// SPDX-License-Identifier: Apache-2.0
//
// The files of one audit log: the one that is written and those that were rotated away, by the
// server (NAME.000000000001, the number of its first line) or by logrotate (NAME.1, NAME-20261121).
#ifndef MPC_SERVER_AUDIT_FILES_H_
#define MPC_SERVER_AUDIT_FILES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mpc-server/audit/line.h"

namespace mpckdc::audit {

struct LogFile {
  std::string path;
  uint64_t first = 0;  // number of its first line; 0: it holds no whole line
};

// The log's files in the order of the chain. Each path is a file, or a folder whose audit logs are
// meant; other files of a folder are left out. Errors name what cannot be read and say why.
absl::StatusOr<std::vector<LogFile>> FindFiles(absl::Span<const std::string> paths);

// The number of the first whole line of a file; 0 when there is none.
absl::StatusOr<uint64_t> FirstLine(const std::string& path);

// The end of a file.
struct Tail {
  std::optional<Head> head;  // the last whole line; nullopt: there is none
  std::string owner;         // of that line
  bool ended = true;         // the file is empty or ends with a newline
  uint64_t torn = 0;         // bytes after that line, without a newline at the very end
  std::string torn_hash;     // of those bytes
  bool foreign = false;      // no whole line, and yet newlines: another format
};
absl::StatusOr<Tail> ReadTail(const std::string& path);

// Reads a file line by line in constant memory: one line, at most limits::kMaxAuditLineBytes.
class LineReader {
 public:
  static absl::StatusOr<std::unique_ptr<LineReader>> Open(const std::string& path);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // A line without its newline, or a piece of one that is too long. `ended` is false for such a
  // piece and for what follows the file's last newline. False at the end of the file or after an
  // error. The view is good until the next call.
  bool Next(absl::string_view* line, bool* ended);

  const absl::Status& status() const { return status_; }
  uint64_t number() const { return number_; }  // of the line last returned, from 1

 private:
  LineReader(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  bool Fill();  // false when there is nothing more to read

  const std::string path_;
  const int fd_;
  std::string buffer_;
  size_t start_ = 0;    // of what was not yet returned
  size_t scanned_ = 0;  // no newline before
  uint64_t number_ = 0;
  bool at_line_start_ = true;
  absl::Status status_;
};

std::string RotatedName(const std::string& path, uint64_t first);
// The files to which the server rotated `path`, oldest first.
std::vector<std::string> RotatedFiles(const std::string& path);
// Those, and logrotate's.
std::vector<std::string> Siblings(const std::string& path);

}  // namespace mpckdc::audit

#endif  // MPC_SERVER_AUDIT_FILES_H_
