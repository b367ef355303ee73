// SPDX-License-Identifier: Apache-2.0
//
// The real share store on the real LMDB, with faults at its file-system calls (fault_shim.c): the
// process killed at each call, writes torn and lost as by a power failure, EIO, a full disk. What
// was acknowledged is there afterwards, nothing is half there, and the store goes on working.
//
// MPCKDC_STORE_RUNS: how many runs with a random seed and call the last test does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "mpc-server/testing/folder.h"
#include "mpc-server/testing/records.h"
#include "mpc-server/testing/store_workload.h"

namespace mpckdc {
namespace {

constexpr char kChildFolder[] = "MPCKDC_FAULT_TEST_FOLDER";
constexpr char kChildSeed[] = "MPCKDC_FAULT_TEST_SEED";
const char* const kModes[] = {"kill", "tear", "lose", "eio", "enospc"};

void Tell(const std::string& line) {
  const std::string text = line + "\n";
  if (write(STDOUT_FILENO, text.data(), text.size()) < 0) _exit(3);
}

// ---- The process that works ----

// Tells on standard output what it tries and what was acknowledged. Ends without closing anything.
TEST(StoreFaultChild, DISABLED_Works) {
  const char* const folder = getenv(kChildFolder);
  ASSERT_NE(folder, nullptr);
  uint64_t seed = 0;
  ASSERT_TRUE(absl::SimpleAtoi(getenv(kChildSeed), &seed));
  auto store = OpenLmdbForTest(folder);
  if (!store.ok()) {
    Tell(absl::StrCat("closed ", store.status().message()));
    _exit(0);
  }
  Tell("opened");
  const std::vector<StoreOperation> operations = StoreWorkload(seed);
  for (size_t i = 0; i < operations.size(); ++i) {
    for (int step = 0; step < operations[i].Steps(); ++step) {
      Tell(absl::StrCat("try ", i));
      const absl::Status done = operations[i].Do(**store, step);
      Tell(absl::StrCat(done.ok() ? "ok " : "error ", i, " ", done.message()));
      if (!done.ok()) break;
    }
  }
  using Calls = long();
  auto* const calls = reinterpret_cast<Calls*>(dlsym(RTLD_DEFAULT, "mpckdc_shim_calls"));
  Tell(absl::StrCat("calls ", calls == nullptr ? 0 : calls()));
  _exit(0);
}

// ---- The test ----

struct Fault {
  std::string mode = "kill";
  long at = 0;
  uint64_t seed = 1;  // of the workload, and of what is torn
  bool lies = false;
};

struct Told {
  bool opened = false;
  long calls = 0;  // of the whole workload, when it came to its end
  std::vector<StoreProgress> progress;
};

Told Read(const std::string& output, size_t operations) {
  Told told;
  told.progress.resize(operations);
  for (const absl::string_view line : absl::StrSplit(output, '\n')) {
    const std::vector<std::string> words = absl::StrSplit(line, absl::MaxSplits(' ', 2));
    size_t i = 0;
    if (words[0] == "opened") told.opened = true;
    if (words.size() < 2 || !absl::SimpleAtoi(words[1], &i)) continue;
    if (words[0] == "calls") {
      told.calls = static_cast<long>(i);
    } else if (i < operations) {
      StoreProgress& progress = told.progress[i];
      if (words[0] == "try") progress.tried = true;
      if (words[0] == "error") progress.failed = true;
      if (words[0] == "ok") {
        ++progress.acknowledged;
        progress.tried = false;
      }
    }
  }
  return told;
}

class StoreFaultTest : public ::testing::Test {
 protected:
  static std::string RunChild(const std::string& folder, const Fault& fault) {
    int out[2];
    if (pipe(out) != 0) return "";
    const pid_t child = fork();
    if (child == 0) {
      dup2(out[1], STDOUT_FILENO);
      close(out[0]);
      close(out[1]);
      setenv(kChildFolder, folder.c_str(), 1);
      setenv(kChildSeed, absl::StrCat(fault.seed).c_str(), 1);
      setenv("LD_PRELOAD", MPCKDC_FAULT_SHIM, 1);
      setenv("MPCKDC_SHIM_FILE", (folder + "/shares.mdb").c_str(), 1);
      setenv("MPCKDC_SHIM_AT", absl::StrCat(fault.at).c_str(), 1);
      setenv("MPCKDC_SHIM_DO", fault.mode.c_str(), 1);
      setenv("MPCKDC_SHIM_SEED", absl::StrCat(fault.seed * 1000 + fault.at).c_str(), 1);
      if (fault.lies) setenv("MPCKDC_SHIM_LIES", "1", 1);
      execl("/proc/self/exe", "child", "--gtest_filter=*DISABLED_Works",
            "--gtest_also_run_disabled_tests", nullptr);
      _exit(1);
    }
    close(out[1]);
    std::string output;
    char bytes[4096];
    for (ssize_t n; (n = read(out[0], bytes, sizeof(bytes))) > 0;) {
      output.append(bytes, static_cast<size_t>(n));
    }
    close(out[0]);
    waitpid(child, nullptr, 0);
    return output;
  }

