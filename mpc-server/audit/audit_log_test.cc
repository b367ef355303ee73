// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/audit/audit_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/testing/audit_log.h"

namespace mpckdc {
namespace {

using audit::Fields;
using audit::FieldsOf;
using audit::HandClock;
using audit::ParseLine;
using audit::SplitLines;
using audit::VerifyPaths;
using ::testing::HasSubstr;

class AuditLogTest : public ::testing::Test {
 protected:
  AuditLogOptions Options() {
    AuditLogOptions options;
    options.path = file_;
    options.owner = {"EXAMPLE.COM", 2};
    options.complain = [this](const std::string& what) { complaints_.push_back(what); };
    return options;
  }
  std::unique_ptr<AuditLog> Open(const AuditLogOptions& options) {
    absl::StatusOr<std::unique_ptr<AuditLog>> log = AuditLog::Open(options, &clock_);
    EXPECT_TRUE(log.ok()) << log.status();
    return log.ok() ? *std::move(log) : nullptr;
  }
  std::unique_ptr<AuditLog> Open() { return Open(Options()); }
  std::vector<Fields> Lines(const std::string& path) {
    std::vector<Fields> lines;
    for (std::string line : SplitLines(ReadFileForTest(path))) {
      line.pop_back();
      const auto parsed = ParseLine(line);
      lines.push_back(parsed ? FieldsOf(*parsed) : Fields());
    }
    return lines;
  }

