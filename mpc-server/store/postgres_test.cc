// SPDX-License-Identifier: Apache-2.0
//
// The share store on a real PostgreSQL server that misbehaves in each way that a database can: what
// the administrator is told, and that nothing is lost, invented or silently put back.
#include "mpc-server/store/postgres.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <filesystem>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/random_source.h"
#include "mpc-server/store/postgres_schema.h"
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
using ::testing::Not;

std::string TextOf(const absl::Status& s) { return std::string(s.message()); }
const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

// ---- What is refused at the start ----

TEST_F(PostgresTest, WrongPasswordSaysWhereToLookAndNotThePassword) {
  const std::string wrong = folder_.File("passfile");
  WriteFileForTest(wrong, "*:*:*:*:a-wrong-password\n");
  chmod(wrong.c_str(), 0600);
  const absl::Status s = OpenError(absl::StrReplaceAll(
      cluster_->ConnInfo(database_), {{cluster_->folder() + "/passfile", wrong}}));
  EXPECT_EQ(s.code(), absl::StatusCode::kPermissionDenied) << s;
  EXPECT_THAT(TextOf(s), AllOf(HasSubstr("passfile="), Not(HasSubstr("a-wrong-password"))));
}

TEST_F(PostgresTest, NoPasswordInTheConnectionString) {
  const absl::Status s = OpenError(cluster_->ConnInfo(database_) + " password=visible");
  EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(TextOf(s), AllOf(HasSubstr("passfile=FILE"), Not(HasSubstr("visible"))));
  EXPECT_EQ(OpenError("nonsense").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(TextOf(OpenError("host=/tmp")), HasSubstr("dbname="));
}

TEST_F(PostgresTest, MissingDatabaseRoleOrServer) {
  absl::Status s = OpenError(cluster_->ConnInfo("nowhere"));
  EXPECT_EQ(s.code(), absl::StatusCode::kFailedPrecondition) << s;
  EXPECT_THAT(TextOf(s), HasSubstr("make the database"));
  const absl::Time start = absl::Now();
  s = OpenError(absl::StrCat("host=", folder_.path(), " dbname=x user=y"));
  EXPECT_EQ(s.code(), absl::StatusCode::kUnavailable) << s;
  EXPECT_THAT(TextOf(s), HasSubstr("look whether it runs"));
  EXPECT_LT(absl::Now() - start, limits::kDatabaseStart + absl::Seconds(5));
}

TEST_F(PostgresTest, SchemaIsMissingOlderOrNewer) {
  const std::string bare = cluster_->NewDatabase(/*migrated=*/false);
  absl::Status s = OpenError(cluster_->OwnerInfo(bare));
  EXPECT_EQ(s.code(), absl::StatusCode::kFailedPrecondition) << s;
  EXPECT_THAT(TextOf(s), HasSubstr("--migrate"));
  cluster_->Sql("INSERT INTO mpckdc.schema_version VALUES (1000)", database_);
  s = OpenError();
  EXPECT_EQ(s.code(), absl::StatusCode::kFailedPrecondition) << s;
  EXPECT_THAT(TextOf(s), AllOf(HasSubstr("version 1000"), HasSubstr("a newer mpc-server")));
  s = Migrate(cluster_->OwnerInfo(database_), "mpcserver").status();
  EXPECT_THAT(TextOf(s), HasSubstr("a newer mpc-server"));
}

TEST_F(PostgresTest, MigratingTwiceAtOnceDoesItOnce) {
  const std::string bare = cluster_->NewDatabase(/*migrated=*/false);
  std::array<absl::StatusOr<int>, 4> applied;
  std::vector<std::thread> threads;
  for (auto& result : applied) {
    threads.emplace_back([&] { result = Migrate(cluster_->OwnerInfo(bare), "mpcserver"); });
  }
  for (std::thread& thread : threads) thread.join();
  int total = 0;
  for (const auto& result : applied) {
    ASSERT_TRUE(result.ok()) << result.status();
    total += *result;
  }
  EXPECT_EQ(total, static_cast<int>(Migrations().size()));
  EXPECT_TRUE(Open(cluster_->ConnInfo(bare)).ok());
}

// The run-time role changes rows and nothing else.
TEST_F(PostgresTest, TheRunTimeRoleOwnsNothing) {
  EXPECT_FALSE(Migrate(cluster_->ConnInfo(cluster_->NewDatabase(false)), "").ok());
  auto connection = *PgConnection::Connect(cluster_->ConnInfo(database_));
  const absl::Duration limit = absl::Seconds(5);
  EXPECT_TRUE(connection->RunScript("SELECT * FROM mpckdc.keys", limit).ok());
  for (const char* forbidden :
       {"DROP TABLE mpckdc.keys", "CREATE TABLE mpckdc.more (n int)", "TRUNCATE mpckdc.keys",
        "UPDATE mpckdc.schema_version SET n = 7", "ALTER TABLE mpckdc.keys ADD x int"}) {
    EXPECT_FALSE(connection->RunScript(forbidden, limit).ok()) << forbidden;
  }
  cluster_->Sql("REVOKE INSERT ON mpckdc.keys FROM mpcserver", database_);
  const absl::Status s = Put(**Open(), "k");
  EXPECT_EQ(s.code(), absl::StatusCode::kPermissionDenied) << s;
  EXPECT_THAT(TextOf(s), HasSubstr("--migrate grants"));
}

TEST_F(PostgresTest, CommitsThatAreNotDurableAreRefused) {
  const auto with = [&](const std::string& setting) {
    return OpenError(absl::StrCat(cluster_->ConnInfo(database_), " options='-c ", setting, "'"));
  };
  absl::Status s = with("synchronous_commit=off");
  EXPECT_EQ(s.code(), absl::StatusCode::kFailedPrecondition) << s;
  EXPECT_THAT(TextOf(s), AllOf(HasSubstr("synchronous_commit = off"), HasSubstr("Set it to on")));
  EXPECT_TRUE(with("synchronous_commit=local").ok()) << "no standby waits";
  const auto fsync = absl::MakeCleanup([&] {
    cluster_->Sql("ALTER SYSTEM RESET ALL");
    cluster_->Sql("SELECT pg_reload_conf()");
  });
  cluster_->Sql("ALTER SYSTEM SET fsync = off");
  cluster_->Sql("SELECT pg_reload_conf()");
  absl::SleepFor(absl::Milliseconds(500));
  EXPECT_THAT(TextOf(OpenError()), HasSubstr("fsync = off"));
}

TEST_F(PostgresTest, AnotherRealmsDatabase) {
  const auto open = [&](const StoreIdentity& identity) {
    return ShareStore::Open(*Open(), {identity, StoreKeysForTest(), &SystemRandom()}).status();
  };
  ASSERT_TRUE(open(kIdentityForTest).ok());
  const absl::Status s = open({"OTHER.COM", 1, 7});
  EXPECT_EQ(s.code(), absl::StatusCode::kFailedPrecondition) << s;
  EXPECT_THAT(TextOf(s), AllOf(HasSubstr("the database holds the shares of realm EXAMPLE.COM"),
                               HasSubstr("OTHER.COM")));
}

TEST_F(PostgresTest, OneProcessForOneFolder) {
  auto engine = *Open();
  EXPECT_THAT(TextOf(OpenError()), HasSubstr("another mpc-server"));
  engine.reset();
  EXPECT_TRUE(Open().ok());
}

// ---- What happens under way ----

TEST_F(PostgresTest, ReadOnlySaysSoAndGoesOnAfterwards) {
  auto engine = *Open();
  ASSERT_TRUE(Put(*engine, "a").ok());
  cluster_->Sql(absl::StrCat("ALTER ROLE mpcserver SET default_transaction_read_only = on"));
  absl::Status s = OpenError();  // another folder's lock: the same process
  {
    TestFolder other;
    s = PostgresEngine::Open(cluster_->ConnInfo(database_), other.path(), SystemRandom()).status();
  }
  cluster_->Sql("ALTER ROLE mpcserver RESET default_transaction_read_only");
  EXPECT_EQ(s.code(), absl::StatusCode::kUnavailable) << s;
  EXPECT_THAT(TextOf(s), HasSubstr("read-only"));
  EXPECT_TRUE(Put(*engine, "b").ok());
}

TEST_F(PostgresTest, ARestartOfTheDatabaseIsOutlived) {
  auto engine = *Open();
  ASSERT_TRUE(Put(*engine, "a").ok());
  ASSERT_TRUE(Insert(*engine, "r").ok());
  cluster_->Stop();
  absl::Status s = Put(*engine, "b");
  EXPECT_EQ(s.code(), absl::StatusCode::kUnavailable) << s;
  EXPECT_THAT(TextOf(s), HasSubstr("look whether it runs"));
  s = Get(*engine, "a").status();
  EXPECT_EQ(s.code(), absl::StatusCode::kUnavailable) << s;
  absl::SleepFor(absl::Milliseconds(500));
  const absl::Time start = absl::Now();
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(Insert(*engine, "q").ok());
  EXPECT_LT(absl::Now() - start, absl::Seconds(1)) << "what is known to be away is not waited for";
  ASSERT_TRUE(cluster_->Start().ok());
  EXPECT_LT(TimeUntilOk([&] { return Put(*engine, "c"); }), absl::Seconds(3));
  EXPECT_TRUE(Get(*engine, "a").ok());
  EXPECT_TRUE(absl::IsNotFound(Get(*engine, "b").status()));
  EXPECT_TRUE(Get(*engine, "c").ok());
}

TEST_F(PostgresTest, SaysHowItsDatabaseIs) {
  auto engine = *Open();
  ASSERT_TRUE(Put(*engine, "a").ok());
  ASSERT_TRUE(Get(*engine, "a").ok());
  const DatabaseState state = *engine->Database();
  EXPECT_EQ(state.where,
            absl::StrCat(cluster_->socket_folder(), ":", cluster_->port(), "/", database_));
  EXPECT_EQ(absl::StrCat(state.system),
            cluster_->Sql("SELECT system_identifier FROM pg_control_system()"));
  EXPECT_TRUE(state.reachable);
  EXPECT_FALSE(state.synchronous);
  EXPECT_EQ(state.commits, 1u);
  EXPECT_GE(state.connections, 2u);
  EXPECT_GT(state.answer_time, absl::ZeroDuration());
  EXPECT_GT(state.commit_time, absl::ZeroDuration());
  EXPECT_EQ(state.trouble, "");
  cluster_->Stop();
  EXPECT_FALSE(Get(*engine, "a").ok());
  EXPECT_FALSE(engine->Database()->reachable);
  EXPECT_THAT(engine->Database()->trouble, HasSubstr("look whether it runs"));
  ASSERT_TRUE(cluster_->Start().ok());
  EXPECT_LT(TimeUntilOk([&] { return Put(*engine, "c"); }), absl::Seconds(3));
  EXPECT_TRUE(engine->Database()->reachable);
}

// A restart between two calls is not even noticed: nothing had been sent.
TEST_F(PostgresTest, AQuickRestartCostsNoCall) {
  auto engine = *Open();
  ASSERT_TRUE(Put(*engine, "a").ok());
  ASSERT_TRUE(Get(*engine, "a").ok());
  cluster_->Stop();
  ASSERT_TRUE(cluster_->Start().ok());
  TimeUntilOk(
      [&] { return Get(*engine, "a").status(); });  // the listener's thread may be connecting
  EXPECT_TRUE(Insert(*engine, "r").ok());
}

TEST_F(PostgresTest, AHungDatabaseHoldsNobodyForLong) {
  auto engine = *Open();
  ASSERT_TRUE(Insert(*engine, "a").ok());
  ASSERT_TRUE(Get(*engine, "a", rf::kReplay).ok());
  cluster_->Freeze(true);
  const auto thaw = absl::MakeCleanup([&] { cluster_->Freeze(false); });
  absl::Time start = absl::Now();
  absl::Status s = Get(*engine, "a", rf::kReplay).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kUnavailable) << s;
  EXPECT_LT(absl::Now() - start,
            limits::kDatabaseAnswer + limits::kDatabaseWait + absl::Seconds(1));
  start = absl::Now();
  s = Insert(*engine, "b");
  EXPECT_EQ(s.code(), absl::StatusCode::kUnavailable) << s;
  EXPECT_LT(absl::Now() - start,
            limits::kDatabaseAnswer + limits::kDatabaseWait + absl::Seconds(1));
  cluster_->Freeze(false);
  TimeUntilOk([&] { return Insert(*engine, "c"); });
}

