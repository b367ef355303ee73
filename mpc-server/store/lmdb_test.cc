// SPDX-License-Identifier: Apache-2.0
//
// The share store on disk: what is in the file, what survives, what a full disk does.
#include "mpc-server/store/lmdb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/testing/folder.h"
#include "mpc-server/testing/records.h"

namespace mpckdc {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr size_t kPage = 4096;
const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

class LmdbTest : public ::testing::Test {
 protected:
  std::string DataFile() const { return folder_.File("shares.mdb"); }
  absl::StatusOr<std::unique_ptr<ShareStore>> Open(uint64_t map_bytes = 64 << 20) {
    return OpenLmdbForTest(folder_.path(), map_bytes);
  }
  absl::Status EnrolAll(ShareStore& store, absl::Span<const KeyRecord> records) {
    TransactionId txn;
    random_.Fill(absl::MakeSpan(txn));
    const absl::Status staged = store.Stage(txn, records, kNow);
    return staged.ok() ? store.Commit(txn, kNow).status() : staged;
  }
  KeyRecord Enrol(ShareStore& store, const std::string& principal) {
    KeyRecord record = RecordForTest(random_, principal);
    EXPECT_TRUE(EnrolAll(store, {record}).ok());
    return record;
  }

  TestFolder folder_;
  SeededRandomForTest random_{2};
};

// The next test runs this one in a process of its own: secret memory does not survive a fork.
constexpr char kChildFolder[] = "MPC_KDC_TEST_CHILD_FOLDER";
constexpr uint64_t kChildSeed = 77;

TEST(LmdbChild, DISABLED_EnrolsAndDies) {
  const char* folder = getenv(kChildFolder);
  ASSERT_NE(folder, nullptr);
  auto store = OpenLmdbForTest(folder);
  ASSERT_TRUE(store.ok()) << store.status();
  SeededRandomForTest random(kChildSeed);
  const KeyRecord committed = RecordForTest(random, "alice@EXAMPLE.COM");
  ASSERT_TRUE((*store)->Stage(TransactionId{1}, {committed}, kNow).ok());
  ASSERT_TRUE((*store)->Commit(TransactionId{1}, kNow).ok());
  const KeyRecord staged = RecordForTest(random, "bob@EXAMPLE.COM");
  ASSERT_TRUE((*store)->Stage(TransactionId{2}, {staged}, kNow).ok());
  kill(getpid(), SIGKILL);
}

// Killed right after an acknowledged commit, without any clean-up.
TEST_F(LmdbTest, AcknowledgedEnrolmentSurvivesAKilledProcess) {
  const pid_t child = fork();
  if (child == 0) {
    setenv(kChildFolder, folder_.path().c_str(), 1);
    execl("/proc/self/exe", "child", "--gtest_filter=*DISABLED_EnrolsAndDies",
          "--gtest_also_run_disabled_tests", nullptr);
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  SeededRandomForTest random(kChildSeed);
  const KeyRecord record = RecordForTest(random, "alice@EXAMPLE.COM");
  auto store = *Open();
  EXPECT_TRUE(SameRecord(*store->Get(record.info.handle), record));
  EXPECT_EQ(*store->Count(KeyState::kStaged), 1u);
  EXPECT_EQ(*store->ExpireStaged(kNow + absl::Hours(1)), 1u);
}

TEST_F(LmdbTest, ABackupIsAStoreOfItsOwnWhileTheOtherIsInUse) {
  absl::StatusOr<std::unique_ptr<ShareStore>> store = OpenLmdbForTest(folder_.path());
  ASSERT_TRUE(store.ok());
  const KeyRecord before = RecordForTest(SystemRandom(), "alice@EXAMPLE.COM");
  ASSERT_TRUE((*store)->Stage(TransactionId{1}, {before}, kNow).ok());
  ASSERT_TRUE((*store)->Commit(TransactionId{1}, kNow).ok());
  TestFolder target;
  const absl::Status copied = LmdbEngine::Backup(folder_.path(), 64 << 20, target.path());
  ASSERT_TRUE(copied.ok()) << copied;
  const KeyRecord after = RecordForTest(SystemRandom(), "bob@EXAMPLE.COM");
  ASSERT_TRUE((*store)->Stage(TransactionId{2}, {after}, kNow).ok());
  ASSERT_TRUE((*store)->Commit(TransactionId{2}, kNow).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(LmdbEngine::Backup(folder_.path(), 64 << 20, target.path())));
  EXPECT_TRUE(absl::IsNotFound(LmdbEngine::Backup(TestFolder().path(), 64 << 20, target.path())));
  absl::StatusOr<std::unique_ptr<ShareStore>> copy = OpenLmdbForTest(target.path());
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_TRUE(SameRecord(*(*copy)->Get(before.info.handle), before));
  EXPECT_TRUE(absl::IsNotFound((*copy)->Get(after.info.handle).status()));
}

TEST_F(LmdbTest, NoPlainShareIsInTheFile) {
  const KeyRecord record = Enrol(**Open(), "alice@EXAMPLE.COM");
  const std::string file = ReadFileForTest(DataFile());
  const auto holds = [&](absl::Span<const uint8_t> bytes) {
    return absl::StrContains(file, AsText(bytes));
  };
  EXPECT_TRUE(holds(record.info.handle)) << "the search sees";
  EXPECT_FALSE(holds(AsBytes("alice@EXAMPLE.COM")));
  for (const SharedBlock& share : record.usages[0].round_keys) {
    EXPECT_FALSE(holds(share.x));
    EXPECT_FALSE(holds(share.a));
  }
}

TEST_F(LmdbTest, OneProcessAtATime) {
  auto store = *Open();
  const absl::Status second = Open().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(second));
  EXPECT_THAT(std::string(second.message()), HasSubstr("another mpc-server"));
  store.reset();
  EXPECT_TRUE(Open().ok());
}

TEST_F(LmdbTest, FullMapIsDiskFullAndLosesNothing) {
  auto store = *Open(256 << 10);
  std::vector<KeyRecord> kept;
  absl::Status status;
  for (int i = 0; i < 1000 && status.ok(); ++i) {
    KeyRecord record = RecordForTest(random_, "user@EXAMPLE.COM");
    status = EnrolAll(*store, {record});
    if (status.ok()) kept.push_back(record);
  }
  ASSERT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("disk full"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("map_size_gib"));
  ASSERT_GT(kept.size(), 10u);
  store.reset();
  store = *Open();  // a larger map: the store goes on
  for (const KeyRecord& record : kept) {
    ASSERT_TRUE(SameRecord(*store->Get(record.info.handle), record));
  }
  Enrol(*store, "more@EXAMPLE.COM");
}

// The file may not grow (RLIMIT_FSIZE stands for a full file system): writes fail half way.
TEST_F(LmdbTest, FullDiskLosesNothing) {
  auto store = *Open();
  const KeyRecord first = Enrol(*store, "first@EXAMPLE.COM");
  signal(SIGXFSZ, SIG_IGN);
  struct rlimit old;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  struct rlimit small = old;
  small.rlim_cur = fs::file_size(DataFile()) + kPage;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  auto restore = absl::MakeCleanup([&] { setrlimit(RLIMIT_FSIZE, &old); });
  std::vector<KeyRecord> many;
  for (int i = 0; i < 50; ++i) many.push_back(RecordForTest(random_, "user@EXAMPLE.COM"));
  const absl::Status status = store->Stage(TransactionId{9}, many, kNow);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("disk full"));
  EXPECT_TRUE(SameRecord(*store->Get(first.info.handle), first));
  std::move(restore).Invoke();
  EXPECT_TRUE(store->Stage(TransactionId{9}, many, kNow).ok()) << "works again with space";
  EXPECT_EQ(*store->Commit(TransactionId{9}, kNow), many.size());
  store.reset();
  EXPECT_TRUE(SameRecord(*(*Open())->Get(first.info.handle), first));
}

