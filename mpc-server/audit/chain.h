// SPDX-License-Identifier: Apache-2.0
//
// Reads an audit log line by line, checks the chain while it does, and says where it breaks. In
// constant memory.
#ifndef MPC_SERVER_AUDIT_CHAIN_H_
#define MPC_SERVER_AUDIT_CHAIN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpc-server/audit/files.h"
#include "mpc-server/audit/line.h"

namespace mpckdc::audit {

enum class BreakKind {
  kAltered,     // a line's bytes are not those that its hash, or the next line's, was made of
  kMissing,     // numbers are left out
  kOutOfOrder,  // a number that was there before, or lines in another order
  kForeign,     // of another server or realm
  kTorn,        // an unfinished line that no restart of the server accounts for
};
const char* BreakName(BreakKind kind);

struct Break {
  BreakKind kind = BreakKind::kAltered;
  std::string file;
  uint64_t line = 0;  // in the file, from 1
  std::string text;   // one sentence
};

// What was read, and where it breaks: what `mpc-admin audit verify` says.
struct Verification {
  std::string owner;
  uint64_t lines = 0;
  uint64_t first = 0;
  Head head;
  std::string first_time, last_time;
  std::vector<Break> breaks;  // the first ChainReader::kMaxBreaks
  uint64_t break_count = 0;
  bool known_head_found = false;  // the hash asked for is a line's

  bool intact() const { return break_count == 0; }
};

// The lines of one log, oldest first. A break does not end the reading: the chain is taken up again
// at the line where it was noticed.
class ChainReader {
 public:
  explicit ChainReader(std::vector<LogFile> files) : files_(std::move(files)) {}

  // The next line, or false at the end. It is good until the next call.
  bool Next(Line* line);

  const absl::Status& status() const { return status_; }  // a file that could not be read
  const Verification& so_far() const { return so_far_; }
  uint64_t bytes() const { return bytes_; }  // read so far

  static constexpr size_t kMaxBreaks = 100;

 private:
  struct Place {
    std::string file;
    uint64_t line = 0;
  };
  bool NextText(absl::string_view* text, bool* ended);
  void NoteFragment(absl::string_view text);
  void CheckFragment(const Line& line);
  void CheckLine(const Line& line);
  void Note(BreakKind kind, const Place& place, std::string text);

  const std::vector<LogFile> files_;
  size_t next_file_ = 0;
  std::unique_ptr<LineReader> reader_;
  Place place_;
  absl::Status status_;

  Verification so_far_;
  std::string owner_;         // of the last line
  bool in_fragment_ = false;  // bytes that are no line, since the last line
  std::string fragment_;
  Place fragment_place_;

  uint64_t bytes_ = 0;
};

// `known_head`: a line's hash, noted elsewhere; may be empty. `progress` is told the bytes read so
// far, now and then; may be empty.
absl::StatusOr<Verification> Verify(const std::vector<LogFile>& files,
                                    const std::string& known_head,
                                    const std::function<void(uint64_t)>& progress);

}  // namespace mpckdc::audit

#endif  // MPC_SERVER_AUDIT_CHAIN_H_
