// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <grpc/support/log.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "mpc-server/audit/audit_log.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/service/log.h"
#include "mpc-server/service/metrics.h"
#include "mpc-server/service/observer.h"
#include "mpc-server/service/recorder.h"
#include "mpc-server/service/refusal_log.h"
#include "mpc-server/service/sd_notify.h"
#include "mpc-server/testing/folder.h"

namespace mpckdc {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<json> Lines(const std::string& path) {
  std::ifstream in(path);
  std::vector<json> lines;
  for (std::string line; std::getline(in, line);) {
    lines.push_back(json::parse(line, nullptr, false));
  }
  return lines;
}

class LogsTest : public ::testing::Test {
 protected:
  std::unique_ptr<AuditLog> Open() {
    AuditLogOptions options;
    options.path = audit_file_;
    options.owner = {"EXAMPLE.COM", 2};
    return *AuditLog::Open(std::move(options), &SystemClock());
  }
  TestFolder folder_;
  std::string audit_file_ = folder_.File("audit.log");
};

BatchReport TwoJobs() {
  BatchReport report;
  report.session.fill(0x51);
  report.view.fill(0x77);
  report.batch = 4;
  report.aes_blocks = 33;
  BatchJob job;
  job.kdc.name = "kdc1";
  job.id = 9;
  job.operation = Operation::kLogin;
  job.principal.fill(0xab);
  job.digest.fill(0xd1);
  KeyUsed key{PartKind::kOpen, 1, {}, job.principal};
  key.handle.fill(0x4a);
  job.keys.push_back(key);
  key = {PartKind::kSeal, 2, {}, {}};
  job.keys.push_back(key);
  report.jobs.push_back(job);
  job.keys.clear();
  job.id = 10;
  job.judgement = Refuse(Verdict::kBadTag, "wrong key");
  report.jobs.push_back(job);
  return report;
}

TEST_F(LogsTest, ABatchIsOneLineWithItsJobs) {
  auto log = Open();
  AuditRecorder recorder(log.get(), &SystemClock());
  ASSERT_TRUE(recorder.Record(TwoJobs()).ok());
  const std::vector<json> lines = Lines(audit_file_);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["kind"], "batch");
  EXPECT_EQ(lines[0]["ring"], std::string("51515151515151515151515151515151"));
  EXPECT_EQ(lines[0]["batch"], 4);
  EXPECT_EQ(lines[0]["view"].get<std::string>().size(), 64u);
  ASSERT_EQ(lines[0]["jobs"].size(), 2u);
  EXPECT_EQ(lines[0]["jobs"][0]["op"], "LOGIN");
  EXPECT_EQ(lines[0]["jobs"][0]["principal"], std::string("abababababababababababababababab"));
  EXPECT_EQ(lines[0]["jobs"][0]["digest"], std::string("d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1"));
  EXPECT_EQ(lines[0]["jobs"][1]["verdict"], "BAD_TAG");
  EXPECT_EQ(lines[0]["jobs"][1]["detail"], "wrong key");
  const json keys = lines[0]["jobs"][0]["keys"];
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_EQ(keys[0], json({{"part", "open"},
                           {"usage", 1},
                           {"handle", "4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a4a"},
                           {"principal", "abababababababababababababababab"}}));
  EXPECT_EQ(keys[1]["part"], "seal");
  EXPECT_EQ(keys[1]["principal"], std::string(32, '0'));
  EXPECT_FALSE(lines[0]["jobs"][1].contains("keys"));
}

TEST_F(LogsTest, JobsThatNoBatchTookAreALineToo) {
  auto log = Open();
  AuditRecorder recorder(log.get(), &SystemClock());
  recorder.RecordUnbatched(TwoJobs().jobs, 3);
  const std::vector<json> lines = Lines(audit_file_);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["kind"], "jobs");
  EXPECT_EQ(lines[0]["left_out"], 3);
  EXPECT_EQ(lines[0]["jobs"].size(), 2u);
}

