// SPDX-License-Identifier: Apache-2.0
// The program as it is started, its three processes too: small runs of each kind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

namespace {

using nlohmann::json;

struct Outcome {
  int status = -1;
  std::string out;  // and standard error
};

Outcome RunBench(const std::string& arguments) {
  Outcome o;
  FILE* pipe = popen((std::string(MPCKDC_BENCH) + " " + arguments + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return o;
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) o.out.append(buffer, n);
  const int status = pclose(pipe);
  o.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return o;
}

json RunJson(const std::string& arguments) {
  const Outcome o = RunBench(arguments + " --json --seconds=0.01 --runs=2");
  EXPECT_EQ(o.status, 0) << arguments << "\n" << o.out;
  const json all = json::parse(o.out, nullptr, false);
  EXPECT_TRUE(all.is_object()) << arguments << "\n" << o.out;
  EXPECT_FALSE(all.is_object() && all["commit"].get<std::string>().empty());
  return all.is_object() ? all : json{{"results", json::array()}};
}

// What every measurement must hold, whatever the machine.
void ExpectSound(const json& r) {
  SCOPED_TRACE(r.dump());
  const double batch = r["batch"];
  EXPECT_TRUE(r["cost_as_declared"]);
  EXPECT_EQ(r["rounds"], r["declared"]["rounds"]);
  EXPECT_NEAR(double{r["payload_bytes_per_block_per_party"]} * batch,
              double{r["declared"]["bytes"]}, 1e-6 * batch);
  EXPECT_NEAR(double{r["bytes_per_block_per_party"]} * batch,
              double{r["declared"]["bytes"]} + 16 * double{r["messages"]}, 1e-6 * batch);
  EXPECT_EQ(double{r["messages"]}, double{r["declared"]["messages"]});
  EXPECT_GT(r["blocks_per_s"], 0);
  EXPECT_GT(r["blocks_per_cpu_s"], 0);
  EXPECT_LE(r["latency_ms"]["p50"], r["latency_ms"]["p99"]);
  EXPECT_LE(r["latency_ms"]["p99"], r["latency_ms"]["max"]);
  const json& spread = r["spread"]["blocks_per_cpu_s"];
  EXPECT_LE(spread["min"], spread["median"]);
  EXPECT_LE(spread["median"], spread["max"]);
}

void ExpectVerified(const json& all, size_t results) {
  ASSERT_EQ(all["results"].size(), results);
  for (const json& r : all["results"]) {
    ExpectSound(r);
    EXPECT_EQ(r["verified"], true);
    EXPECT_GE(double{r["memory"]["bytes_per_block"]},
              double{r["memory"]["bytes_per_block_without_keys"]});
  }
}

TEST(MpcBench, AesInProcesses) {
  ExpectVerified(RunJson("aes --batch=1,7,513 --bits=128,256"), 6);
}

TEST(MpcBench, AesOverEveryChannelOfThisMachine) {
  const json all = RunJson("aes --channel=all --batch=513 --workers=2");
  ExpectVerified(all, all["results"].size());
  EXPECT_GE(all["results"].size(), 2u);
}

TEST(MpcBench, AesWithTwoWorkersAndTheFloor) {
  const json all = RunJson("aes --batch=513 --workers=2 --sbox=throughput,latency --with-floor");
  ExpectVerified(all, 2);
  for (const json& r : all["results"]) {
    EXPECT_EQ(r["floor"]["bytes_per_block_per_party"], r["bytes_per_block_per_party"]);
    EXPECT_GT(r["ratio_to_floor"], 0);
  }
}

TEST(MpcBench, AesWithJoinedWorkersPartsAndExchangedRandomness) {
  ExpectVerified(RunJson("aes --batch=4609 --workers=2 --join --part=1024 --slots=2"
                         " --randomness=exchanged,keyed"), 2);
}

TEST(MpcBench, AesOnThreads) {
  ExpectVerified(
      RunJson("aes --parties=threads --channel=tls,tcp,memory --batch=7 --workers=1,2"), 6);
}

TEST(MpcBench, EveryInstructionSetOfThisMachine) {
  const json all = RunJson("aes --batch=513 --isa=portable,auto");
  ExpectVerified(all, 2);
  EXPECT_EQ(all["results"][0]["isa"], "portable");
}

TEST(MpcBench, Channel) {
  const json all = RunJson("channel --batch=7,513");
  ASSERT_EQ(all["results"].size(), 2u);
  for (const json& r : all["results"]) ExpectSound(r);
}

// A buffer made anew in each batch would be touched anew: 4,096 blocks are 340 pages of messages.
TEST(MpcBench, TouchesNoNewMemoryInSteadyState) {
  const json all = RunJson("aes --batch=4096");
  ExpectVerified(all, 1);
  for (const json& r : all["results"]) EXPECT_LT(double{r["minor_faults_per_batch"]}, 16);
}

void ExpectHmacs(const json& all, size_t results) {
  ASSERT_EQ(all["results"].size(), results);
  for (const json& r : all["results"]) {
    SCOPED_TRACE(r.dump());
    const double batch = r["batch"];
    EXPECT_EQ(r["verified"], true);
    EXPECT_TRUE(r["cost_as_declared"]);
    EXPECT_EQ(r["rounds"], r["declared"]["rounds"]);
    EXPECT_NEAR(double{r["payload_bytes_per_hmac_per_party"]} * batch,
                double{r["declared"]["bytes"]}, 1e-6 * batch);
    EXPECT_GT(r["hmacs_per_s"], 0);
    EXPECT_GT(r["hmacs_per_cpu_s"], 0);
    EXPECT_LE(r["latency_ms"]["p50"], r["latency_ms"]["p99"]);
  }
}

TEST(MpcBench, HmacOfEveryAdder) {
  ExpectHmacs(RunJson("hmac --batch=9 --bytes=20 --adder=ripple,prefix,fewest-rounds"), 3);
}

TEST(MpcBench, HmacOfEveryHash) {
  ExpectHmacs(RunJson("hmac --batch=70 --bytes=20 --hash=sha256,sha384 --message=public,shared"),
              4);
}

TEST(MpcBench, HmacOnThreadsWithExchangedRandomness) {
  const json all = RunJson("hmac --parties=threads --channel=memory --randomness=exchanged"
                           " --batch=600");
  ExpectHmacs(all, 1);
}

void ExpectLogins(const json& all, size_t results) {
  ASSERT_EQ(all["results"].size(), results);
  for (const json& r : all["results"]) {
    SCOPED_TRACE(r.dump());
    const double batch = r["batch"];
    EXPECT_EQ(r["verified"], true);
    EXPECT_TRUE(r["cost_as_declared"]);
    EXPECT_EQ(r["rounds"], r["declared"]["rounds"]);
    EXPECT_NEAR(double{r["payload_bytes_per_login_per_party"]} * batch,
                double{r["declared"]["bytes"]}, 1e-6 * batch);
    EXPECT_GT(r["logins_per_s"], 0);
    EXPECT_LE(r["latency_ms"]["p50"], r["latency_ms"]["p99"]);
    EXPECT_EQ(r["ctr"]["verified"], true);
    EXPECT_NEAR(double{r["ctr"]["ratio"]},
                double{r["logins_per_cpu_s"]} / double{r["ctr"]["logins_per_cpu_s"]}, 1e-9);
  }
}

TEST(MpcBench, LoginsOfEveryKind) {
  ExpectLogins(RunJson("rfc3962 --batch=3 --enctype=17,18,19,20 --checksum=yes,no"), 8);
}

TEST(MpcBench, LoginsOfOtherSizesAddersAndRandomness) {
  ExpectLogins(RunJson("rfc3962 --parties=threads --channel=memory --randomness=exchanged"
                       " --enctype=18,20 --batch=1 --adder=ripple --request-bytes=16,700"
                       " --reply-bytes=272"),
               4);
}

TEST(MpcBench, BreakdownAddsUp) {
  const json all = RunJson("breakdown --batch=513");
  ExpectVerified(all, 1);
  double sum = 0, whole = 0;
  for (const json& part : all["results"][0]["breakdown"]) {
    (part["part"] == "whole, as run" ? whole : sum) += double{part["percent"]};
  }
  EXPECT_NEAR(whole, 100, 1e-6);
  EXPECT_NEAR(sum, 100, 1e-6);
}

TEST(MpcBench, Table2HasThePapersRows) {
  const json all = RunJson("table2 --batch=513 --workers=1");
  ExpectVerified(all, 1);
  EXPECT_EQ(all["paper"][0]["blocks_per_s"], 100103);
}

TEST(MpcBench, LaunchWordsComeBeforeEachParty) {
  ExpectVerified(RunJson("aes --batch=7 --launch='env PARTY={party}'"), 1);
}

TEST(MpcBench, FailuresAreTold) {
  const Outcome option = RunBench("aes --batch=none");
  EXPECT_EQ(option.status, 2);
  EXPECT_THAT(option.out, testing::HasSubstr("--batch"));
  const Outcome launch = RunBench("aes --launch=/nonexistent/program");
  EXPECT_EQ(launch.status, 1);
  EXPECT_THAT(launch.out, testing::HasSubstr("/nonexistent/program"));
  const Outcome silent = RunBench("aes --launch=true");  // ends at once
  EXPECT_EQ(silent.status, 1);
  EXPECT_THAT(silent.out, testing::HasSubstr("P0"));
}

TEST(MpcBench, HelpAndVersion) {
  EXPECT_EQ(RunBench("--help").status, 0);
  EXPECT_THAT(RunBench("--help").out, testing::HasSubstr("--with-floor"));
  EXPECT_THAT(RunBench("--version").out, testing::HasSubstr("mpc-bench"));
}

}  // namespace
