// SPDX-License-Identifier: Apache-2.0
//
// Deleted keys: usable and marked until they are collected, on both engines; and a random life of
// many keys against a model of what should be there.
#include "mpc-server/store/retired.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/store/lmdb.h"
#include "mpc-server/store/share_store.h"
#include "mpc-server/testing/folder.h"
#include "mpc-server/testing/memory_engine.h"
#include "mpc-server/testing/records.h"

namespace mpckdc {
namespace {

namespace rf = record_format;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

class RetiredTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override { Reopen(); }

  void Reopen() {
    store_.reset();
    engine_ = GetParam() ? std::shared_ptr<KvEngine>(*LmdbEngine::Open(folder_.path(), 64 << 20))
                         : std::shared_ptr<KvEngine>(memory_);
    auto opened =
        ShareStore::Open(engine_, {kIdentityForTest, StoreKeysForTest(), &SystemRandom()});
    engine_.reset();
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
  }

  NamedKey Committed(const std::string& principal) {
    const KeyRecord record = RecordForTest(random_, principal);
    TransactionId txn{};
    random_.Fill(absl::MakeSpan(txn));
    EXPECT_TRUE(store_->Stage(txn, {record}, kNow).ok());
    EXPECT_TRUE(store_->Commit(txn, kNow).ok());
    return {record.info.handle, principal};
  }

  std::map<Handle, absl::Time> Marks() {
    std::map<Handle, absl::Time> marks;
    EXPECT_TRUE(store_
                    ->ForEachRetired(Handle{},
                                     [&](const auto& info, const RetiredMark& mark) {
                                       if (info.ok()) marks[info->handle] = mark.since;
                                       return true;
                                     })
                    .ok());
    EXPECT_EQ(*store_->CountRetired(), marks.size());
    return marks;
  }