TEST_F(LogsTest, WhatCannotBeWrittenIsSaidToTheEngine) {
  audit_file_ = "/dev/full";
  auto log = Open();
  AuditRecorder recorder(log.get(), &SystemClock());
  EXPECT_TRUE(recorder.Ready().ok());
  EXPECT_FALSE(recorder.Record(TwoJobs()).ok());
  EXPECT_THAT(recorder.Ready().message(), HasSubstr("answers no job that it cannot audit"));
  Metrics metrics;
  metrics.Audit(log->Status());
  EXPECT_THAT(metrics.Render(), HasSubstr("mpckdc_state{what=\"audit_failing\"} 1"));
  EXPECT_THAT(metrics.Render(), HasSubstr("mpckdc_state{what=\"audit_failures\"} 1"));
}

TEST_F(LogsTest, BatchesAreCounted) {
  auto log = Open();
  Metrics metrics;
  ServiceObserver observer(log.get(), &metrics);
  observer.OnBatch(TwoJobs());
  EXPECT_THAT(metrics.Render(), HasSubstr("mpckdc_batch_work_total{what=\"aes_blocks\"} 33"));
}

class SettableClock : public Clock {
 public:
  absl::Time Now() override { return now; }
  void SleepUntil(absl::Time) override {}
  absl::Time now = absl::FromUnixSeconds(1'800'000'000);
};

TEST_F(LogsTest, AFloodOfRefusalsIsCounted) {
  auto log = Open();
  SettableClock clock;
  RefusalLog refusals(log.get(), &clock);
  for (int i = 0; i < 10'000; ++i) {
    refusals.Note("KeyService.job", {{"kdc", "kdc1"}, {"id", i}, {"reason", "damaged"}});
  }
  refusals.Note("KeyService.Serve", {{"reason", "wrong role"}});
  std::vector<json> lines = Lines(audit_file_);
  ASSERT_EQ(lines.size(), limits::kRefusalLinesPerSecond + 1);
  EXPECT_EQ(lines[0]["kind"], "refused");
  EXPECT_EQ(lines[0]["id"], 0);
  EXPECT_EQ(lines.back()["call"], "KeyService.Serve") << "another kind is not drowned";
  refusals.Tick();
  EXPECT_EQ(Lines(audit_file_).size(), lines.size()) << "the second is not over";
  clock.now += absl::Seconds(1);
  refusals.Tick();
  lines = Lines(audit_file_);
  ASSERT_EQ(lines.size(), limits::kRefusalLinesPerSecond + 2);
  EXPECT_EQ(lines.back()["count"], 10'000 - limits::kRefusalLinesPerSecond);
  EXPECT_EQ(lines.back()["id"], 9999);
  clock.now -= absl::Hours(5);  // a clock that is set back silences nothing
  refusals.Note("KeyService.job", {{"id", 7}});
  EXPECT_EQ(Lines(audit_file_).back()["id"], 7);
}

// Refused jobs cost a stranger nothing. What was computed is never left out.
TEST_F(LogsTest, AFloodOfRefusedJobsIsCounted) {
  auto log = Open();
  SettableClock clock;
  AuditRecorder recorder(log.get(), &clock);
  BatchReport report = TwoJobs();
  const BatchJob opened = report.jobs[0];
  BatchJob guess = report.jobs[1];
  guess.computed = true;
  BatchJob refused = opened;
  refused.judgement = Refuse(Verdict::kQuota, "quota principal_failures is used up");
  report.time = clock.now;
  for (int batch = 0; batch < 1000; ++batch) {
    report.jobs.assign(10, refused);
    if (batch % 100 == 0) report.jobs.insert(report.jobs.end(), {opened, guess});
    ASSERT_TRUE(recorder.Record(report).ok());
  }
  recorder.RecordUnbatched({&refused, 1}, 0);
  std::vector<json> lines = Lines(audit_file_);
  EXPECT_EQ(lines.size(), 10u) << "a batch of nothing else has no line";
  size_t listed = 0, granted = 0, guessed = 0;
  for (const json& line : lines) {
    for (const json& job : line["jobs"]) {
      listed += job["verdict"] == "QUOTA";
      granted += job["verdict"] == "OK";
      guessed += job["verdict"] == "BAD_TAG" && job["computed"] == true;
    }
  }
  EXPECT_EQ(listed, limits::kRefusalLinesPerSecond);
  EXPECT_EQ(granted, 10u);
  EXPECT_EQ(guessed, 10u);
  recorder.WriteCounts();
  recorder.WriteCounts();
  lines = Lines(audit_file_);
  ASSERT_EQ(lines.size(), 11u);
  EXPECT_EQ(lines.back()["kind"], "counted");
  EXPECT_EQ(lines.back()["counted"],
            json::parse(R"([{"kdc":"kdc1","op":"LOGIN","verdict":"QUOTA","count":9996,
                             "principal":"abababababababababababababababab"}])"));
  report.jobs.assign(1, refused);
  report.time += absl::Seconds(1);
  ASSERT_TRUE(recorder.Record(report).ok());
  EXPECT_EQ(Lines(audit_file_).back()["jobs"].size(), 1u) << "another second has its own";
}

// The three servers write down the same ones: they choose by the batch's time, not by their clocks.
TEST_F(LogsTest, TheSameRefusedJobsAreListedAtEveryServer) {
  std::vector<std::vector<json>> logs;
  for (const absl::Duration off : {absl::ZeroDuration(), absl::Milliseconds(700)}) {
    audit_file_ = folder_.File("audit" + absl::FormatDuration(off));
    auto log = Open();
    SettableClock clock;
    AuditRecorder recorder(log.get(), &clock);
    BatchReport report = TwoJobs();
    report.time = clock.now;
    for (BatchJob& job : report.jobs) job.judgement = Refuse(Verdict::kQuota, "used up");
    clock.now += off;
    for (int i = 0; i < 40; ++i) {
      report.jobs[0].id = static_cast<JobId>(i);
      ASSERT_TRUE(recorder.Record(report).ok());
      report.time += absl::Milliseconds(50);
      clock.now += absl::Milliseconds(50);
      if (i % 20 == 7) recorder.WriteCounts();
    }
    logs.emplace_back();
    for (const json& line : Lines(audit_file_)) {
      if (line["kind"] == "batch") logs.back().push_back(line["jobs"]);
    }
  }
  EXPECT_EQ(logs[0].size(), 6u);
  EXPECT_EQ(logs[0], logs[1]);
}

// A stranger can have gRPC say something as often as he likes.
TEST_F(LogsTest, AFloodOfGrpcsLinesIsCounted) {
  const std::string file = folder_.File("grpc.log");
  ASSERT_TRUE(StartLog({"info", false, file}).ok());
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);  // as grpc_init() does
  const absl::Time second = absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now()) + 1);
  absl::SleepFor(second - absl::Now());  // all of them in one
  for (int i = 0; i < 100; ++i) gpr_log(GPR_ERROR, "line number %d of many", i);
  absl::SleepFor(second + absl::Seconds(1) - absl::Now());
  gpr_log(GPR_ERROR, "one of the next second");
  ASSERT_TRUE(StartLog({}).ok());
  std::vector<std::string> lines = absl::StrSplit(ReadFileForTest(file), '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), limits::kRefusalLinesPerSecond + 2);
  EXPECT_THAT(lines[limits::kRefusalLinesPerSecond], HasSubstr("gRPC: 95 lines more"));
  EXPECT_THAT(lines.back(), HasSubstr("one of the next second"));
}

