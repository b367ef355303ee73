// SPDX-License-Identifier: Apache-2.0
//
// The server's log: one line per event, as text or as JSON objects, to standard error or a file.
// Where standard error is systemd's journal, and text is wanted, lines go there by its own protocol.
// Nothing that is logged is secret at any level: shares, seeds, keys and keystreams have no type
// that this can print.
#ifndef MPC_SERVER_SERVICE_LOG_H_
#define MPC_SERVER_SERVICE_LOG_H_

#include <spdlog/spdlog.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace mpckdc {

struct LogOptions {
  std::string level = "info";  // debug, info, warning, error
  bool json = false;
  std::string file;            // empty: standard error
};

// Before StartLog() everything goes to standard error as text. gRPC's error messages go to the log
// as warnings, limits::kRefusalLinesPerSecond of them; its debug and trace messages, which could
// show parts of messages, go nowhere.
absl::Status StartLog(const LogOptions& options);
// Opens the file anew, after it was rotated away.
absl::Status ReopenLog();

spdlog::logger& Log();

// What a line is about, for whoever looks for it: members of a JSON line, fields of the journal
// (in capitals, after MPC_). Of a text line they are no part; the text says what matters. Names are
// of small letters and underscores.
using LineFields = std::vector<std::pair<const char*, std::string>>;
void LogWith(const LineFields& fields, spdlog::level::level_enum level, const std::string& text);
// For those who write lines.
const LineFields& FieldsOfLine();

// For spdlog's formatting, which knows no absl types.
inline std::string Text(absl::string_view text) { return std::string(text); }
inline std::string Text(const absl::Status& status) { return std::string(status.message()); }

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_LOG_H_