  TestFolder folder_;
  const std::shared_ptr<MemoryEngine> memory_ = std::make_shared<MemoryEngine>();
  std::shared_ptr<KvEngine> engine_;
  std::unique_ptr<ShareStore> store_;
  SeededRandomForTest random_{7};
};

TEST_P(RetiredTest, ARetiredKeyWorksUntilItIsCollected) {
  const NamedKey key = Committed("alice@EXAMPLE.COM");
  EXPECT_EQ(store_->Retire({key}, kNow)->changed, 1u);
  Reopen();
  EXPECT_TRUE(store_->Get(key.handle).ok());
  EXPECT_TRUE(store_->SetGate(key.principal, {key.handle}, Gate::kNone).ok());
  EXPECT_EQ(Marks()[key.handle], kNow);
  EXPECT_THAT(*store_->CollectRetired(kNow, 10), SizeIs(0)) << "not before that time";
  const auto collected = store_->CollectRetired(kNow + absl::Microseconds(1), 10);
  ASSERT_THAT(*collected, SizeIs(1));
  EXPECT_EQ((*collected)[0].handle, key.handle);
  EXPECT_EQ((*collected)[0].principal, key.principal);
  EXPECT_TRUE(absl::IsNotFound(store_->Get(key.handle).status()));
  EXPECT_EQ(*store_->CountRetired(), 0u);
}

TEST_P(RetiredTest, DeletedAgainItKeepsItsTime) {
  const NamedKey key = Committed("alice@EXAMPLE.COM");
  EXPECT_EQ(store_->Retire({key}, kNow)->changed, 1u);
  EXPECT_EQ(store_->Retire({key}, kNow + absl::Hours(20))->changed, 0u);
  EXPECT_EQ(Marks()[key.handle], kNow);
}

TEST_P(RetiredTest, RestoredItStays) {
  const NamedKey key = Committed("alice@EXAMPLE.COM");
  EXPECT_TRUE(store_->Retire({key}, kNow).ok());
  EXPECT_EQ(store_->Restore({key})->changed, 1u);
  EXPECT_EQ(store_->Restore({key})->changed, 0u);
  EXPECT_THAT(*store_->CollectRetired(absl::InfiniteFuture(), 10), SizeIs(0));
  EXPECT_TRUE(store_->Get(key.handle).ok());
}

// What the password history names is never collected: after its time it has its base key alone.
TEST_P(RetiredTest, AKeyKeptForTheHistoryIsReduced) {
  NamedKey kept = Committed("alice@EXAMPLE.COM");
  const NamedKey other = Committed("alice@EXAMPLE.COM");
  const KeyRecord whole = *store_->Get(kept.handle);
  kept.for_history = true;
  EXPECT_EQ(store_->Retire({kept, other}, kNow)->changed, 2u);
  EXPECT_EQ(store_->Retire({kept}, kNow + absl::Hours(1))->changed, 0u);
  EXPECT_THAT(*store_->CollectRetired(kNow, 10), SizeIs(0));
  EXPECT_TRUE(SameRecord(*store_->Get(kept.handle), whole)) << "usable until its time is over";
  Reopen();
  const auto collected = store_->CollectRetired(kNow + absl::Hours(1), 10);
  ASSERT_THAT(*collected, SizeIs(2));
  for (const CollectedKey& key : *collected) EXPECT_EQ(key.reduced, key.handle == kept.handle);
  EXPECT_TRUE(absl::IsNotFound(store_->Get(other.handle).status()));
  Reopen();
  KeyRecord want = whole;
  want.info.key_class = KeyClass::kHistory;
  want.usages.clear();
  ASSERT_TRUE(store_->Get(kept.handle).ok());
  EXPECT_TRUE(SameRecord(*store_->Get(kept.handle), want));
  const std::optional<RetiredMark> mark{{kNow, true, true}};
  EXPECT_THAT(*store_->MarksOf({&kept.handle, 1}), ElementsAre(mark));
  EXPECT_EQ(*store_->CountRetired(), 1u);

  // It is not collected, nor taken back into use.
  EXPECT_THAT(*store_->CollectRetired(absl::InfiniteFuture(), 10), SizeIs(0));
  EXPECT_EQ(store_->Retire({kept}, kNow + absl::Hours(2))->changed, 0u);
  const auto restored = store_->Restore({kept});
  ASSERT_THAT(restored->refused, SizeIs(1));
  EXPECT_THAT(restored->refused[0].why, HasSubstr("password history alone"));
  EXPECT_TRUE(store_->Get(kept.handle).ok());

  // Until the history names it no more: its time was over long ago.
  kept.for_history = false;
  EXPECT_EQ(store_->Retire({kept}, kNow + absl::Hours(3))->changed, 1u);
  EXPECT_THAT(*store_->MarksOf({&kept.handle, 1}), ElementsAre(RetiredMark{.since = kNow}));
  ASSERT_THAT(*store_->CollectRetired(kNow + absl::Hours(3), 10), SizeIs(1));
  EXPECT_TRUE(absl::IsNotFound(store_->Get(kept.handle).status()));
  EXPECT_EQ(*store_->CountRetired(), 0u);
}

TEST_P(RetiredTest, AKeyKeptForTheHistoryCanBeDeletedAtOnceOrBackInUse) {
  NamedKey deleted = Committed("alice@EXAMPLE.COM"), back = Committed("alice@EXAMPLE.COM"),
           reduced = Committed("alice@EXAMPLE.COM");
  deleted.for_history = back.for_history = reduced.for_history = true;
  EXPECT_TRUE(store_->Retire({reduced}, kNow - absl::Hours(1)).ok());
  EXPECT_THAT(*store_->CollectRetired(kNow, 10), SizeIs(1));
  EXPECT_TRUE(store_->Retire({deleted, back}, kNow).ok());
  EXPECT_EQ(store_->Restore({back})->changed, 1u);
  EXPECT_EQ(store_->DeleteNamed({deleted, reduced})->changed, 2u);
  EXPECT_EQ(*store_->CountRetired(), 0u);
  EXPECT_TRUE(Marks().empty());
  EXPECT_TRUE(store_->Get(back.handle).ok());
  EXPECT_TRUE(absl::IsNotFound(store_->Get(reduced.handle).status()));
}

TEST_P(RetiredTest, AnotherPrincipalsKeyIsRefusedAndTheRestDone) {
  const NamedKey alice = Committed("alice@EXAMPLE.COM"), bob = Committed("bob@EXAMPLE.COM");
  const NamedKey wrong = {bob.handle, "alice@EXAMPLE.COM"};
  const NamedKey unknown = {Handle{}, "alice@EXAMPLE.COM"};
  for (const bool now : {false, true}) {
    const auto done = now ? store_->DeleteNamed({alice, wrong, unknown})
                          : store_->Retire({alice, wrong, unknown}, kNow);
    ASSERT_TRUE(done.ok()) << done.status();
    EXPECT_EQ(done->changed, 1u);
    ASSERT_THAT(done->refused, SizeIs(1));
    EXPECT_EQ(done->refused[0].handle, bob.handle);
    EXPECT_THAT(done->refused[0].why, HasSubstr("a key of bob@EXAMPLE.COM, not of alice@"));
    EXPECT_TRUE(store_->Get(bob.handle).ok());
  }
  EXPECT_TRUE(absl::IsNotFound(store_->Get(alice.handle).status()));
  EXPECT_TRUE(Marks().empty()) << "what is deleted at once leaves no mark";
  EXPECT_THAT(store_->Restore({wrong})->refused, SizeIs(1));
}

TEST_P(RetiredTest, TheOldestAreCollectedFirstAndNotMoreThanAsked) {
  std::vector<NamedKey> keys;
  for (int i = 0; i < 5; ++i) {
    keys.push_back(Committed(absl::StrCat("user", i, "@EXAMPLE.COM")));
    EXPECT_TRUE(store_->Retire({keys.back()}, kNow - absl::Seconds(i)).ok());
  }
  std::vector<Handle> order;
  for (size_t step = 2; step > 0;) {
    const auto some = store_->CollectRetired(kNow, 2);
    step = some->size();
    for (const NamedKey& key : *some) order.push_back(key.handle);
  }
  EXPECT_THAT(order, ElementsAre(keys[4].handle, keys[3].handle, keys[2].handle, keys[1].handle));
  EXPECT_TRUE(store_->Get(keys[0].handle).ok());
}

// As a program of version 2 would delete it: the key goes, its mark stays.
TEST_P(RetiredTest, AMarkWithoutAKeyIsCollectedQuietly) {
  const NamedKey key = Committed("alice@EXAMPLE.COM");
  EXPECT_TRUE(store_->Retire({key}, kNow).ok());
  EXPECT_EQ(*store_->Delete({key.handle}), 1u);
  EXPECT_EQ(*store_->CountRetired(), 0u) << "Delete takes the mark along";
}

TEST_P(RetiredTest, RandomLivesAreAsTheModelSays) {
  std::vector<NamedKey> keys;
  std::map<Handle, absl::Time> retired;
  std::map<Handle, bool> there;
  const auto below = [this](size_t n) {
    uint8_t byte;
    random_.Fill(absl::MakeSpan(&byte, 1));
    return byte % n;
  };
  for (int i = 0; i < 12; ++i) {
    keys.push_back(Committed(absl::StrCat("user", i, "@EXAMPLE.COM")));
    there[keys.back().handle] = true;
  }
  for (int step = 0; step < 300; ++step) {
    const absl::Time now = kNow + absl::Seconds(step);
    const NamedKey& key = keys[below(keys.size())];
    switch (below(6)) {
      case 0:
      case 1:
      case 2:
        EXPECT_TRUE(store_->Retire({key}, now).ok());
        if (there[key.handle]) retired.try_emplace(key.handle, now);
        break;
      case 3:
        EXPECT_TRUE(store_->Restore({key}).ok());
        retired.erase(key.handle);
        break;
      case 4: {
        EXPECT_TRUE(store_->CollectRetired(now - absl::Seconds(40), 100).ok());
        std::erase_if(retired, [&](const auto& mark) {
          if (mark.second >= now - absl::Seconds(40)) return false;
          there[mark.first] = false;
          return true;
        });
        break;
      }
      default:
        if (below(20) == 0) Reopen();
    }
    ASSERT_EQ(Marks(), retired) << step;
    for (const NamedKey& each : keys) {
      ASSERT_EQ(store_->Get(each.handle).ok(), there[each.handle]) << step;
    }
  }
}

TEST_P(RetiredTest, ADamagedMarkIsAnErrorAndNotAnotherTime) {
  const NamedKey key = Committed("alice@EXAMPLE.COM");
  EXPECT_TRUE(store_->Retire({key}, kNow).ok());
  store_.reset();
  {
    const std::shared_ptr<KvEngine> engine =
        GetParam() ? std::shared_ptr<KvEngine>(*LmdbEngine::Open(folder_.path(), 64 << 20))
                   : std::shared_ptr<KvEngine>(memory_);
    ASSERT_TRUE(engine
                    ->Write("tamper",
                            [&](KvTxn& txn) {
                              return txn.Put(rf::kRetired, absl::StrCat("h", AsText(key.handle)),
                                             "short");
                            })
                    .ok());
  }
  Reopen();
  EXPECT_TRUE(absl::IsDataLoss(
      store_->ForEachRetired(Handle{}, [](const auto&, const RetiredMark&) { return true; })));
  EXPECT_TRUE(absl::IsDataLoss(store_->Restore({key}).status()));
}

INSTANTIATE_TEST_SUITE_P(Engines, RetiredTest, ::testing::Bool(),
                         [](const auto& param) { return param.param ? "Lmdb" : "Memory"; });

}  // namespace
}  // namespace mpckdc