TEST_F(LogsTest, ManyKindsOfRefusalsShareOne) {
  auto log = Open();
  SettableClock clock;
  {
    RefusalLog refusals(log.get(), &clock);
    for (int i = 0; i < 5000; ++i) refusals.Note("call" + std::to_string(i), {{"x", 1}});
    EXPECT_LE(Lines(audit_file_).size(),
              limits::kMaxRefusalKinds + limits::kRefusalLinesPerSecond);
  }
  EXPECT_TRUE(Lines(audit_file_).back().contains("count")) << "the last count is not lost";
}

TEST_F(LogsTest, QuotasAndClockDifferencesAreMetrics) {
  Metrics metrics;
  EngineStatus status;
  status.party = 1;
  status.skew_prev = absl::Seconds(-7);
  status.skew_next = absl::Milliseconds(250);
  status.clock_suspect = true;
  status.quotas = DefaultQuotaRates();
  status.quota_refused[static_cast<size_t>(QuotaKind::kKdcOpens)] = 3;
  metrics.Gauges(status, 0);
  status.quota_refused[static_cast<size_t>(QuotaKind::kKdcOpens)] = 5;
  metrics.Gauges(status, 0);
  const std::string text = metrics.Render();
  EXPECT_THAT(text, HasSubstr("mpckdc_peer_clock_skew_seconds{peer=\"p0\"} -7"));
  EXPECT_THAT(text, HasSubstr("mpckdc_peer_clock_skew_seconds{peer=\"p2\"} 0.25"));
  EXPECT_THAT(text, HasSubstr("mpckdc_state{what=\"clock_suspect\"} 1"));
  EXPECT_THAT(text, HasSubstr("mpckdc_quota_refusals_total{quota=\"kdc_opens\"} 5"));
  EXPECT_THAT(text, HasSubstr("mpckdc_quota_refusals_total{quota=\"principal_logins\"} 0"));
  EXPECT_THAT(text, HasSubstr("mpckdc_quota_per_minute{quota=\"principal_logins\"} 60"));
}

