// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/storm/output.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/base/status_macros.h"

extern char** environ;

namespace mpckdc::storm {
namespace {

constexpr char kPython[] = "/usr/bin/python3";  // Debian's own, which has Debian's matplotlib

absl::Status WriteFile(const std::string& file, const std::string& text) {
  std::ofstream out(file, std::ios::trunc);
  out << text << "\n";
  out.close();
  if (out) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(file, " cannot be written: ", strerror(errno)));
}

std::string& PlotScript() {
  static auto* const path = new std::string;
  return *path;
}

absl::Status Draw(const std::string& report, const std::string& picture) {
  std::string script = PlotScript();
  if (access(script.c_str(), R_OK) != 0) {
    return absl::NotFoundError(absl::StrCat("--plot: ", script, " is missing"));
  }
  std::error_code no_folder;  // then mkstemp() says why
  std::string file = std::filesystem::temp_directory_path(no_folder) / "login-storm-XXXXXX";
  const int fd = mkstemp(file.data());
  if (fd < 0) return absl::InternalError(absl::StrCat("--plot: ", strerror(errno)));
  close(fd);
  const absl::Cleanup remove = [&file] { unlink(file.c_str()); };
  RETURN_IF_ERROR(WriteFile(file, report));
  std::string python = kPython, in = file, out = picture;
  char* const argv[] = {python.data(), script.data(), in.data(), out.data(), nullptr};
  pid_t child = 0;
  int status = 0;
  if (posix_spawn(&child, kPython, nullptr, nullptr, argv, environ) != 0 ||
      waitpid(child, &status, 0) != child || status != 0) {
    return absl::InternalError(absl::StrCat(
        "--plot: ", script, " failed; it needs ", kPython, " and Debian's python3-matplotlib"));
  }
  return absl::OkStatus();
}

}  // namespace

void FindPlotScript() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  PlotScript() = (program.parent_path() / "login-storm-plot").string();
}

absl::StatusOr<std::vector<Threshold>> ParseThresholds(const std::vector<std::string>& texts,
                                                       const MetricKinds& metrics) {
  std::vector<Threshold> thresholds;
  for (const std::string& text : texts) {
    ASSIGN_OR_RETURN(Threshold threshold, ParseThreshold(text, metrics));
    thresholds.push_back(std::move(threshold));
  }
  return thresholds;
}

absl::StatusOr<ExitStatus> Conclude(const Options& options, FinishedRun run,
                                    const std::vector<Threshold>& thresholds) {
  ExitStatus status = kFine;
  nlohmann::json limits = nlohmann::json::array();
  for (const Threshold& threshold : thresholds) {
    const std::optional<std::string> why = Exceeded(threshold, run.values);
    limits.push_back({{"limit", threshold.text}, {"exceeded", why.has_value()}});
    if (!why.has_value()) continue;
    status = kLimitExceeded;
    absl::StrAppend(&run.text, "FAILED ", *why, "\n");
  }
  run.report["limits"] = limits;
  if (run.values["wrong"] > 0) status = kWrongAnswers;
  const std::string report = run.report.dump(2);
  if (options.json == "-") {
    printf("%s\n", report.c_str());
  } else {
    fputs(run.text.c_str(), stdout);
    if (!options.json.empty()) {
      RETURN_IF_ERROR(WriteFile(options.json, report));
    }
  }
  fflush(stdout);
  if (!options.plot.empty()) {
    RETURN_IF_ERROR(Draw(report, options.plot));
  }
  return status;
}

}  // namespace mpckdc::storm