TEST_F(PostgresTest, SlowWritersAreNamed) {
  auto engine = *Open();
  ASSERT_TRUE(Put(*engine, "a").ok());
  absl::Notification locked;
  std::thread other(
      [&] { cluster_->Sql("BEGIN; LOCK TABLE mpckdc.replay; SELECT pg_sleep(4)", database_); });
  absl::SleepFor(absl::Seconds(1));
  const absl::Time start = absl::Now();
  const absl::Status s = Insert(*engine, "b");
  EXPECT_EQ(s.code(), absl::StatusCode::kUnavailable) << s;
  EXPECT_LT(absl::Now() - start, absl::Seconds(4));
  other.join();
  TimeUntilOk([&] { return Insert(*engine, "c"); });
}

// The database has no connection left for this server beyond those that it has. Who needs one more
// waits for one of these: it is no outage.
TEST_F(PostgresTest, WhereNoConnectionIsLeftOneWaitsForAnother) {
  auto engine = *Open();
  ASSERT_TRUE(Insert(*engine, "a").ok());
  ASSERT_TRUE(Get(*engine, "a", rf::kReplay).ok());
  cluster_->Sql("ALTER ROLE mpcserver CONNECTION LIMIT 1");  // none that is there is ended
  const auto unlimit =
      absl::MakeCleanup([&] { cluster_->Sql("ALTER ROLE mpcserver CONNECTION LIMIT -1"); });
  auto reader = *engine->BeginRead();
  ASSERT_TRUE(reader->Get(rf::kReplay, "a").ok());
  absl::Status second;
  std::thread other([&] { second = Get(*engine, "a", rf::kReplay).status(); });
  absl::SleepFor(absl::Milliseconds(400));
  reader.reset();
  other.join();
  EXPECT_TRUE(second.ok()) << second;
  EXPECT_TRUE(Insert(*engine, "b").ok());
  EXPECT_TRUE(engine->Database()->reachable) << engine->Database()->trouble;

  // None comes free: what to do is said.
  reader = *engine->BeginRead();
  ASSERT_TRUE(reader->Get(rf::kReplay, "a").ok());
  second = Get(*engine, "a", rf::kReplay).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kUnavailable) << second;
  EXPECT_THAT(TextOf(second), HasSubstr("max_connections"));
  reader.reset();
  EXPECT_TRUE(Get(*engine, "a", rf::kReplay).ok());

  // Another machine that finds none at all.
  TestFolder other_folder;
  const absl::Status s =
      PostgresEngine::Open(cluster_->ConnInfo(database_), other_folder.path(), SystemRandom())
          .status();
  EXPECT_EQ(s.code(), absl::StatusCode::kUnavailable) << s;
  EXPECT_THAT(TextOf(s), HasSubstr("max_connections"));
}