TEST_F(LogsTest, CertificatesAreMetrics) {
  Metrics metrics;
  const auto at = [](int seconds) { return absl::FromUnixSeconds(seconds); };
  metrics.Certificates({at(1000), at(2000), "", ""},
                       {{"kdc/kdc1", at(300), at(1)}, {"admin/root", at(400), at(1)}});
  const std::string text = metrics.Render();
  EXPECT_THAT(text, HasSubstr("mpckdc_state{what=\"certificate_expires_seconds\"} 1000"));
  EXPECT_THAT(text, HasSubstr("mpckdc_state{what=\"authority_expires_seconds\"} 2000"));
  EXPECT_THAT(text, HasSubstr("mpckdc_state{what=\"certificate_trouble\"} 0"));
  constexpr char kCaller[] = "mpckdc_caller_certificate_expires_seconds{caller=\"%s\"} %d";
  EXPECT_THAT(text, HasSubstr(absl::StrFormat(kCaller, "kdc/kdc1", 300)));
  EXPECT_THAT(text, HasSubstr(absl::StrFormat(kCaller, "admin/root", 400)));
  metrics.Certificates({at(1000), at(2000), "", "another key"}, {{"kdc/kdc1", at(500), at(2)}});
  const std::string later = metrics.Render();
  EXPECT_THAT(later, HasSubstr("mpckdc_state{what=\"certificate_trouble\"} 1"));
  EXPECT_THAT(later, HasSubstr(absl::StrFormat(kCaller, "kdc/kdc1", 500)));
  EXPECT_THAT(later, Not(HasSubstr("admin/root"))) << "it is gone";
}

TEST_F(LogsTest, LinesAndProtocolsAreMetrics) {
  Metrics metrics;
  EngineStatus status;
  status.party = 1;
  status.line_prev = {absl::Milliseconds(2), 125'000'000};
  status.line_next = {absl::Microseconds(250), 0};
  metrics.Gauges(status, 0);
  BatchReport report;
  metrics.BatchDone(report);
  report.protocol = CtsProtocol::kGarbled;
  metrics.BatchDone(report);
  const std::string text = metrics.Render();
  EXPECT_THAT(text, HasSubstr("mpckdc_peer_distance_seconds{peer=\"p0\"} 0.002"));
  EXPECT_THAT(text, HasSubstr("mpckdc_peer_distance_seconds{peer=\"p2\"} 0.00025"));
  EXPECT_THAT(text, HasSubstr("mpckdc_peer_bytes_per_second{peer=\"p0\"} 125000000"));
  EXPECT_THAT(text, HasSubstr("mpckdc_batch_work_total{what=\"garbled_batches\"} 1"));
}