  // What was wrong afterwards; empty: nothing. `told`, when given, gets what the process said.
  static std::string Run(const Fault& fault, Told* told = nullptr) {
    TestFolder folder;
    const std::vector<StoreOperation> operations = StoreWorkload(fault.seed);
    const Told heard = Read(RunChild(folder.path(), fault), operations.size());
    if (told != nullptr) *told = heard;
    const std::string where =
        absl::StrCat("seed ", fault.seed, ", ", fault.mode, " at call ", fault.at, ": ");
    auto store = OpenLmdbForTest(folder.path());
    if (!store.ok()) return absl::StrCat(where, store.status().message());
    const std::string bad =
        JudgeStore(**store, operations, heard.progress, fault.mode == "enospc");
    if (!bad.empty()) return where + bad;
    SeededRandomForTest random(fault.seed + 1'000'000);
    const KeyRecord more = RecordForTest(random, "more@EXAMPLE.COM");
    absl::Status s = (*store)->Stage(TransactionId{9}, {more}, absl::UnixEpoch());
    if (s.ok()) s = (*store)->Commit(TransactionId{9}, absl::UnixEpoch()).status();
    return s.ok() ? "" : absl::StrCat(where, "and then: ", s.message());
  }

  static long CallsOf(uint64_t seed) {
    Told told;
    EXPECT_EQ(Run({"kill", 0, seed}, &told), "");
    EXPECT_GT(told.calls, 10);
    return told.calls;
  }
};

// The workload without faults does all it says, and the shim sees the store's calls.
TEST_F(StoreFaultTest, WithoutAFaultEverythingIsThere) {
  Told told;
  EXPECT_EQ(Run({"kill", 0, 1}, &told), "");
  EXPECT_TRUE(told.opened);
  EXPECT_GT(told.calls, 10);
  int acknowledged = 0;
  for (const StoreProgress& progress : told.progress) acknowledged += progress.acknowledged;
  EXPECT_GT(acknowledged, 5);
}

TEST_F(StoreFaultTest, KilledAtEachCall) {
  const long calls = CallsOf(1);
  for (long at = 1; at <= calls; ++at) EXPECT_EQ(Run({"kill", at, 1}), "");
}

TEST_F(StoreFaultTest, PowerLostAtEachCall) {
  const long calls = CallsOf(2);
  for (long at = 1; at <= calls; ++at) EXPECT_EQ(Run({"lose", at, 2}), "");
}

TEST_F(StoreFaultTest, AnyFaultAtAnyCall) {
  int runs = 40;
  const char* const set = getenv("MPCKDC_STORE_RUNS");
  ASSERT_TRUE(set == nullptr || absl::SimpleAtoi(set, &runs)) << "MPCKDC_STORE_RUNS is no number";
  SeededRandomForTest random(3);
  for (int run = 0; run < runs; ++run) {
    uint32_t number;
    random.Fill(absl::MakeSpan(reinterpret_cast<uint8_t*>(&number), sizeof(number)));
    const Fault fault{kModes[run % 5], 1 + static_cast<long>(number % 60),
                      static_cast<uint64_t>(10 + run)};
    EXPECT_EQ(Run(fault), "");
  }
}

// Nothing was acknowledged yet; the next start must not be refused for it.
TEST_F(StoreFaultTest, AnyFaultWhileTheStoreIsCreated) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    for (long at = 1; at <= 5; ++at) EXPECT_EQ(Run({kModes[1 + seed % 2], at, seed}), "");
  }
}

// The control: on a disk whose syncs do nothing, power failures lose what was acknowledged.
TEST_F(StoreFaultTest, ControlADiskThatLiesIsSeen) {
  const long calls = CallsOf(2);
  int bad = 0;
  for (long at = 12; at <= calls && bad == 0; at += 3) {
    bad += !Run({"lose", at, 2, true}).empty();
  }
  EXPECT_GT(bad, 0);
}

}  // namespace
}  // namespace mpckdc