// A tablespace of 1 MiB: the file system says ENOSPC.
TEST_F(PostgresTest, AFullDiskLosesNothing) {
  const std::string small = cluster_->folder() + "/small";
  fs::create_directory(small);
  if (mount("tmpfs", small.c_str(), "tmpfs", 0, "size=1m,mode=0777") != 0) {
    GTEST_SKIP() << "needs the right to mount a small file system: run it as root";
  }
  const auto unmount = absl::MakeCleanup([&] { umount2(small.c_str(), MNT_DETACH); });
  fs::create_directory(small + "/space");
  ASSERT_EQ(chown((small + "/space").c_str(), 65534, 65534), 0);
  cluster_->Sql(absl::StrCat("CREATE TABLESPACE small LOCATION '", small, "/space'"));
  cluster_->Sql("ALTER TABLE mpckdc.records SET TABLESPACE small", database_);
  auto engine = *Open();
  const auto add = [&](int number) {
    return engine->Write("add", [&](KvTxn& txn) {
      return txn.Append(rf::kRecords, absl::StrCat(1'000'000 + number), std::string(2000, 'x'));
    });
  };
  int kept = 0;
  absl::Status s;
  while (kept < 1000 && (s = add(kept)).ok()) ++kept;
  EXPECT_EQ(s.code(), absl::StatusCode::kResourceExhausted) << s;
  EXPECT_THAT(TextOf(s), HasSubstr("disk full"));
  EXPECT_GT(kept, 100);
  EXPECT_EQ(*(*engine->BeginRead())->Count(rf::kRecords), static_cast<size_t>(kept));
  EXPECT_TRUE(Get(*engine, absl::StrCat(1'000'000 + kept - 1), rf::kRecords).ok());
  cluster_->Sql("ALTER TABLE mpckdc.records SET TABLESPACE pg_default", database_);
  EXPECT_TRUE(add(kept).ok()) << "goes on with room";
  engine.reset();
  cluster_->Sql("DROP TABLESPACE small");
}

