// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/job_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "mpc-server/audit/audit_log.h"
#include "mpc-server/base/clock.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/service/journal.h"
#include "mpc-server/service/log.h"
#include "mpc-server/service/recorder.h"
#include "mpc-server/testing/folder.h"

namespace mpckdc {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr uint64_t kRequest = 0x00c0ffee00c0ffee;
constexpr char kName[] = "00c0ffee00c0ffee";

class JobLogTest : public ::testing::Test {
 protected:
  ~JobLogTest() override { EXPECT_TRUE(StartLog({}).ok()); }

  std::vector<std::string> LinesOf(const std::string& file) {
    std::ifstream in(file);
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    return absl::StrSplit(text, '\n', absl::SkipEmpty());
  }

  TestFolder folder_;
  std::string file_ = folder_.File("server.log");
};

TEST_F(JobLogTest, ARequestsNameBringsNothingElseIntoALog) {
  ASSERT_TRUE(StartLog({"info", false, file_}).ok());
  LogJob({"kdc1", 7, "LOGIN", kRequest}, Ok());
  LogJob({"kdc1", 8, "LOGIN", kRequest}, Refuse(Verdict::kBadTag, "wrong\nkey"));
  LogJob({"kdc1", 9, "a tag", 0}, Refuse(Verdict::kRefused, "no such job"));
  EXPECT_THAT(
      LinesOf(file_),
      ElementsAre(EndsWith(" info request 00c0ffee00c0ffee: LOGIN of KDC kdc1 (job 8): BAD_TAG: "
                           "wrong\\x0akey"),
                  EndsWith(" info a tag of KDC kdc1 (job 9): REFUSED: no such job")));
}

TEST_F(JobLogTest, JsonHasTheRequestAsAMember) {
  ASSERT_TRUE(StartLog({"info", true, file_}).ok());
  LogJob({"kdc1", 8, "LOGIN", kRequest}, Refuse(Verdict::kUnavailable, "a peer is away"));
  Log().info("something else");
  const std::vector<std::string> lines = LinesOf(file_);
  ASSERT_EQ(lines.size(), 2u);
  const json line = json::parse(lines[0]);
  EXPECT_EQ(line["request"], kName);
  EXPECT_EQ(line["kdc"], "kdc1");
  EXPECT_EQ(line["job"], "8");
  EXPECT_EQ(line["verdict"], "UNAVAILABLE");
  EXPECT_EQ(line["level"], "warning");
  EXPECT_FALSE(json::parse(lines[1]).contains("request"));
}

TEST_F(JobLogTest, OfAFloodAFewLinesAndTheNumber) {
  ASSERT_TRUE(StartLog({"info", false, file_}).ok());
  const auto refuse = [](uint64_t request) {
    LogJob({"kdc1", 8, "LOGIN", request}, Refuse(Verdict::kQuota, "principal_failures"));
  };
  // Not across the end of a second.
  absl::SleepFor(absl::Ceil(absl::Now() - absl::UnixEpoch(), absl::Seconds(1)) -
                 (absl::Now() - absl::UnixEpoch()));
  for (uint64_t i = 1; i <= limits::kRefusalLinesPerSecond + 20; ++i) refuse(i);
  EXPECT_EQ(LinesOf(file_).size(), limits::kRefusalLinesPerSecond);
  LogJob({"kdc1", 8, "LOGIN", 1}, Refuse(Verdict::kReplay, "another kind has room"));
  EXPECT_EQ(LinesOf(file_).size(), limits::kRefusalLinesPerSecond + 1);
  absl::SleepFor(absl::Seconds(1));
  refuse(1);
  EXPECT_THAT(LinesOf(file_), Contains(EndsWith("20 jobs more were QUOTA in one second before")));
}

TEST_F(JobLogTest, TheAuditLogHasEveryJobsRequest) {
  AuditLogOptions options;
  options.path = folder_.File("audit.log");
  options.owner = {"EXAMPLE.COM", 2};
  const auto log = *AuditLog::Open(std::move(options), &SystemClock());
  AuditRecorder recorder(log.get(), &SystemClock());
  BatchReport report;
  BatchJob job;
  job.operation = Operation::kLogin;
  job.request = kRequest;
  report.jobs.push_back(job);
  job.request = 0;
  report.jobs.push_back(job);
  ASSERT_TRUE(recorder.Record(report).ok());
  const json line = json::parse(LinesOf(folder_.File("audit.log"))[0]);
  EXPECT_EQ(line["jobs"][0]["request"], kName);
  EXPECT_FALSE(line["jobs"][1].contains("request"));
}

// ---- The journal: a socket where it listens, in a file system of the test's own ----

constexpr int kNotAllowed = 77;

// What the server sends to the journal for one job, in a process that may change nothing else.
int SendToJournal(int report) {
  if (unshare(CLONE_NEWNS) != 0) return kNotAllowed;
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("none", "/run", "tmpfs", 0, nullptr) != 0) {
    return kNotAllowed;
  }
  if (mkdir("/run/systemd", 0755) != 0 || mkdir("/run/systemd/journal", 0755) != 0) return 1;
  const int journal = socket(AF_UNIX, SOCK_DGRAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  strncpy(address.sun_path, "/run/systemd/journal/socket", sizeof address.sun_path - 1);
  if (bind(journal, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return 2;

  struct stat found = {};
  if (fstat(STDERR_FILENO, &found) != 0 || StderrIsJournal()) return 3;
  setenv("JOURNAL_STREAM", absl::StrCat(found.st_dev, ":", found.st_ino).c_str(), 1);
  if (!StderrIsJournal() || !StartLog({}).ok()) return 4;
  LogJob({"kdc1", 8, "LOGIN", kRequest}, Refuse(Verdict::kDeadline, "two\nlines"));
  char text[4096];
  const ssize_t size = recv(journal, text, sizeof text, MSG_DONTWAIT);
  return size > 0 && write(report, text, static_cast<size_t>(size)) == size ? 0 : 5;
}

TEST_F(JobLogTest, TheJournalGetsFields) {
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  const pid_t child = fork();
  if (child == 0) _exit(SendToJournal(pipes[1]));
  close(pipes[1]);
  char text[4096] = {};
  const ssize_t size = read(pipes[0], text, sizeof text - 1);
  close(pipes[0]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == kNotAllowed) GTEST_SKIP() << "needs root for a mount of its own";
  ASSERT_EQ(status, 0);
  ASSERT_GT(size, 0);
  const std::vector<std::string> fields = absl::StrSplit(text, '\n', absl::SkipEmpty());
  EXPECT_THAT(fields, Contains("MPC_REQUEST=00c0ffee00c0ffee"));
  EXPECT_THAT(fields, Contains("MPC_KDC=kdc1"));
  EXPECT_THAT(fields, Contains("MPC_JOB=8"));
  EXPECT_THAT(fields, Contains("MPC_VERDICT=DEADLINE"));
  EXPECT_THAT(fields, Contains("PRIORITY=4"));
  EXPECT_THAT(fields, Contains("SYSLOG_IDENTIFIER=mpc-server"));
  EXPECT_THAT(fields, Contains("MESSAGE=request 00c0ffee00c0ffee: LOGIN of KDC kdc1 (job 8): "
                               "DEADLINE: two\\x0alines"));
}

}  // namespace
}  // namespace mpckdc
