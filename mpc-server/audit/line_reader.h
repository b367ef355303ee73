// SPDX-License-Identifier: Apache-2.0
//
// Reads a file line by line in constant memory: one line, at most limits::kMaxAuditLineBytes.
#ifndef MPC_SERVER_AUDIT_LINE_READER_H_
#define MPC_SERVER_AUDIT_LINE_READER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mpckdc::audit {

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

}  // namespace mpckdc::audit

#endif  // MPC_SERVER_AUDIT_LINE_READER_H_
