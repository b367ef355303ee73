// SPDX-License-Identifier: Apache-2.0
// The program as it is started, its three processes too: small runs of each kind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "mpc-server/testing/long_tests.h"

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

// What every measurement must hold, whatever the machine. `unit` is what a lane is.
void ExpectSound(const json& r, const std::string& unit) {
  SCOPED_TRACE(r.dump());
  const std::string per_s = unit + "s_per_s", per_cpu_s = unit + "s_per_cpu_s",
                    per_party = "bytes_per_" + unit + "_per_party";
  const double batch = r["batch"];
  EXPECT_TRUE(r["cost_as_declared"]);
  EXPECT_EQ(r["rounds"], r["declared"]["rounds"]);
  EXPECT_NEAR(double{r["payload_" + per_party]} * batch, double{r["declared"]["bytes"]},
              1e-6 * batch);
  EXPECT_NEAR(double{r[per_party]} * batch,
              double{r["declared"]["bytes"]} + 16 * double{r["messages"]}, 1e-6 * batch);
  EXPECT_EQ(double{r["messages"]}, double{r["declared"]["messages"]});
  EXPECT_GT(r[per_s], 0);
  EXPECT_GT(r[per_cpu_s], 0);
  EXPECT_LE(r["latency_ms"]["p50"], r["latency_ms"]["p99"]);
  EXPECT_LE(r["latency_ms"]["p99"], r["latency_ms"]["max"]);
  EXPECT_LE(r["spread"][per_cpu_s]["min"], r["spread"][per_cpu_s]["median"]);
  EXPECT_LE(r["spread"][per_cpu_s]["median"], r["spread"][per_cpu_s]["max"]);
  if (r.contains("verified")) {
    EXPECT_EQ(r["verified"], true);
    const json& memory = r["memory"];
    EXPECT_GE(double{memory["bytes_per_" + unit]},
              double{memory["bytes_per_" + unit + "_without_keys"]});
  }
  if (r.contains("ctr")) {
    EXPECT_EQ(r["ctr"]["verified"], true);
    EXPECT_NEAR(double{r["ctr"]["ratio"]}, double{r[per_cpu_s]} / double{r["ctr"][per_cpu_s]},
                1e-9);
  }
}

// The results of a run, `count` in number.
json Measured(const std::string& arguments, size_t count) {
  const Outcome o = RunBench(arguments + " --json --seconds=0.01 --runs=2");
  EXPECT_EQ(o.status, 0) << arguments << "\n" << o.out;
  const json all = json::parse(o.out, nullptr, false);
  if (!all.is_object()) return ADD_FAILURE() << arguments << "\n" << o.out, json();
  EXPECT_FALSE(all["commit"].get<std::string>().empty());
  EXPECT_EQ(all["results"].size(), count) << arguments;
  const std::string command = all["command"];
  const char* const unit = command == "hmac" ? "hmac" : command == "rfc3962" ? "login" : "block";
  for (const json& r : all["results"]) {
    EXPECT_EQ(r.contains("verified"), command != "channel");
    EXPECT_EQ(r.contains("ctr"), command == "rfc3962");
    ExpectSound(r, unit);
  }
  return all;
}

TEST(MpcBench, MeasuresEveryKind) {
  const std::pair<const char*, size_t> runs[] = {
      {"aes --batch=1,7,513 --bits=128,256", 6},
      {"aes --batch=4609 --workers=2 --join --chunk=1024 --slots=2 --randomness=exchanged,keyed",
       2},
      {"aes --parties=threads --channel=tls,tcp,memory --batch=7 --workers=1,2", 6},
      {"aes --parties=threads --channel=memory --batch=7 --isa=portable", 1},
      {"aes --batch=7 --launch='env PARTY={party}'", 1},
      {"channel --batch=7,513", 2},
      {"hmac --batch=9 --bytes=20 --adder=ripple,prefix,fewest-rounds", 3},
      {"hmac --batch=70 --bytes=20 --hash=sha256,sha384 --message=public,shared", 4},
      {"hmac --parties=threads --channel=memory --randomness=exchanged --batch=600", 1},
      {"rfc3962 --batch=3 --enctype=17,18,19,20 --checksum=yes,no --protocol=replicated", 8},
      {"rfc3962 --parties=threads --channel=memory --randomness=exchanged --enctype=18,20 --batch=1"
       " --adder=ripple,auto --request-bytes=16,700 --reply-bytes=272",
       8}};
  for (const auto& [arguments, results] : runs) Measured(arguments, results);
}