TEST_F(LogsTest, ComputedJobsAreTimedByTheEnctypeOfTheirFirstKey) {
  Metrics metrics;
  BatchReport report = TwoJobs();
  report.agreed = absl::Milliseconds(4);
  report.computed = absl::Milliseconds(4);
  report.jobs[0].keys[0].enctype = kEnctypeAes256Sha1;
  metrics.BatchDone(report);  // not computed
  EXPECT_THAT(metrics.Render(), Not(HasSubstr("mpckdc_key_seconds_sum")));
  report.jobs[0].computed = report.jobs[1].computed = true;  // the second has no key
  metrics.BatchDone(report);
  EXPECT_THAT(metrics.Render(),
              HasSubstr("mpckdc_key_seconds_sum{enctype=\"aes256-cts-hmac-sha1-96\","
                        "operation=\"login\"} 0.008"));
  EXPECT_THAT(metrics.Render(), Not(HasSubstr("enctype=\"\"")));
}

TEST_F(LogsTest, AClockDifferenceIsAuditedAndLogged) {
  auto log = Open();
  Metrics metrics;
  ServiceObserver observer(log.get(), &metrics);
  const std::string file = folder_.File("server.log");
  ASSERT_TRUE(StartLog({"info", false, file}).ok());
  observer.OnPeerSkew(2, absl::Seconds(-30));
  observer.OnPeerSkew(2, absl::Milliseconds(3));
  ASSERT_TRUE(StartLog({}).ok());
  const std::string text = ReadFileForTest(file);
  EXPECT_THAT(text, HasSubstr("the clock of party 2 minus this server's is -30s"));
  EXPECT_THAT(text, HasSubstr("agree again"));
  const std::vector<json> lines = Lines(audit_file_);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["kind"], "clock");
  EXPECT_EQ(lines[0]["skew_us"], -30'000'000);
  EXPECT_EQ(lines[0]["large"], true);
  EXPECT_EQ(lines[1]["large"], false);
}

TEST_F(LogsTest, ADeviationIsAuditedLoggedAndCounted) {
  auto log = Open();
  Metrics metrics;
  ServiceObserver observer(log.get(), &metrics);
  const std::string file = folder_.File("server.log");
  ASSERT_TRUE(StartLog({"info", false, file}).ok());
  DeviationReport report{Suspects::Neighbours(0), "two stories", {0xab}, 7, absl::Now()};
  observer.OnDeviation(report);
  ASSERT_TRUE(StartLog({}).ok());
  EXPECT_THAT(ReadFileForTest(file), HasSubstr("P1 or P2 deviated from the protocol: two stories"));
  const std::vector<json> lines = Lines(audit_file_);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["kind"], "deviation");
  EXPECT_EQ(lines[0]["suspects"], json::array({1, 2}));
  EXPECT_EQ(lines[0]["ring"], "ab000000000000000000000000000000");
  EXPECT_EQ(lines[0]["batch"], 7);
  EngineStatus status;
  status.quarantine = report;
  metrics.Gauges(status, 0);
  EXPECT_THAT(metrics.Render(), HasSubstr("mpckdc_deviations_total{suspect=\"p1\"} 1"));
  EXPECT_THAT(metrics.Render(), HasSubstr("mpckdc_deviation{suspect=\"p2\"} 1"));
  EXPECT_THAT(metrics.Render(), HasSubstr("mpckdc_state{what=\"quarantined\"} 1"));
  metrics.Gauges(EngineStatus(), 0);
  EXPECT_THAT(metrics.Render(), HasSubstr("mpckdc_deviation{suspect=\"p2\"} 0"));
}

TEST_F(LogsTest, RecordsThatDifferAreAuditedAndLogged) {
  auto log = Open();
  Metrics metrics;
  ServiceObserver observer(log.get(), &metrics);
  const std::string file = folder_.File("server.log");
  ASSERT_TRUE(StartLog({"info", false, file}).ok());
  KeyInfo key;
  key.principal = "bob@R";
  key.kvno = 3;
  observer.OnRecord(key, "server 1's differs");
  observer.OnRecord(key, "");
  ASSERT_TRUE(StartLog({}).ok());
  EXPECT_THAT(ReadFileForTest(file),
              HasSubstr("server 1's differs; jobs with this key are refused"));
  EXPECT_THAT(ReadFileForTest(file), HasSubstr("the same record of key"));
  const std::vector<json> lines = Lines(audit_file_);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["kind"], "record");
  EXPECT_EQ(lines[0]["principal"], "bob@R");
  EXPECT_EQ(lines[0]["same"], false);
  EXPECT_EQ(lines[1]["same"], true);
}

