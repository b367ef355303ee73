// SPDX-License-Identifier: Apache-2.0
//
// Processes that are forked from one and count into one page, as those of krb5kdc do.
#include "kdc-plugin/metrics/kdc_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "kdc-plugin/metrics/realm_metrics.h"
#include "kdc-plugin/metrics/render.h"

namespace mpckdc::metrics {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// The writer's thread logs as well.
std::mutex log_mutex;
std::vector<std::string>& log_lines = *new std::vector<std::string>;
void LogLine(int, const char* text) {
  std::lock_guard<std::mutex> lock(log_mutex);
  log_lines.emplace_back(text);
}
std::vector<std::string> Logged() {
  std::lock_guard<std::mutex> lock(log_mutex);
  return log_lines;
}
void ClearLog() {
  std::lock_guard<std::mutex> lock(log_mutex);
  log_lines.clear();
}

// Each test has a realm of its own: a process keeps its pages.
class KdcMetricsTest : public ::testing::Test {
 protected:
  KdcMetricsTest() {
    std::string pattern = ::testing::TempDir() + "/metrics-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    realm_ = std::string("REALM-") +
             ::testing::UnitTest::GetInstance()->current_test_info()->name();
  }
  ~KdcMetricsTest() override {
    kdc_metrics_stop();
    std::filesystem::remove_all(folder_);
  }

  std::string file() const { return folder_ + "/kdc.prom"; }
  kdc_metrics* Open(const std::string& realm, std::string* error = nullptr) {
    const std::string path = file();
    kdc_metrics_options options{};
    options.realm = realm.c_str();
    options.file = path.c_str();
    options.servers[0] = "mpc1:7750";
    options.servers[1] = "mpc\"2\\:7750";
    options.servers[2] = "mpc3:7750";
    options.certificate_files[0] = "/nonexistent/kdc.pem";
    options.log = LogLine;
    char* text = nullptr;
    kdc_metrics* const m = kdc_metrics_open(&options, &text);
    if (error != nullptr) *error = text == nullptr ? "" : text;
    free(text);
    return m;
  }
  kdc_metrics* Open() { return Open(realm_); }

  std::string Text(kdc_metrics* m) const {
    return Render(*m->page, {m->realm, m->servers, {{"certificate", 0}}, 1234.5,
                             kdc_metrics_clock()});
  }
  std::string Written() const {
    std::ifstream in(file());
    return (std::stringstream() << in.rdbuf()).str();
  }
  static bool Until(const std::function<bool()>& condition) {
    for (int i = 0; i < 200; ++i) {
      if (condition()) return true;
      usleep(50'000);
    }
    return false;
  }
  // Runs `work` in a process that was forked, which ends then or lives on.
  static pid_t Fork(const std::function<void()>& work) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    work();
    _exit(0);
  }
  static void Await(pid_t pid) {
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }

