// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/log.h"

#include <grpc/support/log.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/one_line.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/service/journal.h"
#include "mpc-server/service/line_limit.h"

namespace mpckdc {
namespace {

constexpr char kTextPattern[] = "%Y-%m-%dT%H:%M:%S.%eZ %l %v";

class JsonFormatter : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& msg, spdlog::memory_buf_t& out) override {
    const spdlog::string_view_t level = spdlog::level::to_string_view(msg.level);
    nlohmann::ordered_json line;
    line["time"] =
        absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::FromChrono(msg.time), absl::UTCTimeZone());
    line["level"] = std::string(level.data(), level.size());
    line["message"] = std::string(msg.payload.data(), msg.payload.size());
    for (const auto& [name, value] : FieldsOfLine()) line[name] = value;
    const std::string text =
        line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonFormatter>();
  }
};

// What a message says may come from another server, why it ended a session for one: a line break
// in it would begin a line that this server never wrote.
class TextFormatter : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& msg, spdlog::memory_buf_t& out) override {
    const std::string text = OnOneLine({msg.payload.data(), msg.payload.size()});
    spdlog::details::log_msg printable = msg;
    printable.payload = text;
    pattern_.format(printable, out);
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<TextFormatter>();
  }

 private:
  spdlog::pattern_formatter pattern_{kTextPattern, spdlog::pattern_time_type::utc};
};

std::unique_ptr<spdlog::formatter> MakeFormatter(bool json) {
  if (json) return std::make_unique<JsonFormatter>();
  return std::make_unique<TextFormatter>();
}

// spdlog reports a failed open by an exception: it stops here.
absl::StatusOr<spdlog::sink_ptr> MakeSink(const LogOptions& options) {
  spdlog::sink_ptr sink;
  try {
    if (options.file.empty() && !options.json && StderrIsJournal()) {
      sink = std::make_shared<JournalSink>();
    } else if (options.file.empty()) {
      sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    } else {
      sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(options.file);
    }
  } catch (const spdlog::spdlog_ex& error) {
    return absl::UnavailableError(
        absl::StrCat("cannot open the log file ", options.file, ": ", error.what()));
  }
  sink->set_formatter(MakeFormatter(options.json));
  return sink;
}

struct State {
  std::mutex mutex;
  LogOptions options;
  std::shared_ptr<spdlog::logger> logger;
};

std::shared_ptr<spdlog::logger> MakeLogger(const LogOptions& options, spdlog::sink_ptr sink) {
  auto logger = std::make_shared<spdlog::logger>("mpc-server", std::move(sink));
  logger->set_level(spdlog::level::from_str(options.level));
  logger->flush_on(spdlog::level::debug);
  return logger;
}

// Strangers make gRPC report each handshake that came to nothing.
void LogGrpc(gpr_log_func_args* args) {
  static auto* const lines = new LineLimit;
  if (args->severity != GPR_LOG_SEVERITY_ERROR) return;
  size_t left_out = 0;
  const bool room = lines->Take(absl::ToUnixSeconds(absl::Now()), &left_out);
  if (left_out > 0) Log().warn("gRPC: {} lines more in one second before", left_out);
  if (room) Log().warn("gRPC: {}", args->message);
}

// Loggers that were replaced stay alive: another thread may still hold a reference.
State& TheState() {
  static State* state = [] {
    auto* s = new State;
    s->logger = MakeLogger(s->options, *MakeSink(s->options));
    return s;
  }();
  return *state;
}

}  // namespace

absl::Status StartLog(const LogOptions& options) {
  ASSIGN_OR_RETURN(spdlog::sink_ptr sink, MakeSink(options));
  gpr_set_log_function(LogGrpc);
  State& state = TheState();
  std::lock_guard<std::mutex> lock(state.mutex);
  static auto* replaced = new std::vector<std::shared_ptr<spdlog::logger>>;
  replaced->push_back(state.logger);
  state.options = options;
  state.logger = MakeLogger(options, std::move(sink));
  return absl::OkStatus();
}

absl::Status ReopenLog() {
  LogOptions options;
  {
    State& state = TheState();
    std::lock_guard<std::mutex> lock(state.mutex);
    options = state.options;
  }
  return options.file.empty() ? absl::OkStatus() : StartLog(options);
}

// Of the line that the thread is writing: the loggers write before they return.
thread_local const LineFields* fields_of_line = nullptr;

const LineFields& FieldsOfLine() {
  static const auto* const none = new LineFields;
  return fields_of_line == nullptr ? *none : *fields_of_line;
}

void LogWith(const LineFields& fields, spdlog::level::level_enum level, const std::string& text) {
  fields_of_line = &fields;
  Log().log(level, "{}", text);
  fields_of_line = nullptr;
}

spdlog::logger& Log() {
  State& state = TheState();
  std::lock_guard<std::mutex> lock(state.mutex);
  return *state.logger;
}

}  // namespace mpckdc