TEST_F(LogsTest, PeersThatStayAwayAreAuditedOnce) {
  auto log = Open();
  Metrics metrics;
  ServiceObserver observer(log.get(), &metrics);
  for (int i = 0; i < 5; ++i) observer.OnPeers(false, i < 3 ? "refused" : "timeout");
  observer.OnPeers(true, "");
  observer.OnPeers(false, "closed");
  EXPECT_EQ(Lines(audit_file_).size(), 3u);
}

TEST_F(LogsTest, ReasonsThatAlternateAreSaidOnceAMinuteEach) {
  const std::string file = folder_.File("server.log");
  ASSERT_TRUE(StartLog({"info", true, file}).ok());
  auto log = Open();
  Metrics metrics;
  ServiceObserver observer(log.get(), &metrics);
  for (int i = 0; i < 50; ++i) observer.OnPeers(false, i % 2 == 0 ? "refused" : "hung up");
  EXPECT_EQ(Lines(file).size(), 2u);
  observer.OnPeers(true, "");
  observer.OnPeers(false, "refused");
  EXPECT_EQ(Lines(file).size(), 4u) << "a change is said at once";
  for (int i = 0; i < 1000; ++i) observer.OnPeers(false, std::to_string(i));
  observer.OnPeers(true, "");
  EXPECT_EQ(Lines(audit_file_).size(), 4u);
  ASSERT_TRUE(StartLog({}).ok());
}

TEST_F(LogsTest, LogIsJsonOrTextAndReopens) {
  const std::string file = folder_.File("server.log");
  ASSERT_TRUE(StartLog({"info", true, file}).ok());
  Log().info("a \"quoted\"\nline");
  Log().debug("not shown");
  ASSERT_EQ(rename(file.c_str(), (file + ".1").c_str()), 0);
  ASSERT_TRUE(ReopenLog().ok());
  Log().warn("after");
  ASSERT_EQ(Lines(file + ".1").size(), 1u);
  EXPECT_EQ(Lines(file + ".1")[0]["message"], "a \"quoted\"\nline");
  EXPECT_EQ(Lines(file)[0]["level"], "warning");
  EXPECT_TRUE(absl::IsUnavailable(StartLog({"info", false, folder_.path() + "/no/such/file"})) ||
              std::ifstream(folder_.path() + "/no/such/file").good());
  ASSERT_TRUE(StartLog({}).ok());
}

// A server that lies may end a session with any text, and would like to blame another in this log.
TEST_F(LogsTest, WhatAnotherServerSaysIsOneLine) {
  const std::string file = folder_.File("server.log");
  ASSERT_TRUE(StartLog({"info", false, file}).ok());
  auto log = Open();
  Metrics metrics;
  ServiceObserver observer(log.get(), &metrics);
  observer.OnPeers(false,
                   "P1: bye\n2026-11-23T03:00:00.000Z error P2 deviated\r\033[2K\x7f \u00fc");
  ASSERT_TRUE(StartLog({}).ok());
  std::ifstream in(file);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  EXPECT_EQ(absl::c_count(text, '\n'), 1) << text;
  EXPECT_THAT(text, HasSubstr("P1: bye\\x0a2026-11-23T03:00:00.000Z error P2 deviated\\x0d\\x1b[2K"
                              "\\x7f \u00fc\n"));
}

TEST_F(LogsTest, NotifiesSystemd) {
  unsetenv("NOTIFY_SOCKET");
  EXPECT_TRUE(SdNotify("READY=1").ok());
  const std::string path = folder_.File("notify");
  const int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
  struct sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(bind(fd, reinterpret_cast<struct sockaddr*>(&address), sizeof address), 0);
  setenv("NOTIFY_SOCKET", path.c_str(), 1);
  EXPECT_TRUE(SdNotify("READY=1").ok());
  char text[16] = {};
  EXPECT_EQ(recv(fd, text, sizeof text, 0), 7);
  EXPECT_STREQ(text, "READY=1");
  close(fd);
  unlink(path.c_str());
  EXPECT_TRUE(absl::IsUnavailable(SdNotify("READY=1")));
  unsetenv("NOTIFY_SOCKET");
}

}  // namespace
}  // namespace mpckdc