  std::string folder_, realm_;
};

TEST_F(KdcMetricsTest, AllProcessesCountIntoOnePage) {
  kdc_metrics* const m = Open();
  ASSERT_NE(m, nullptr);
  std::vector<pid_t> workers;
  for (int i = 0; i < 3; ++i) {
    workers.push_back(Fork([m] {
      for (int j = 0; j < 100; ++j) kdc_metrics_request(m, KDC_AS_REQ, KDC_OK, 1, 1500);
      kdc_metrics_request(m, KDC_TGS_REQ, KDC_POLICY, 0, 0);
      kdc_metrics_dropped();
    }));
  }
  for (const pid_t worker : workers) Await(worker);
  const std::string text = Text(m), realm = "realm=\"" + realm_ + "\"";
  EXPECT_THAT(text, HasSubstr("mpckdc_krb5kdc_requests_total{" + realm +
                              ",type=\"as\",result=\"ok\",keys=\"remote\"} 300\n"));
  EXPECT_THAT(text, HasSubstr("mpckdc_krb5kdc_requests_total{" + realm +
                              ",type=\"tgs\",result=\"policy\",keys=\"local\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("mpckdc_krb5kdc_dropped_requests_total{" + realm + "} 3\n"));
  // Cumulative, in seconds; what was not measured is not among them.
  EXPECT_THAT(text, HasSubstr("request_seconds_bucket{" + realm + ",type=\"as\",le=\"0.001\"} 0\n"));
  EXPECT_THAT(text,
              HasSubstr("request_seconds_bucket{" + realm + ",type=\"as\",le=\"0.002\"} 300\n"));
  EXPECT_THAT(text, HasSubstr("request_seconds_count{" + realm + ",type=\"tgs\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("request_seconds_sum{" + realm + ",type=\"as\"} 0.45"));
  // Each had a place of its own.
  size_t places = 0;
  for (const Place& place : m->page->places) places += Get(place.requests) == 101;
  EXPECT_EQ(places, 3u);
}

TEST_F(KdcMetricsTest, ARealmWithoutAPageIsNotCounted) {
  kdc_metrics_request(nullptr, KDC_AS_REQ, KDC_OK, 1, 1);
  kdc_metrics_wait(nullptr, KDC_JOB, 18, 1);
  kdc_metrics_job(nullptr, 1, 0);
  kdc_metrics_answer(nullptr, 0, 1, 0, 1);
  kdc_metrics_connected(nullptr, 0, 0);
  kdc_metrics_watch(nullptr, nullptr, nullptr);
  kdc_metrics_unwatch(nullptr);
}

TEST_F(KdcMetricsTest, WhatIsNoIndexIsNotCounted) {
  kdc_metrics* const m = Open();
  kdc_metrics_job(m, 99, 0);
  kdc_metrics_tag(m, 99);
  kdc_metrics_message(m, KDC_METRICS_SERVERS, 1, 1);
  kdc_metrics_answer(m, 1, 99, 0, 10);  // a verdict that we do not know is an answer
  kdc_metrics_wait(m, KDC_JOB, 23, 700);
  EXPECT_THAT(Text(m), HasSubstr("enctype=\"unknown\",le=\"0.001\"} 1\n"));
  EXPECT_EQ(Get(m->page->counters.servers[1].answers), 1u);
}

TEST_F(KdcMetricsTest, NamesOfServersAreEscaped) {
  kdc_metrics* const m = Open();
  kdc_metrics_connected(m, 1, 2);
  EXPECT_THAT(Text(m), HasSubstr("server=\"mpc\\\"2\\\\:7750\",triple=\"0\",party=\"p2\""));
}

TEST_F(KdcMetricsTest, ConnectionsAreOfProcessesThatAsk) {
  kdc_metrics* const m = Open();
  const std::string up = "mpckdc_krb5kdc_server_up{";
  EXPECT_THAT(Text(m), Not(HasSubstr(up)));
  kdc_metrics_request(m, KDC_AS_REQ, KDC_PREAUTH_REQUIRED, 0, 1);
  EXPECT_THAT(Text(m), Not(HasSubstr(up)));
  kdc_metrics_watch(m, [](void*, kdc_load*) {}, nullptr);
  kdc_metrics_connected(m, 0, 1);
  kdc_metrics_answer(m, 0, 1, 1, 2500);
  kdc_metrics_answer(m, 0, 1, 1, 250);
  kdc_metrics_answer(m, 0, 1, 1, 2000);
  std::string text = Text(m);
  EXPECT_THAT(text, HasSubstr("triple=\"0\",party=\"p1\",process=\"0\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("triple=\"0\",party=\"\",process=\"0\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("party=\"p1\",process=\"0\"} 0.00025"));
  kdc_metrics_lost(m, 0);
  text = Text(m);
  EXPECT_THAT(text, Not(HasSubstr("party=\"p1\",process=\"0\"} 1\n")));
}

TEST_F(KdcMetricsTest, TheFileIsWrittenAndReadable) {
  umask(0077);
  kdc_metrics* const m = Open();
  kdc_metrics_request(m, KDC_AS_REQ, KDC_WRONG_PASSWORD, 1, 3000);
  kdc_metrics_watch(
      m,
      [](void* arg, kdc_load* load) {
        EXPECT_EQ(arg, static_cast<void*>(&log_lines));
        load->jobs = 17;
        load->oldest_us = 250'000;
      },
      &log_lines);
  ASSERT_TRUE(Until([this] {
    return Written().find("mpckdc_krb5kdc_jobs_waiting{realm=\"" + realm_ +
                          "\",process=\"0\"} 17\n") != std::string::npos;
  })) << Written();
  const std::string text = Written();
  EXPECT_THAT(text, HasSubstr("result=\"wrong_password\",keys=\"remote\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("oldest_wait_seconds{realm=\"" + realm_ + "\",process=\"0\"} 0.25"));
  EXPECT_THAT(text, HasSubstr("certificate_expires_seconds{realm=\"" + realm_ +
                              "\",what=\"certificate\"} 0\n"));
  struct stat found{};
  ASSERT_EQ(stat(file().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0644u);
  kdc_metrics_unwatch(m);
  EXPECT_TRUE(Until([this] {
    return Written().find("jobs_waiting{realm=\"" + realm_ + "\",process=\"0\"} 0\n") !=
           std::string::npos;
  }));
}

// daemon(): the process that began ends, its child goes on; and a worker that is killed.
TEST_F(KdcMetricsTest, AnotherProcessWritesWhenTheWriterDies) {
  int pipes[2];  // both end at the latest when the test does
  ASSERT_EQ(pipe(pipes), 0);
  const auto live_on = [&pipes] {
    char byte;
    close(pipes[1]);
    (void)!read(pipes[0], &byte, 1);
  };
  const pid_t first = Fork([&] {
    Open();
    Fork(live_on);
    live_on();
  });
  ASSERT_TRUE(Until([this] { return !Written().empty(); }));
  ASSERT_EQ(kill(first, SIGKILL), 0);
  ASSERT_EQ(waitpid(first, nullptr, 0), first);
  std::filesystem::remove(file());
  EXPECT_TRUE(Until([this] { return !Written().empty(); }));
  close(pipes[0]);
  close(pipes[1]);
}

// Two kdc.conf with one file: each would write its own counters over the other's.
TEST_F(KdcMetricsTest, OfTwoKrb5kdcsWithOneFileTheFirstWrites) {
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  const pid_t first = Fork([&] {
    kdc_metrics_request(Open(), KDC_AS_REQ, KDC_OK, 1, 1500);
    char byte;
    close(pipes[1]);
    (void)!read(pipes[0], &byte, 1);
  });
  const std::string of_first = "type=\"as\",result=\"ok\",keys=\"remote\"} 1\n";
  const auto writes = [&] { return Written().find(of_first) != std::string::npos; };
  ASSERT_TRUE(Until(writes));
  ClearLog();
  Open();
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(writes()) << Written();
    usleep(100'000);
  }
  EXPECT_THAT(Logged(), Contains("metrics of realm " + realm_ + ": process " +
                                 std::to_string(first) + " writes " + file() +
                                 " already; see mpc_metrics_file in kdc.conf")
                            .Times(1));
  ASSERT_EQ(kill(first, SIGKILL), 0);
  ASSERT_EQ(waitpid(first, nullptr, 0), first);
  EXPECT_TRUE(Until([&] { return !writes(); })) << "the second goes on";
  close(pipes[0]);
  close(pipes[1]);
}

// As another user's krb5kdc leaves it to this one: root, who runs this test, may open every file.
TEST_F(KdcMetricsTest, WhoCannotAskWhetherAnotherWritesDoesNotWrite) {
  std::filesystem::create_directory(file() + ".lock");
  ClearLog();
  Open();
  sleep(3);
  EXPECT_EQ(Written(), "");
  EXPECT_THAT(Logged(), Contains("metrics of realm " + realm_ + ": cannot open " + file() +
                                 ".lock, which says who writes " + file() +
                                 ": Is a directory; see mpc_metrics_file in kdc.conf")
                            .Times(1));
  std::filesystem::remove(file() + ".lock");
  EXPECT_TRUE(Until([this] { return !Written().empty(); }));
}

TEST_F(KdcMetricsTest, AFolderThatVanishesAndComesBackHasTheFileAgain) {
  Open();
  ASSERT_TRUE(Until([this] { return !Written().empty(); }));
  std::filesystem::remove_all(folder_);
  sleep(2);
  std::filesystem::create_directory(folder_);
  EXPECT_TRUE(Until([this] { return !Written().empty(); }));
}

TEST_F(KdcMetricsTest, AFileThatCannotBeWrittenIsToldOnce) {
  std::filesystem::remove_all(folder_);
  ClearLog();
  Open();
  sleep(3);
  kdc_metrics_stop();
  // Those of the tests before have lost their folders, too.
  EXPECT_THAT(Logged(), Contains("metrics of realm " + realm_ + ": cannot make " + file() +
                                 ".new: No such file or directory; see mpc_metrics_file in "
                                 "kdc.conf")
                            .Times(1));
}

TEST_F(KdcMetricsTest, TwoRealmsHaveTwoFiles) {
  std::string error;
  kdc_metrics* const m = Open(realm_, &error);
  EXPECT_EQ(error, "");
  EXPECT_EQ(Open(realm_, &error), m);
  EXPECT_EQ(Open("OTHER", &error), nullptr);
  EXPECT_THAT(error, HasSubstr("realm OTHER is not counted"));
}

}  // namespace
}  // namespace mpckdc::metrics
