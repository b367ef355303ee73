// SPDX-License-Identifier: Apache-2.0
//
// A PostgreSQL server that is put back, crashes, or is replaced by its standby: what was committed is
// there, or the store says that it is not.
#include "mpc-server/store/postgres.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/random_source.h"
#include "mpc-server/store/share_store.h"
#include "mpc-server/testing/folder.h"
#include "mpc-server/testing/postgres_cluster.h"
#include "mpc-server/testing/postgres_fixture.h"
#include "mpc-server/testing/records.h"

namespace mpckdc {
namespace {

namespace fs = std::filesystem;
namespace rf = record_format;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string TextOf(const absl::Status& s) { return std::string(s.message()); }
const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

// With owners: the server is not ours.
void CopyAll(const std::string& from, const std::string& to) {
  ASSERT_EQ(system(absl::StrCat("cp -a ", from, " ", to).c_str()), 0);
}

TEST_F(PostgresTest, ADatabaseThatWasPutBackIsRefused) {
  auto engine = *Open();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Put(*engine, absl::StrCat("a", i)).ok());
  cluster_->Stop();
  const std::string backup = cluster_->folder() + "/backup";
  CopyAll(cluster_->data(), backup);
  ASSERT_TRUE(cluster_->Start().ok());
  TimeUntilOk([&] { return Put(*engine, "the last"); });
  cluster_->Stop();
  const auto put_back = [&](const std::string& from) {
    fs::remove_all(cluster_->data());
    CopyAll(from, cluster_->data());
  };
  const std::string newest = cluster_->folder() + "/newest";
  CopyAll(cluster_->data(), newest);
  put_back(backup);
  ASSERT_TRUE(cluster_->Start().ok());
  absl::SleepFor(absl::Seconds(1));
  // By the commits that are missing, even once its log is longer than it ever was.
  for (int i = 0; i < 3; ++i) {
    absl::Status s = Insert(*engine, "q");
    EXPECT_EQ(s.code(), absl::StatusCode::kFailedPrecondition) << s;
    EXPECT_THAT(TextOf(s), AllOf(HasSubstr("was put back"), HasSubstr(folder_.File("database"))));
    // Nor is it read: what it lacks would be taken for what never was.
    s = Get(*engine, "the last").status();
    EXPECT_EQ(s.code(), absl::StatusCode::kFailedPrecondition) << s;
    cluster_->Sql("CREATE TABLE filler AS SELECT generate_series(1, 100000) AS n");
    cluster_->Sql("DROP TABLE filler");
    absl::SleepFor(absl::Milliseconds(500));
  }
  engine.reset();
  EXPECT_EQ(OpenError().code(), absl::StatusCode::kFailedPrecondition) << "nor by a new process";
  // The right one again: goes on.
  cluster_->Stop();
  put_back(newest);
  ASSERT_TRUE(cluster_->Start().ok());
  engine = *Open();
  EXPECT_TRUE(Get(*engine, "the last").ok());
  // Or the administrator decides.
  engine.reset();
  cluster_->Stop();
  put_back(backup);
  ASSERT_TRUE(cluster_->Start().ok());
  fs::remove(folder_.File("database"));
  engine = *Open();
  EXPECT_TRUE(Put(*engine, "again").ok());
}

TEST_F(PostgresTest, AnotherClusterIsRefused) {
  { ASSERT_TRUE(Put(**Open(), "a").ok()); }
  auto other = *PostgresCluster::Create();
  const std::string same_name = other->NewDatabase();
  const absl::Status s = OpenError(other->ConnInfo(same_name));
  EXPECT_EQ(s.code(), absl::StatusCode::kFailedPrecondition) << s;
  EXPECT_THAT(TextOf(s), HasSubstr("another database cluster"));
  WriteFileForTest(folder_.File("database"), "rubbish");
  EXPECT_EQ(OpenError().code(), absl::StatusCode::kDataLoss);
}

// The primary is killed under load again and again while commits are on their way. Each Write()
// that said OK is there, each that said it was not committed is not, and the engine never has to
// be told anything.
TEST_F(PostgresTest, WhatACrashLeavesIsWhatWriteSaid) {
  auto engine = *Open();
  std::vector<std::string> yes, no;
  int asked = 0;
  for (int crash = 0; crash < 4; ++crash) {
    std::atomic<bool> stop = false;
    std::thread killer([&] {
      absl::SleepFor(absl::Milliseconds(150 + 37 * crash));
      cluster_->Kill();
      absl::SleepFor(absl::Milliseconds(200));
      EXPECT_TRUE(cluster_->Start().ok());
      absl::SleepFor(absl::Milliseconds(300));
      stop = true;
    });
    while (!stop) {
      const std::string key = absl::StrCat("k", asked++);
      const absl::Status s = Put(*engine, key);
      if (s.ok()) {
        yes.push_back(key);
      } else if (!absl::StrContains(s.message(), "not known yet")) {
        EXPECT_EQ(s.code(), absl::StatusCode::kUnavailable) << s;
        no.push_back(key);
      }
      if (!s.ok()) absl::SleepFor(absl::Milliseconds(10));
    }
    killer.join();
  }
  TimeUntilOk([&] { return Put(*engine, "end"); });
  for (const std::string& key : yes) EXPECT_TRUE(Get(*engine, key).ok()) << key;
  for (const std::string& key : no)
    EXPECT_TRUE(absl::IsNotFound(Get(*engine, key).status())) << key;
  EXPECT_GT(yes.size(), 0u);
  EXPECT_GT(no.size(), 0u);
}

// A synchronous standby takes over: nothing that was committed is missing.
TEST_F(PostgresTest, APromotedStandbyGoesOn) {
  auto primary = *PostgresCluster::Create();
  auto made = primary->CreateStandby();
  ASSERT_TRUE(made.ok()) << made.status();
  auto standby = *std::move(made);
  const std::string database = primary->NewDatabase();
  primary->Sql("ALTER SYSTEM SET synchronous_standby_names = 'standby'");
  primary->Sql("SELECT pg_reload_conf()");
  absl::SleepFor(absl::Milliseconds(300));
  ASSERT_EQ(primary->Sql("SELECT sync_state FROM pg_stat_replication"), "sync");
  const std::string both =
      absl::StrCat("host=", primary->folder(), ",", standby->folder(), " port=", primary->port(),
                   ",", standby->port(), " dbname=", database,
                   " user=mpcserver passfile=", primary->folder(), "/passfile");
  for (const char* weak : {"local", "remote_write"}) {
    EXPECT_THAT(
        TextOf(OpenError(absl::StrCat(both, " options='-c synchronous_commit=", weak, "'"))),
        HasSubstr("promoted standby"));
  }
  auto engine = *Open(both);
  EXPECT_TRUE(engine->Database()->synchronous);
  std::vector<std::string> yes;
  for (int i = 0; i < 200; ++i) {
    yes.push_back(absl::StrCat("k", i));
    ASSERT_TRUE(Put(*engine, yes.back()).ok());
  }
  std::thread failover([&] {
    absl::SleepFor(absl::Milliseconds(100));
    primary->Kill();
    EXPECT_TRUE(standby->Promote().ok());
  });
  const absl::Time start = absl::Now();
  absl::Time last_ok = start;
  absl::Duration silence;
  for (int i = 0; absl::Now() < start + absl::Seconds(8); ++i) {
    const std::string key = absl::StrCat("f", i);
    if (!Put(*engine, key).ok()) continue;
    silence = std::max(silence, absl::Now() - last_ok);
    last_ok = absl::Now();
    yes.push_back(key);
  }
  failover.join();
  EXPECT_GT(last_ok, start + absl::Seconds(7)) << "goes on at the standby";
  EXPECT_LT(silence, absl::Seconds(10));
  for (const std::string& key : yes) EXPECT_TRUE(Get(*engine, key).ok()) << key;
  RecordProperty("silence_ms", static_cast<int>(absl::ToInt64Milliseconds(silence)));
  printf("longest silence across the promotion: %s\n", absl::FormatDuration(silence).c_str());
}

// The standby is gone: the primary waits for it, and so do we, and say nothing that is not so.
TEST_F(PostgresTest, ACommitThatTheStandbyLacksIsNotPromised) {
  auto primary = *PostgresCluster::Create();
  const std::string database = primary->NewDatabase();
  auto engine = *Open(primary->ConnInfo(database));
  ASSERT_TRUE(Put(*engine, "a").ok());
  primary->Sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
  primary->Sql("SELECT pg_reload_conf()");
  absl::SleepFor(absl::Milliseconds(300));
  const absl::Time start = absl::Now();
  absl::Status s = Insert(*engine, "b");
  EXPECT_EQ(s.code(), absl::StatusCode::kUnavailable) << s;
  EXPECT_THAT(TextOf(s), HasSubstr("not known yet"));
  EXPECT_LT(absl::Now() - start,
            limits::kDatabaseAnswer + limits::kDatabaseResolve + absl::Seconds(3));
  primary->Sql("ALTER SYSTEM RESET ALL");
  primary->Sql("SELECT pg_reload_conf()");
  TimeUntilOk([&] { return Insert(*engine, "c"); });
  EXPECT_TRUE(Get(*engine, "b", rf::kReplay).ok()) << "it was committed after all";
}

// The same in the moment in which a refresh is entered. The two other servers heard nothing of this
// one, so all three go on in the old epoch (EpochStep::kStay).
TEST_F(PostgresTest, ARefreshThatTheStandbyLacksLosesNoKey) {
  auto primary = *PostgresCluster::Create();
  const std::string database = primary->NewDatabase();
  std::string key_file = "1 " + std::string(64, 'a');
  const auto open = [&]() -> absl::StatusOr<std::unique_ptr<ShareStore>> {
    auto engine = Open(primary->ConnInfo(database));
    if (!engine.ok()) return engine.status();
    StoreKeys keys = *StoreKeys::Parse(AsBytes(key_file), "the key file");
    keys.SetSaver([&](absl::Span<const uint8_t> text) {
      key_file = std::string(AsText(text));
      return absl::OkStatus();
    });
    return ShareStore::Open(*std::move(engine), {{"EXAMPLE.COM", 0, 7}, keys, &SystemRandom()});
  };
  std::unique_ptr<ShareStore> store = *open();
  const KeyRecord record = RecordForTest(SystemRandom(), "alice@EXAMPLE.COM", kEnctypeAes256Gcm);
  ASSERT_TRUE(store->Stage(TransactionId{1}, {&record, 1}, 1, kNow).ok());
  ASSERT_TRUE(store->Commit(TransactionId{1}, kNow).ok());
  RefreshSeed seed;
  seed.Get().fill(7);
  ASSERT_TRUE(store->PrepareEpoch(RefreshId{1}, seed).ok());
  primary->Sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
  primary->Sql("SELECT pg_reload_conf()");
  absl::SleepFor(absl::Milliseconds(300));
  const absl::Status entered = store->EnterEpoch(kNow);
  EXPECT_EQ(entered.code(), absl::StatusCode::kUnavailable) << entered;
  primary->Sql("ALTER SYSTEM RESET ALL");
  primary->Sql("SELECT pg_reload_conf()");
  // As before it meets the others again.
  TimeUntilOk([&] { return store->ReloadEpoch(); });
  if (store->Epoch().epoch == 1u) {
    EXPECT_TRUE(store->AbandonEpoch().ok());
  }
  EXPECT_TRUE(store->Get(record.info.handle).ok()) << "before the restart";
  store.reset();
  absl::StatusOr<std::unique_ptr<ShareStore>> again = open();
  ASSERT_TRUE(again.ok()) << again.status();
  const absl::StatusOr<KeyRecord> found = (*again)->Get(record.info.handle);
  EXPECT_TRUE(found.ok()) << found.status();
}

}  // namespace
}  // namespace mpckdc