// What they send is not declared: it is no sum of circuits' rounds.
TEST(MpcBench, LoginsAreRightHoweverTheyAreComputed) {
  const auto expect_right = [](const std::string& what, size_t count) {
    const Outcome o = RunBench("rfc3962 --security=active --json --seconds=0.01 --runs=1 " + what);
    ASSERT_EQ(o.status, 0) << o.out;
    const json all = json::parse(o.out, nullptr, false);
    ASSERT_TRUE(all.is_object()) << o.out;
    EXPECT_EQ(all["results"].size(), count);
    for (const json& r : all["results"]) EXPECT_EQ(r["verified"], true) << r.dump();
  };
  if (mpckdc::LongTests()) {
    expect_right("--protocol=garbled,auto --batch=1,40 --enctype=18,19", 8);
  } else {
    expect_right("--protocol=garbled,auto --batch=1,7 --enctype=18", 4);
    expect_right("--protocol=auto --batch=40 --enctype=19", 1);
  }
}

TEST(MpcBench, AesOverEveryChannelOfThisMachine) {
  const Outcome aead = RunBench("aes --channel=aead --batch=7 --seconds=0.01");
  Measured("aes --channel=all --batch=513 --workers=2", aead.status == 0 ? 3 : 2);
}

TEST(MpcBench, AesWithTwoWorkersAndTheFloor) {
  const json all =
      Measured("aes --batch=513 --workers=2 --sbox=throughput,latency --with-floor", 2);
  for (const json& r : all["results"]) {
    EXPECT_EQ(r["floor"]["bytes_per_block_per_party"], r["bytes_per_block_per_party"]);
    EXPECT_GT(r["ratio_to_floor"], 0);
  }
}

TEST(MpcBench, EveryInstructionSetOfThisMachine) {
  EXPECT_EQ(Measured("aes --batch=513 --isa=portable,auto", 2)["results"][0]["isa"], "portable");
}

// A buffer made anew in each batch would be touched anew: 4,096 blocks are 340 pages of messages.
TEST(MpcBench, TouchesNoNewMemoryInSteadyState) {
  const json all = Measured("aes --batch=4096", 1);
  EXPECT_LT(double{all["results"][0]["minor_faults_per_batch"]}, 16);
}

TEST(MpcBench, BreakdownAddsUp) {
  const json all = Measured("breakdown --batch=513", 1);
  double sum = 0, whole = 0;
  for (const json& part : all["results"][0]["breakdown"]) {
    (part["part"] == "whole, as run" ? whole : sum) += double{part["percent"]};
  }
  EXPECT_NEAR(whole, 100, 1e-6);
  EXPECT_NEAR(sum, 100, 1e-6);
}

TEST(MpcBench, Table2HasThePapersRows) {
  EXPECT_EQ(Measured("table2 --batch=513 --workers=1", 1)["paper"][0]["blocks_per_s"], 100103);
}

TEST(MpcBench, FailuresAreTold) {
  const std::tuple<const char*, int, const char*> failures[] = {
      {"aes --batch=none", 2, "--batch"},
      {"aes --parties=threads --isa=portable,auto", 2, "one --isa at a time"},
      {"aes --launch=/nonexistent/program", 1, "/nonexistent/program"},
      {"aes --launch=true", 1, "P0"}};  // ends at once
  for (const auto& [arguments, status, text] : failures) {
    const Outcome o = RunBench(arguments);
    EXPECT_EQ(o.status, status) << arguments;
    EXPECT_THAT(o.out, testing::HasSubstr(text)) << arguments;
  }
}

TEST(MpcBench, TablesHelpAndVersion) {
  const Outcome table = RunBench("aes --batch=7 --seconds=0.01 --runs=1");
  EXPECT_THAT(table.out, testing::HasSubstr("blocks/s"));
  EXPECT_THAT(table.out, testing::HasSubstr("processes"));
  EXPECT_EQ(RunBench("--help").status, 0);
  for (const char* option : {"--channel", "--batch", "--workers", "--join", "--seconds", "--json",
                             "--parties", "--launch", "--addresses", "--timeout"}) {
    EXPECT_THAT(RunBench("--help").out, testing::HasSubstr(option));
  }
  EXPECT_THAT(RunBench("aes --help").out, testing::HasSubstr("--with-floor"));
  EXPECT_THAT(RunBench("--version").out, testing::HasSubstr("mpc-bench"));
}

}  // namespace
