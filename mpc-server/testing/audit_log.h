// SPDX-License-Identifier: Apache-2.0
//
// Makes audit logs at chosen times. For tests.
#ifndef MPC_SERVER_TESTING_AUDIT_LOG_H_
#define MPC_SERVER_TESTING_AUDIT_LOG_H_

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mpc-server/audit/audit_log.h"
#include "mpc-server/audit/chain.h"
#include "mpc-server/base/clock.h"
#include "mpc-server/testing/folder.h"

namespace mpckdc::audit {

class HandClock : public Clock {
 public:
  absl::Time Now() override { return now_; }
  void SleepUntil(absl::Time when) override { now_ = std::max(now_, when); }

 private:
  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
};

// With their newlines.
inline std::vector<std::string> SplitLines(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line + (in.eof() ? "" : "\n"));
  return lines;
}

inline Verification VerifyPaths(const std::vector<std::string>& paths,
                                const std::string& head = "") {
  const absl::StatusOr<std::vector<LogFile>> files = FindFiles(paths);
  const absl::StatusOr<Verification> result =
      files.ok() ? Verify(*files, head, nullptr) : files.status();
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : Verification();
}

// First half of SHA-256("mpc-kdc principal v1\0alice@EXAMPLE.COM").
inline constexpr char kAlice[] = "208b518ca6294e2fd6b2cf482e04e82b";

// The logs of three servers, each begun with a line of kind start.
class ThreeLogs : public ::testing::Test {
 protected:
  ThreeLogs() {
    for (int party = 0; party < 3; ++party) {
      std::filesystem::create_directory(folder_.File(absl::StrCat("p", party)));
      Open(party);
      Start(party, "boot-a");
    }
  }
  // In folders as on three machines.
  std::string File(int party) const { return folder_.File(absl::StrCat("p", party, "/audit.log")); }
  void Open(int party) {
    AuditLogOptions options;
    options.path = File(party);
    options.owner = {"EXAMPLE.COM", party};
    logs_[party] = *AuditLog::Open(options, &clock_);
  }
  void Write(int party, const char* kind, const Fields& fields) {
    ASSERT_TRUE(logs_[party]->Append(kind, fields).ok());
  }
  void Start(int party, const std::string& boot) { Write(party, "start", {{"boot", boot}}); }
  void Pass(absl::Duration time) { clock_.Sleep(time); }
  // Closes the log and gives it other lines.
  void Rewrite(int party, const std::function<void(std::vector<std::string>&)>& change) {
    logs_[party].reset();
    std::vector<std::string> lines = SplitLines(ReadFileForTest(File(party)));
    change(lines);
    WriteFileForTest(File(party), absl::StrJoin(lines, ""));
  }

  static Fields Job(uint64_t id, const std::string& verdict, const std::string& digest = "d",
                    const std::string& principal = kAlice) {
    Fields job = {{"kdc", "kdc1"},     {"session", "5e"},        {"id", id},
                  {"op", "LOGIN"},     {"principal", principal}, {"digest", digest},
                  {"verdict", verdict}};
    if (verdict != "OK") job["detail"] = "why";
    return job;
  }
  void Batch(int party, const std::vector<Fields>& jobs, const std::string& view = "v",
             const std::string& error = "") {
    Fields line = {{"ring", "51"}, {"batch", batch_}, {"view", view}};
    if (!error.empty()) line["error"] = error;
    line["jobs"] = jobs;
    Write(party, "batch", line);
  }
  static Fields Key(const std::string& part, int usage, const std::string& principal) {
    return {{"part", part}, {"usage", usage}, {"handle", "4a"}, {"principal", principal}};
  }
  // A job that these servers log as they should, in a batch of its own.
  void GoodBatch(const std::vector<int>& parties = {0, 1, 2},
                 const std::string& principal = kAlice) {
    Pass(absl::Seconds(1));
    ++batch_;
    ++id_;
    for (int party : parties) {
      Batch(party, {Job(id_, "OK", "d", principal)}, absl::StrCat("view", batch_));
    }
  }

  TestFolder folder_;
  HandClock clock_;
  std::array<std::unique_ptr<AuditLog>, 3> logs_;
  uint64_t batch_ = 0;
  uint64_t id_ = 0;
};

}  // namespace mpckdc::audit

#endif  // MPC_SERVER_TESTING_AUDIT_LOG_H_