// A copy taken while a commit writes its pages: any of the new data pages may be in it, not yet the
// page that makes them current. It must open as the state before.
TEST_F(LmdbTest, TornWriteOpensAsTheStateBefore) {
  const KeyRecord before = Enrol(**Open(), "before@EXAMPLE.COM");
  const std::string old_file = ReadFileForTest(DataFile());
  KeyRecord after = RecordForTest(random_, "after@EXAMPLE.COM");
  ASSERT_TRUE(Open().ok());
  ASSERT_EQ(ReadFileForTest(DataFile()), old_file) << "opening writes nothing";
  {
    auto store = *Open();
    ASSERT_TRUE(store->Stage(TransactionId{1}, {after}, kNow).ok());
  }
  const std::string new_file = ReadFileForTest(DataFile());
  std::vector<size_t> changed;
  for (size_t at = 2 * kPage; at < new_file.size(); at += kPage) {
    if (at >= old_file.size() || new_file.compare(at, kPage, old_file, at, kPage) != 0) {
      changed.push_back(at);
    }
  }
  ASSERT_GE(changed.size(), 2u);
  std::string torn = old_file;
  torn.resize(std::max(old_file.size(), new_file.size()));
  for (size_t at : changed) {
    std::string half = torn;
    half.replace(at, kPage / 2, new_file, at, kPage / 2);
    for (const std::string& image : {half, torn.replace(at, kPage, new_file, at, kPage)}) {
      WriteFileForTest(DataFile(), image);
      auto store = Open();
      ASSERT_TRUE(store.ok()) << store.status();
      ASSERT_TRUE(SameRecord(*(*store)->Get(before.info.handle), before));
      ASSERT_EQ(*(*store)->Count(KeyState::kStaged), 0u);
    }
  }
  WriteFileForTest(DataFile(), new_file);
  EXPECT_EQ(*(*Open())->Count(KeyState::kStaged), 1u);
}

TEST_F(LmdbTest, FileCutShortIsDataLossNotACrash) {
  {
    auto store = *Open();
    for (int i = 0; i < 40; ++i) Enrol(*store, "user@EXAMPLE.COM");
  }
  const std::string good = ReadFileForTest(DataFile());
  size_t refused = 0;
  for (size_t size = 3 * kPage; size < good.size(); size += 5 * kPage) {
    WriteFileForTest(DataFile(), good.substr(0, size));
    auto store = Open();
    if (store.ok()) continue;  // only free pages were lost
    ++refused;
    EXPECT_TRUE(absl::IsDataLoss(store.status())) << store.status();
  }
  EXPECT_GT(refused, 3u);
}

// The goal of the storm: at most 2 KB for each aes128-gcm key.
TEST_F(LmdbTest, ThousandsOfKeysTakeLessThanTwoKilobytesEach) {
  auto store = *Open();
  constexpr size_t kChunks = 16, kKeysPerChunk = 512;
  for (size_t chunk = 0; chunk < kChunks; ++chunk) {
    std::vector<KeyRecord> records;
    for (size_t i = 0; i < kKeysPerChunk; ++i) {
      records.push_back(RecordForTest(random_, "u0000001@EXAMPLE.COM"));
    }
    ASSERT_TRUE(EnrolAll(*store, records).ok());
  }
  EXPECT_EQ(*store->Count(KeyState::kCommitted), kChunks * kKeysPerChunk);
  store.reset();
  EXPECT_LT(fs::file_size(DataFile()) / (kChunks * kKeysPerChunk), 2048u);
}

}  // namespace
}  // namespace mpckdc
