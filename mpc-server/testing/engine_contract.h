// SPDX-License-Identifier: Apache-2.0
//
// What kv.h promises, as tests of any engine: a program instantiates EngineContractTest with those
// that it has (store/engine_contract_test.cc, sim/disk_test.cc).
#ifndef MPC_SERVER_TESTING_ENGINE_CONTRACT_H_
#define MPC_SERVER_TESTING_ENGINE_CONTRACT_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/random_source.h"
#include "mpc-server/store/kv.h"
#include "mpc-server/testing/folder.h"

namespace mpckdc {
namespace engine_contract {

namespace rf = record_format;
using ::testing::ElementsAre;
using ::testing::Optional;
using Entry = KvTxn::Entry;

struct EngineMaker {
  const char* name;
  // A new one, of which `folder` may be a part; nullptr: a failure of the test.
  std::function<std::unique_ptr<KvEngine>(const std::string& folder)> make;

  friend std::ostream& operator<<(std::ostream& out, const EngineMaker& m) { return out << m.name; }
};

class EngineContractTest : public ::testing::TestWithParam<EngineMaker> {
 protected:
  void SetUp() override {
    engine_ = GetParam().make(folder_.path());
    ASSERT_NE(engine_, nullptr);
  }

  absl::Status Put(rf::Table table, const std::string& key, const std::string& value) {
    return engine_->Write("test", [&](KvTxn& txn) { return txn.Put(table, key, value); });
  }
  std::optional<std::string> Get(rf::Table table, const std::string& key) {
    auto txn = engine_->BeginRead();
    EXPECT_TRUE(txn.ok()) << txn.status();
    const auto value = (*txn)->Get(table, key);
    if (absl::IsNotFound(value.status())) return std::nullopt;
    EXPECT_TRUE(value.ok()) << value.status();
    return std::string(AsText(*value));
  }
  static std::map<std::string, std::string> All(const KvTxn& txn, rf::Table table,
                                                const std::string& from = "") {
    std::map<std::string, std::string> all;
    EXPECT_TRUE(txn.Scan(table, from,
                         [&](absl::string_view key, absl::Span<const uint8_t> value) {
                           EXPECT_TRUE(all.empty() || all.rbegin()->first < key) << "in order";
                           all.emplace(key, AsText(value));
                           return true;
                         })
                    .ok());
    return all;
  }
  std::map<std::string, std::string> All(rf::Table table, const std::string& from = "") {
    return All(**engine_->BeginRead(), table, from);
  }