  TestFolder folder_;
  HandClock clock_;
  std::string file_ = folder_.File("audit.log");
  std::vector<std::string> complaints_;
};

TEST_F(AuditLogTest, TheChainGoesOnAcrossRestarts) {
  ASSERT_TRUE(Open()->Append("start", {{"x", 1}}).ok());
  ASSERT_TRUE(Open()->Append("stop", Fields()).ok());
  const std::vector<Fields> lines = Lines(file_);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["v"], 3);
  EXPECT_EQ(lines[0]["seq"], 1);
  EXPECT_EQ(lines[0]["realm"], "EXAMPLE.COM");
  EXPECT_EQ(lines[0]["party"], 2);
  EXPECT_EQ(lines[0]["x"], 1);
  EXPECT_EQ(lines[1]["seq"], 2);
  EXPECT_EQ(lines[1]["prev"], lines[0]["hash"]);
  EXPECT_TRUE(VerifyPaths({file_}).intact());
  struct stat info = {};
  ASSERT_EQ(stat(file_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0137, 0u) << "no more than 0640";
}

TEST_F(AuditLogTest, HostileTextStaysOnOneLine) {
  ASSERT_TRUE(Open()->Append("a", {{"principal", "x\n{\"kind\":\"fake\"}\xff"}}).ok());
  ASSERT_EQ(Lines(file_).size(), 1u);
  EXPECT_EQ(Lines(file_)[0]["kind"], "a");
  EXPECT_TRUE(VerifyPaths({file_}).intact());
}

// Cut anywhere, the log goes on so that the chain holds and says what was torn.
TEST_F(AuditLogTest, ACrashAtEveryByteLeavesAChainThatHolds) {
  {
    auto log = Open();
    ASSERT_TRUE(log->Append("start", Fields()).ok());
    ASSERT_TRUE(log->Append("batch", {{"n", 1}}).ok());
  }
  const std::string whole = ReadFileForTest(file_);
  const size_t first = whole.find('\n') + 1;
  for (size_t size = first; size <= whole.size(); ++size) {
    WriteFileForTest(file_, whole.substr(0, size));
    ASSERT_TRUE(Open()->Append("start", Fields()).ok());
    const auto result = VerifyPaths({file_});
    ASSERT_TRUE(result.intact()) << size << ": " << result.breaks[0].text;
    const bool second = size + 1 >= whole.size();
    EXPECT_EQ(result.head.seq, second ? 3u : 2u) << size;
    EXPECT_EQ(absl::StrContains(ReadFileForTest(file_), "\"torn\":"), size > first && !second)
        << size;
  }
}

TEST_F(AuditLogTest, ACrashInTheVeryFirstLineIsNamedToo) {
  WriteFileForTest(file_, "{\"v\":2,\"se");
  ASSERT_TRUE(Open()->Append("start", Fields()).ok());
  EXPECT_TRUE(VerifyPaths({file_}).intact());
}

TEST_F(AuditLogTest, AnotherFormatOrOwnerIsRefused) {
  WriteFileForTest(file_, "{\"v\":1,\"seq\":1}\n");
  EXPECT_THAT(AuditLog::Open(Options(), &clock_).status().message(), HasSubstr("move it away"));
  unlink(file_.c_str());
  ASSERT_TRUE(Open()->Append("start", Fields()).ok());
  AuditLogOptions other = Options();
  other.owner.party = 1;
  EXPECT_THAT(AuditLog::Open(other, &clock_).status().message(),
              HasSubstr("name another [audit] file"));
}

TEST_F(AuditLogTest, TwoWritersAreRefused) {
  auto log = Open();
  EXPECT_THAT(AuditLog::Open(Options(), &clock_).status().message(),
              HasSubstr("another process writes"));
}

// ---- Rotation ----

TEST_F(AuditLogTest, LogrotateMovesTheFileAndTheChainGoesOn) {
  auto log = Open();
  ASSERT_TRUE(log->Append("a", Fields()).ok());
  ASSERT_EQ(rename(file_.c_str(), (file_ + ".1").c_str()), 0);
  ASSERT_TRUE(log->Append("b", Fields()).ok()) << "still to the old file";
  ASSERT_TRUE(log->Reopen().ok());
  ASSERT_TRUE(log->Append("c", Fields()).ok());
  ASSERT_TRUE(log->Reopen().ok()) << "nothing was moved";
  ASSERT_TRUE(log->Append("d", Fields()).ok());
  EXPECT_EQ(Lines(file_ + ".1").size(), 2u);
  EXPECT_EQ(Lines(file_)[0]["seq"], 3);
  EXPECT_TRUE(VerifyPaths({folder_.path()}).intact());
}

TEST_F(AuditLogTest, AFileMovedWhileTheServerWasDownIsFound) {
  ASSERT_TRUE(Open()->Append("a", Fields()).ok());
  WriteFileForTest(file_, ReadFileForTest(file_) + "{\"v\":2,\"torn");
  ASSERT_EQ(rename(file_.c_str(), (file_ + "-20261121").c_str()), 0);
  ASSERT_TRUE(Open()->Append("b", Fields()).ok());
  EXPECT_EQ(Lines(file_)[0]["seq"], 2);
  EXPECT_TRUE(VerifyPaths({folder_.path()}).intact());
}

TEST_F(AuditLogTest, RotatesBySizeAndKeepsSome) {
  AuditLogOptions options = Options();
  options.rotate_bytes = 2000;
  options.keep_files = 3;
  auto log = Open(options);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(log->Append("a", {{"n", i}}).ok());
  EXPECT_EQ(audit::RotatedFiles(file_).size(), 3u);
  const auto result = VerifyPaths({folder_.path()});
  EXPECT_TRUE(result.intact());
  EXPECT_GT(result.first, 1u);
  EXPECT_EQ(result.head, log->Status().head);
  const Fields first = Lines(file_)[0];
  EXPECT_EQ(first["event"], "rotated");
  EXPECT_EQ(first["deleted"].size(), 1u);
  log.reset();
  ASSERT_TRUE(Open(options)->Append("start", Fields()).ok());
  EXPECT_TRUE(VerifyPaths({folder_.path()}).intact());
}

TEST_F(AuditLogTest, KeepsEverythingUnlessTold) {
  AuditLogOptions options = Options();
  options.rotate_bytes = 1000;
  auto log = Open(options);
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(log->Append("a", {{"n", i}}).ok());
  EXPECT_GT(audit::RotatedFiles(file_).size(), 10u);
  EXPECT_EQ(VerifyPaths({folder_.path()}).first, 1u);
}

TEST_F(AuditLogTest, ARotationThatFailsLosesNothing) {
  AuditLogOptions options = Options();
  options.rotate_bytes = 500;
  auto log = Open(options);
  WriteFileForTest(audit::RotatedName(file_, 1), "in the way\n");
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(log->Append("a", {{"n", i}}).ok());
  ASSERT_EQ(complaints_.size(), 1u) << "said once, not with every line";
  EXPECT_THAT(complaints_[0], HasSubstr("is there already"));
  EXPECT_TRUE(VerifyPaths({file_}).intact());
}

TEST_F(AuditLogTest, ADeletedFileIsNoticed) {
  auto log = Open();
  ASSERT_TRUE(log->Append("a", Fields()).ok());
  ASSERT_EQ(unlink(file_.c_str()), 0);
  ASSERT_TRUE(log->Append("b", Fields()).ok());
  EXPECT_EQ(Lines(file_)[0]["seq"], 2) << "the missing line stays visible";
  EXPECT_EQ(complaints_.size(), 1u);
}

// ---- Failures ----

// The process may write no file beyond `bytes`: what a full disk does, without a disk.
class FileLimit {
 public:
  explicit FileLimit(size_t bytes) {
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    struct rlimit limit = before_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  struct rlimit before_ = {};
};

TEST_F(AuditLogTest, AFullDiskIsAnErrorAndLeavesNoHalfLine) {
  auto log = AuditLog::Open([&] {
    AuditLogOptions options = Options();
    options.path = "/dev/full";
    return options;
  }(), &clock_);
  ASSERT_TRUE(log.ok());
  EXPECT_TRUE(absl::IsResourceExhausted((*log)->Append("a", Fields())));
  EXPECT_THAT((*log)->Ready().message(), HasSubstr("No space left"));
}

TEST_F(AuditLogTest, ItSaysWhyAndRecoversByItself) {
  auto log = Open();
  ASSERT_TRUE(log->Append("a", Fields()).ok());
  const std::string before = ReadFileForTest(file_);
  {
    FileLimit full(before.size() + 100);  // a part of the line fits
    EXPECT_FALSE(log->Append("b", Fields()).ok());
    EXPECT_FALSE(log->Ready().ok());
    EXPECT_EQ(ReadFileForTest(file_), before) << "the part is taken back";
    log->Tick();
    EXPECT_FALSE(log->Ready().ok());
    EXPECT_FALSE(log->Append("c", Fields()).ok());
  }
  log->Tick();
  EXPECT_TRUE(log->Ready().ok());
  ASSERT_TRUE(log->Append("d", Fields()).ok());
  const std::vector<Fields> lines = Lines(file_);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[1]["kind"], "audit");
  EXPECT_EQ(lines[1]["event"], "resumed");
  EXPECT_EQ(lines[2]["kind"], "d");
  EXPECT_TRUE(VerifyPaths({file_}).intact());
  EXPECT_EQ(log->Status().failures, 3u);
}

TEST_F(AuditLogTest, TheNextLineRecoversToo) {
  auto log = Open();
  ASSERT_TRUE(log->Append("a", Fields()).ok());
  {
    FileLimit full(ReadFileForTest(file_).size() + 1);
    EXPECT_FALSE(log->Append("b", Fields()).ok());
  }
  ASSERT_TRUE(log->Append("c", Fields()).ok());
  const std::vector<Fields> lines = Lines(file_);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[1]["event"], "resumed") << "the gap is in the chain, whoever writes next";
}

TEST_F(AuditLogTest, EveryPolicyWrites) {
  for (const AuditSync sync : {AuditSync::kBatch, AuditSync::kInterval, AuditSync::kNever}) {
    AuditLogOptions options = Options();
    options.sync = sync;
    auto log = Open(options);
    ASSERT_TRUE(log->Append("start", AuditStartFields(sync)).ok());
    log->Tick();
    EXPECT_TRUE(log->Ready().ok());
  }
  const std::vector<Fields> lines = Lines(file_);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0]["sync"], "batch");
  EXPECT_EQ(lines[1]["sync"], "interval");
  EXPECT_EQ(lines[2]["boot"].get<std::string>().size(), 36u);
  EXPECT_TRUE(VerifyPaths({file_}).intact());
}

}  // namespace
}  // namespace mpckdc