// ---- Two servers of one party ----

TEST_F(PostgresTest, TwoServersShareADatabase) {
  TestFolder other_folder;
  std::shared_ptr<PostgresEngine> one = *Open();
  std::shared_ptr<PostgresEngine> two =
      *PostgresEngine::Open(cluster_->ConnInfo(database_), other_folder.path(), SystemRandom());
  ASSERT_TRUE(Put(*one, "a", "1").ok());
  EXPECT_EQ(*Get(*two, "a"), "1");
  ASSERT_TRUE(Put(*two, "a", "2").ok());
  EXPECT_EQ(*Get(*one, "a"), "2");
  // One winner for each replay.
  std::atomic<int> won = 0;
  std::vector<std::thread> threads;
  for (PostgresEngine* engine : {one.get(), two.get(), one.get(), two.get()}) {
    threads.emplace_back([&, engine] {
      for (int i = 0; i < 50; ++i) {
        const absl::Status s = engine->Write("replays", [&](KvTxn& txn) {
          auto found = txn.InsertNew(rf::kReplay, {{absl::StrCat("r", i), ""}});
          if (found.ok() && !(*found)[0].has_value()) ++won;
          return found.status();
        });
        EXPECT_TRUE(s.ok()) << s;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(won, 50);
}

// Each sees the last place that the other one gave.
TEST_F(PostgresTest, WritersOfTwoServersTakeTurns) {
  TestFolder other_folder;
  auto one = *Open();
  auto two =
      *PostgresEngine::Open(cluster_->ConnInfo(database_), other_folder.path(), SystemRandom());
  std::vector<std::thread> threads;
  for (PostgresEngine* engine : {one.get(), two.get()}) {
    threads.emplace_back([engine] {
      for (int i = 0; i < 40; ++i) {
        const absl::Status s = engine->Write("add", [&](KvTxn& txn) -> absl::Status {
          const auto last = txn.LastKey(rf::kRecords);
          const int next = last.ok() ? std::stoi(std::string(*last)) + 1 : 1000;
          return txn.Append(rf::kRecords, absl::StrCat(next), "x");
        });
        EXPECT_TRUE(s.ok()) << s;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(*(*one->BeginRead())->Count(rf::kRecords), 80u);
  EXPECT_EQ(*(*two->BeginRead())->LastKey(rf::kRecords), "1079");
}

TEST_F(PostgresTest, ACopiedDataDirIsNoticed) {
  auto engine = *Open();
  ASSERT_TRUE(Put(*engine, "a").ok());
  TestFolder copy;
  fs::copy_file(folder_.File("database"), copy.File("database"));
  auto twin = PostgresEngine::Open(cluster_->ConnInfo(database_), copy.path(), SystemRandom());
  ASSERT_TRUE(twin.ok()) << twin.status();
  const absl::Status first = Put(**twin, "b"), second = Put(*engine, "c");
  EXPECT_NE(first.ok(), second.ok());
  const absl::Status s = first.ok() ? second : first;
  EXPECT_EQ(s.code(), absl::StatusCode::kFailedPrecondition) << s;
  EXPECT_THAT(TextOf(s), HasSubstr("data_dir of its own"));
}

TEST_F(PostgresTest, AKeyThatAnotherServerReplacedIsNotTakenFromTheCache) {
  TestFolder other_folder;
  std::shared_ptr<PostgresEngine> engines[] = {
      *Open(),
      *PostgresEngine::Open(cluster_->ConnInfo(database_), other_folder.path(), SystemRandom())};
  std::unique_ptr<ShareStore> stores[2];
  for (int i = 0; i < 2; ++i) {
    stores[i] = *ShareStore::Open(engines[i],
                                  {kIdentityForTest, StoreKeysForTest(), &SystemRandom(), 1 << 20});
  }
  SeededRandomForTest random(3);
  const KeyRecord record = RecordForTest(random, "alice@EXAMPLE.COM");
  ASSERT_TRUE(stores[0]->Stage(TransactionId{1}, {record}, kNow).ok());
  ASSERT_TRUE(stores[1]->Commit(TransactionId{1}, kNow).ok()) << "staged by the other one";
  for (auto& store : stores) ASSERT_TRUE(SameRecord(*store->Get(record.info.handle), record));
  ASSERT_TRUE(stores[1]->SetGate(record.info.principal, {&record.info.handle, 1}, Gate::kKdcTrusted).ok());
  EXPECT_EQ(stores[0]->Get(record.info.handle)->info.gate, Gate::kKdcTrusted);
  ASSERT_EQ(*stores[1]->Delete({&record.info.handle, 1}), 1u);
  EXPECT_TRUE(absl::IsNotFound(stores[0]->Get(record.info.handle).status()));
  EXPECT_TRUE(absl::IsNotFound(stores[1]->Get(record.info.handle).status()));
}

// What lies in the server's files and in its log, and what it was sent.
TEST_F(PostgresTest, NoPlainShareReachesTheDatabase) {
  SeededRandomForTest random(5);
  const KeyRecord record = RecordForTest(random, "alice@EXAMPLE.COM");
  {
    auto store =
        *ShareStore::Open(*Open(), {kIdentityForTest, StoreKeysForTest(), &SystemRandom()});
    ASSERT_TRUE(store->Stage(TransactionId{1}, {record}, kNow).ok());
    ASSERT_TRUE(store->Commit(TransactionId{1}, kNow).ok());
  }
  cluster_->Sql("CHECKPOINT");
  const auto is_there = [&](absl::Span<const uint8_t> bytes) {
    for (const auto& entry : fs::recursive_directory_iterator(cluster_->data())) {
      if (!entry.is_regular_file()) continue;
      if (absl::StrContains(ReadFileForTest(entry.path().string()), AsText(bytes))) return true;
    }
    return false;
  };
  EXPECT_TRUE(is_there(record.info.handle)) << "the search sees";
  EXPECT_FALSE(is_there(AsBytes("alice@EXAMPLE.COM")));
  EXPECT_FALSE(is_there(record.base[0].x));
  EXPECT_FALSE(is_there(record.usages[0].round_keys[1].a));
}

// An idle server is told, so that it does not keep what nobody may use any more.
TEST_F(PostgresTest, AnotherServersChangeIsHeardOf) {
  TestFolder other_folder;
  auto idle = *Open();
  auto busy =
      *PostgresEngine::Open(cluster_->ConnInfo(database_), other_folder.path(), SystemRandom());
  std::atomic<int> heard = 0;
  idle->OnKeysChanged([&] { ++heard; });
  absl::SleepFor(absl::Seconds(1));  // it listens
  const int before = heard;
  ASSERT_TRUE(Insert(*busy, "r").ok());
  absl::SleepFor(absl::Milliseconds(500));
  EXPECT_EQ(heard, before) << "replay entries are no change of keys";
  ASSERT_TRUE(Put(*busy, "k").ok());
  const absl::Time end = absl::Now() + absl::Seconds(5);
  while (heard == before && absl::Now() < end) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_GT(heard, before);
  idle->OnKeysChanged(nullptr);
}

}  // namespace
}  // namespace mpckdc