  TestFolder folder_;
  std::unique_ptr<KvEngine> engine_;
};

inline const std::string kZeros("\0\0a", 3), kHigh("\xff\xfe", 2);

TEST_P(EngineContractTest, WhatWasPutIsThere) {
  for (size_t t = 0; t < rf::kTables; ++t) {
    const auto table = static_cast<rf::Table>(t);
    EXPECT_EQ(Get(table, "k"), std::nullopt);
    ASSERT_TRUE(Put(table, "k", "v").ok());
    ASSERT_TRUE(Put(table, kZeros, kHigh).ok());
    ASSERT_TRUE(Put(table, kHigh, "").ok());
    EXPECT_THAT(Get(table, "k"), Optional(std::string("v")));
    EXPECT_THAT(Get(table, kZeros), Optional(kHigh));
    EXPECT_THAT(Get(table, kHigh), Optional(std::string()));
    ASSERT_TRUE(Put(table, "k", std::string(100'000, 'w')).ok()) << "replaces, and is long";
    EXPECT_THAT(Get(table, "k"), Optional(std::string(100'000, 'w')));
  }
}

TEST_P(EngineContractTest, BytesAreInTheOrderOfUnsignedBytes) {
  for (const std::string& key :
       {std::string("b"), kHigh, kZeros, std::string("a"), std::string("ab")}) {
    ASSERT_TRUE(Put(rf::kKeys, key, key).ok());
  }
  std::vector<std::string> keys;
  for (const auto& [key, value] : All(rf::kKeys)) keys.push_back(key);
  EXPECT_THAT(keys, ElementsAre(kZeros, "a", "ab", "b", kHigh));
  EXPECT_EQ(All(rf::kKeys, "aa").begin()->first, "ab");
  EXPECT_EQ(All(rf::kKeys, "ab").begin()->first, "ab");
  EXPECT_TRUE(All(rf::kKeys, "\xff\xff").empty());
  EXPECT_EQ(*(*engine_->BeginRead())->LastKey(rf::kKeys), kHigh);
  EXPECT_TRUE(absl::IsNotFound((*engine_->BeginRead())->LastKey(rf::kStaged).status()));
}

TEST_P(EngineContractTest, ScansEndWhereTheVisitorSays) {
  ASSERT_TRUE(engine_
                  ->Write("test",
                          [](KvTxn& txn) {
                            for (int i = 0; i < 3000; ++i) {  // several pages
                              absl::Status s = txn.Append(rf::kRecords, absl::StrCat(10'000 + i),
                                                          absl::StrCat("v", i));
                              if (!s.ok()) return s;
                            }
                            return absl::OkStatus();
                          })
                  .ok());
  EXPECT_EQ(All(rf::kRecords).size(), 3000u);
  EXPECT_EQ(*(*engine_->BeginRead())->Count(rf::kRecords), 3000u);
  auto txn = *engine_->BeginRead();
  size_t seen = 0;
  std::string last;
  ASSERT_TRUE(txn->ScanNames(rf::kRecords, "10100",
                             [&](absl::string_view key) {
                               last = std::string(key);
                               return ++seen < 1000;
                             })
                  .ok());
  EXPECT_EQ(seen, 1000u);
  EXPECT_EQ(last, "11099");
}

TEST_P(EngineContractTest, ATransactionSeesItsOwnChangesAndIsAllOrNothing) {
  ASSERT_TRUE(Put(rf::kKeys, "old", "1").ok());
  ASSERT_TRUE(Put(rf::kKeys, "gone", "1").ok());
  const auto change = [&](KvTxn& txn) -> absl::Status {
    EXPECT_TRUE(txn.Put(rf::kKeys, "new", "2").ok());
    EXPECT_EQ(AsText(*txn.Get(rf::kKeys, "new")), "2");
    EXPECT_TRUE(txn.Put(rf::kKeys, "old", "3").ok());
    EXPECT_EQ(AsText(*txn.Get(rf::kKeys, "old")), "3");
    EXPECT_TRUE(txn.Delete(rf::kKeys, "gone").ok());
    EXPECT_TRUE(absl::IsNotFound(txn.Delete(rf::kKeys, "gone")));
    EXPECT_TRUE(absl::IsNotFound(txn.Delete(rf::kKeys, "never")));
    EXPECT_TRUE(absl::IsNotFound(txn.Get(rf::kKeys, "gone").status()));
    EXPECT_EQ(*txn.LastKey(rf::kKeys), "old");
    EXPECT_EQ(*txn.Count(rf::kKeys), 2u);
    EXPECT_EQ(All(txn, rf::kKeys),
              (std::map<std::string, std::string>{{"new", "2"}, {"old", "3"}}));
    EXPECT_TRUE(txn.Put(rf::kKeys, "zz", "4").ok());
    EXPECT_EQ(*txn.LastKey(rf::kKeys), "zz");
    EXPECT_TRUE(txn.Delete(rf::kKeys, "zz").ok());
    EXPECT_EQ(*txn.LastKey(rf::kKeys), "old");
    return absl::OkStatus();
  };
  EXPECT_EQ(engine_->Write("test",
                           [&](KvTxn& txn) -> absl::Status {
                             EXPECT_TRUE(change(txn).ok());
                             return absl::AbortedError("no");
                           }),
            absl::AbortedError("no"));
  EXPECT_EQ(All(rf::kKeys), (std::map<std::string, std::string>{{"gone", "1"}, {"old", "1"}}));
  ASSERT_TRUE(engine_->Write("test", change).ok());
  EXPECT_EQ(All(rf::kKeys), (std::map<std::string, std::string>{{"new", "2"}, {"old", "3"}}));
  EXPECT_EQ(*(*engine_->BeginRead())->Count(rf::kKeys), 2u);
}

TEST_P(EngineContractTest, AReadIsASnapshot) {
  ASSERT_TRUE(Put(rf::kKeys, "a", "1").ok());
  ASSERT_TRUE(Put(rf::kMeta, "m", "1").ok());
  auto before = *engine_->BeginRead();
  EXPECT_EQ(AsText(*before->Get(rf::kKeys, "a")), "1");
  ASSERT_TRUE(engine_
                  ->Write("test",
                          [](KvTxn& txn) {
                            EXPECT_TRUE(txn.Put(rf::kKeys, "a", "2").ok());
                            EXPECT_TRUE(txn.Put(rf::kKeys, "b", "2").ok());
                            return txn.Put(rf::kMeta, "m", "2");
                          })
                  .ok());
  EXPECT_EQ(AsText(*before->Get(rf::kKeys, "a")), "1");
  EXPECT_TRUE(absl::IsNotFound(before->Get(rf::kKeys, "b").status()));
  EXPECT_EQ(AsText(*before->Get(rf::kMeta, "m")), "1");
  EXPECT_EQ(*before->Count(rf::kKeys), 1u);
  EXPECT_THAT(Get(rf::kMeta, "m"), Optional(std::string("2")));
}

TEST_P(EngineContractTest, ManyAtOnce) {
  ASSERT_TRUE(Put(rf::kKeys, "a", "1").ok());
  ASSERT_TRUE(Put(rf::kKeys, "c", "").ok());
  const std::vector<std::string> keys = {"c", "b", "a", "c"};
  const auto expect = [](const KvTxn::Values& values) {
    EXPECT_THAT(values, ElementsAre(Optional(std::string()), std::nullopt,
                                    Optional(std::string("1")), Optional(std::string())));
  };
  expect(*(*engine_->BeginRead())->GetMany(rf::kKeys, keys));
  EXPECT_TRUE((*engine_->BeginRead())->GetMany(rf::kKeys, {})->empty());
  ASSERT_TRUE(engine_
                  ->Write("test",
                          [&](KvTxn& txn) {
                            EXPECT_TRUE(txn.Prefetch(rf::kKeys, keys).ok());
                            expect(*txn.GetMany(rf::kKeys, keys));
                            EXPECT_TRUE(txn.Put(rf::kKeys, "b", "2").ok());
                            EXPECT_TRUE(txn.Delete(rf::kKeys, "a").ok());
                            EXPECT_THAT(
                                *txn.GetMany(rf::kKeys, keys),
                                ElementsAre(Optional(std::string()), Optional(std::string("2")),
                                            std::nullopt, Optional(std::string())));
                            return absl::OkStatus();
                          })
                  .ok());
}

TEST_P(EngineContractTest, InsertNewKeepsWhatIsThere) {
  for (const rf::Table table : {rf::kReplay, rf::kTransactions}) {
    ASSERT_TRUE(Put(table, "there", "first").ok());
    const std::vector<Entry> entries = {{"there", "x"}, {"new", "y"}, {"new", "z"}, {"b", ""}};
    KvTxn::Values found;
    ASSERT_TRUE(engine_
                    ->Write("test",
                            [&](KvTxn& txn) {
                              const auto present = txn.InsertNew(table, entries);
                              if (present.ok()) found = *present;
                              return present.status();
                            })
                    .ok());
    EXPECT_THAT(found, ElementsAre(Optional(std::string("first")), std::nullopt,
                                   Optional(std::string("y")), std::nullopt));
    EXPECT_EQ(All(table),
              (std::map<std::string, std::string>{{"b", ""}, {"new", "y"}, {"there", "first"}}));
    EXPECT_EQ(*(*engine_->BeginRead())->Count(table), 3u);
  }
  // Undone with its transaction.
  EXPECT_FALSE(engine_
                   ->Write("test",
                           [&](KvTxn& txn) -> absl::Status {
                             EXPECT_TRUE(txn.InsertNew(rf::kReplay, {{"q", "1"}}).ok());
                             return absl::AbortedError("no");
                           })
                   .ok());
  EXPECT_EQ(Get(rf::kReplay, "q"), std::nullopt);
}

// Eight threads race for the same keys: one wins each, and the others see the winner's value.
TEST_P(EngineContractTest, RacesForAKeyHaveOneWinner) {
  constexpr int kThreads = 8, kKeys = 50;
  std::array<KvTxn::Values, kThreads> found;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::vector<Entry> entries;
      for (int k = 0; k < kKeys; ++k)
        entries.push_back({absl::StrCat((k * 7 + t) % kKeys), absl::StrCat(t)});
      const absl::Status s = engine_->Write("race", [&](KvTxn& txn) {
        auto present = txn.InsertNew(rf::kReplay, entries);
        if (present.ok()) found[t] = *present;
        return present.status();
      });
      EXPECT_TRUE(s.ok()) << s;
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto stored = All(rf::kReplay);
  ASSERT_EQ(stored.size(), static_cast<size_t>(kKeys));
  int won = 0;
  for (int t = 0; t < kThreads; ++t) {
    ASSERT_EQ(found[t].size(), static_cast<size_t>(kKeys));
    for (int k = 0; k < kKeys; ++k) {
      const std::string& winner = stored.at(absl::StrCat((k * 7 + t) % kKeys));
      if (found[t][k].has_value()) {
        EXPECT_EQ(*found[t][k], winner);
      } else {
        EXPECT_EQ(winner, absl::StrCat(t));
        ++won;
      }
    }
  }
  EXPECT_EQ(won, kKeys);
}

// What was found may be counted on: eight threads add to the same ten numbers, and none is lost.
TEST_P(EngineContractTest, AFoundValueStaysUntilTheEnd) {
  constexpr int kThreads = 8, kTimes = 20, kKeys = 10;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kTimes; ++i) {
        std::vector<Entry> entries;
        for (int k = 0; k < kKeys; ++k) entries.emplace_back(absl::StrCat((k + t) % kKeys), "1");
        const absl::Status s = engine_->Write("count", [&](KvTxn& txn) -> absl::Status {
          const auto found = txn.InsertNew(rf::kReplay, entries);
          if (!found.ok()) return found.status();
          for (int k = 0; k < kKeys; ++k) {
            if (!(*found)[k].has_value()) continue;
            const absl::Status put =
                txn.Put(rf::kReplay, entries[k].first, absl::StrCat(std::stoi(*(*found)[k]) + 1));
            if (!put.ok()) return put;
          }
          return absl::OkStatus();
        });
        EXPECT_TRUE(s.ok()) << s;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& [key, value] : All(rf::kReplay)) {
    EXPECT_EQ(value, absl::StrCat(kThreads * kTimes)) << key;
  }
}

// Writers take turns: nobody's addition is lost, and the next place is never given twice.
TEST_P(EngineContractTest, WritersTakeTurns) {
  constexpr int kThreads = 4, kTurns = 25;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kTurns; ++i) {
        const absl::Status s = engine_->Write("add", [&](KvTxn& txn) -> absl::Status {
          int next = 1000;
          const auto last = txn.LastKey(rf::kRecords);
          if (last.ok()) next = std::stoi(std::string(*last)) + 1;
          return txn.Append(rf::kRecords, absl::StrCat(next), "x");
        });
        EXPECT_TRUE(s.ok()) << s;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(*(*engine_->BeginRead())->Count(rf::kRecords), static_cast<size_t>(kThreads * kTurns));
  EXPECT_EQ(All(rf::kRecords).size(), static_cast<size_t>(kThreads * kTurns));
}

// A long table of random changes against a map: engines and model never differ.
TEST_P(EngineContractTest, RandomChangesAreThoseOfAMap) {
  SeededRandomForTest random(11);
  const auto draw = [&](uint32_t below) {
    std::array<uint8_t, 4> bytes;
    random.Fill(absl::MakeSpan(bytes));
    return static_cast<uint32_t>(ByteReader(bytes).Uint(4)) % below;
  };
  std::map<std::string, std::string> model;
  for (int round = 0; round < 40; ++round) {
    std::map<std::string, std::string> trial = model;
    const bool commit = draw(4) != 0;
    const absl::Status s = engine_->Write("random", [&](KvTxn& txn) -> absl::Status {
      for (uint32_t step = draw(12); step-- > 0;) {
        const std::string key = absl::StrCat(draw(20)), value = absl::StrCat(draw(1000));
        switch (draw(6)) {
          case 0:
          case 1:
            EXPECT_TRUE(txn.Put(rf::kKeys, key, value).ok());
            trial[key] = value;
            break;
          case 2:
            EXPECT_EQ(txn.Delete(rf::kKeys, key).ok(), trial.erase(key) == 1);
            break;
          case 3:
            EXPECT_EQ(txn.Get(rf::kKeys, key).ok(), trial.contains(key));
            break;
          case 4:
            EXPECT_EQ(*txn.Count(rf::kKeys), trial.size());
            EXPECT_EQ(txn.LastKey(rf::kKeys).ok(), !trial.empty());
            break;
          default: {
            const auto there = txn.InsertNew(rf::kKeys, {{key, value}});
            EXPECT_EQ((*there)[0].has_value(), trial.contains(key));
            trial.try_emplace(key, value);
          }
        }
      }
      EXPECT_EQ(All(txn, rf::kKeys), trial);
      return commit ? absl::OkStatus() : absl::AbortedError("no");
    });
    EXPECT_EQ(s.ok(), commit) << s;
    if (commit) model = trial;
    ASSERT_EQ(All(rf::kKeys), model);
    ASSERT_EQ(*(*engine_->BeginRead())->Count(rf::kKeys), model.size());
  }
}

// Only of an engine that others write to.
TEST_P(EngineContractTest, TheVersionChangesWithKeysAndNotWithReplays) {
  const auto version = [&] { return *(*engine_->BeginRead())->KeyVersion(); };
  const uint64_t first = version();
  ASSERT_TRUE(Put(rf::kReplay, "r", "").ok());
  ASSERT_TRUE(Put(rf::kStaged, "s", "").ok());
  EXPECT_EQ(version(), first);
  ASSERT_TRUE(Put(rf::kKeys, "k", "").ok());
  EXPECT_EQ(version() != first, engine_->remote());
  const uint64_t second = version();
  ASSERT_TRUE(Put(rf::kRecords, "p", "").ok());
  EXPECT_EQ(version() != second, engine_->remote());
  const uint64_t third = version();
  ASSERT_TRUE(Put(rf::kMeta, rf::kNameMark, "").ok());
  EXPECT_EQ(version(), third);
  ASSERT_TRUE(Put(rf::kMeta, rf::kNameIdentity, "").ok());
  EXPECT_EQ(version() != third, engine_->remote());
}

// Nor do many that wait for it.
TEST_P(EngineContractTest, ManyBulksLeaveRoomForReplays) {
  if (!engine_->remote()) GTEST_SKIP() << "one writer at a time, and each is short";
  absl::Notification writing, done;
  const auto bulk = [&](int number) {
    EXPECT_TRUE(engine_
                    ->Write("bulk",
                            [&](KvTxn& txn) {
                              EXPECT_TRUE(txn.Count(rf::kKeys).ok());
                              if (number == 0) writing.Notify();
                              done.WaitForNotification();
                              return txn.Put(rf::kKeys, absl::StrCat("bulk", number), "1");
                            })
                    .ok());
  };
  std::vector<std::thread> threads;
  threads.emplace_back(bulk, 0);
  writing.WaitForNotification();
  for (int i = 1; i < 12; ++i) threads.emplace_back(bulk, i);
  absl::SleepFor(absl::Milliseconds(300));
  for (int i = 0; i < 20; ++i) {
    const absl::Time start = absl::Now();
    const absl::Status s = engine_->Write("replays", [&](KvTxn& txn) {
      return txn.InsertNew(rf::kReplay, {{absl::StrCat("r", i), ""}}).status();
    });
    EXPECT_TRUE(s.ok()) << s;
    EXPECT_LT(absl::Now() - start, absl::Seconds(1));
  }
  done.Notify();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(*(*engine_->BeginRead())->Count(rf::kKeys), 12u);
}

// A bulk write that is under way keeps no batch waiting for its replay entries.
TEST_P(EngineContractTest, ReplaysWaitForNoBulk) {
  if (!engine_->remote()) GTEST_SKIP() << "one writer at a time, and each is short";
  absl::Notification writing, done;
  std::thread bulk([&] {
    EXPECT_TRUE(engine_
                    ->Write("bulk",
                            [&](KvTxn& txn) {
                              EXPECT_TRUE(txn.Count(rf::kKeys).ok());  // has the lock
                              writing.Notify();
                              done.WaitForNotification();
                              return txn.Put(rf::kKeys, "bulk", "1");
                            })
                    .ok());
  });
  writing.WaitForNotification();
  const absl::Time start = absl::Now();
  EXPECT_TRUE(engine_
                  ->Write("replays",
                          [](KvTxn& txn) {
                            return txn.InsertNew(rf::kReplay, {{"r", ""}}).status();
                          })
                  .ok());
  EXPECT_TRUE(Put(rf::kMeta, "nonce-mark", "1").ok()) << "nor does a mark";
  EXPECT_LT(absl::Now() - start, absl::Seconds(1));
  done.Notify();
  bulk.join();
}

}  // namespace engine_contract
}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_ENGINE_CONTRACT_H_
