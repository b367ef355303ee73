// SPDX-License-Identifier: Apache-2.0
//
// What every share store promises its callers, checked on both.
#include "mpc-server/store/share_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "mpc-server/base/limits.h"
#include "mpc-server/store/lmdb_share_store.h"
#include "mpc-server/testing/folder.h"
#include "mpc-server/testing/memory_share_store.h"
#include "mpc-server/testing/records.h"

namespace mpckdc {
namespace {

using ::testing::HasSubstr;

constexpr char kRealm[] = "EXAMPLE.COM";
const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

TransactionId Txn(uint8_t n) {
  TransactionId txn{};
  txn[15] = n;
  return txn;
}

class ShareStoreTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    const StoreIdentity identity{kRealm, 1, 7};
    if (!GetParam()) {
      store_ = std::make_unique<MemoryShareStore>(identity);
      return;
    }
    const std::string key_file = folder_.File("store.key");
    ASSERT_TRUE(StoreKeys::Create(key_file, SystemRandom()).ok());
    auto opened = LmdbShareStore::Open(
        {folder_.path(), identity, *StoreKeys::Load(key_file), &SystemRandom(), 64 << 20});
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
  }

  KeyRecord Committed(const std::string& principal) {
    KeyRecord record = RecordForTest(random_, principal);
    const TransactionId txn = Txn(++next_txn_);
    EXPECT_TRUE(store_->Stage(txn, {record}, kNow).ok());
    EXPECT_TRUE(store_->Commit(txn, kNow).ok());
    return record;
  }

  TestFolder folder_;
  std::unique_ptr<ShareStore> store_;
  SeededRandomForTest random_{1};
  uint8_t next_txn_ = 100;
};

TEST_P(ShareStoreTest, NewStoreIsEmptyAndKnowsWhoseItIs) {
  const StoreMeta meta = store_->Meta();
  EXPECT_EQ(meta.identity, (StoreIdentity{kRealm, 1, 7}));
  EXPECT_EQ(meta.epoch, 1u);
  EXPECT_FALSE(meta.initialised);
  EXPECT_EQ(*store_->Count(KeyState::kCommitted), 0u);
  EXPECT_EQ(*store_->ReadNonceMark(), NonceMark{});
  EXPECT_TRUE(absl::IsNotFound(store_->Get(Handle{}).status()));
}

TEST_P(ShareStoreTest, InitialisesOnce) {
  EXPECT_EQ(*store_->MarkInitialised(), true);
  EXPECT_EQ(*store_->MarkInitialised(), false);
  EXPECT_TRUE(store_->Meta().initialised);
}

TEST_P(ShareStoreTest, StagedKeyIsUsableOnlyAfterCommit) {
  const KeyRecord record = RecordForTest(random_, "alice@EXAMPLE.COM", kEnctypeAes256Gcm);
  ASSERT_TRUE(store_->Stage(Txn(1), {record}, kNow).ok());
  EXPECT_TRUE(absl::IsNotFound(store_->Get(record.info.handle).status()));
  EXPECT_TRUE(SameRecord(*store_->GetStaged(Txn(1), record.info.handle), record));
  EXPECT_EQ(*store_->Count(KeyState::kStaged), 1u);
  EXPECT_EQ(*store_->Commit(Txn(1), kNow), 1u);
  EXPECT_TRUE(SameRecord(*store_->Get(record.info.handle), record));
  EXPECT_EQ(*store_->Count(KeyState::kStaged), 0u);
}

TEST_P(ShareStoreTest, KeepsKeysOfEveryEnctype) {
  std::vector<KeyRecord> records;
  for (const Enctype& enctype : kEnctypes) {
    for (const KeyClass key_class : {KeyClass::kUser, KeyClass::kService}) {
      records.push_back(RecordForTest(random_, "alice@EXAMPLE.COM", enctype.number, key_class));
    }
  }
  ASSERT_TRUE(store_->Stage(Txn(1), records, kNow).ok());
  EXPECT_EQ(*store_->Commit(Txn(1), kNow), records.size());
  for (const KeyRecord& record : records) {
    EXPECT_TRUE(SameRecord(*store_->Get(record.info.handle), record)) << record.info.enctype;
  }
}

TEST_P(ShareStoreTest, CommitCanBeRepeatedWhenItsAnswerWasLost) {
  const KeyRecord record = RecordForTest(random_, "alice@EXAMPLE.COM");
  ASSERT_TRUE(store_->Stage(Txn(1), {record}, kNow).ok());
  EXPECT_EQ(*store_->Commit(Txn(1), kNow), 1u);
  EXPECT_EQ(*store_->Commit(Txn(1), kNow), 1u);
  EXPECT_TRUE(absl::IsFailedPrecondition(store_->Abort(Txn(1)).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(store_->Stage(Txn(1), {record}, kNow)));
}

TEST_P(ShareStoreTest, CommitOfUnknownTransactionFails) {
  EXPECT_TRUE(absl::IsNotFound(store_->Commit(Txn(9), kNow).status()));
  EXPECT_EQ(*store_->Abort(Txn(9)), 0u);
}

TEST_P(ShareStoreTest, AbortDropsOnlyItsTransaction) {
  const KeyRecord a = RecordForTest(random_, "a@EXAMPLE.COM");
  const KeyRecord b = RecordForTest(random_, "b@EXAMPLE.COM");
  ASSERT_TRUE(store_->Stage(Txn(1), {a}, kNow).ok());
  ASSERT_TRUE(store_->Stage(Txn(2), {b}, kNow).ok());
  EXPECT_EQ(*store_->Abort(Txn(1)), 1u);
  EXPECT_TRUE(absl::IsNotFound(store_->Commit(Txn(1), kNow).status()));
  EXPECT_EQ(*store_->Commit(Txn(2), kNow), 1u);
  EXPECT_TRUE(store_->Get(b.info.handle).ok());
}

TEST_P(ShareStoreTest, SecondEnrolmentOfAHandleIsRefused) {
  const KeyRecord record = RecordForTest(random_, "alice@EXAMPLE.COM");
  ASSERT_TRUE(store_->Stage(Txn(1), {record}, kNow).ok());
  absl::Status other = store_->Stage(Txn(2), {record}, kNow);
  EXPECT_TRUE(absl::IsAlreadyExists(other));
  EXPECT_THAT(std::string(other.message()), HasSubstr(HandleText(record.info.handle)));
  EXPECT_TRUE(store_->Stage(Txn(1), {record}, kNow).ok()) << "a repeated call is not a second one";
  EXPECT_EQ(*store_->Commit(Txn(1), kNow), 1u);
  EXPECT_TRUE(absl::IsAlreadyExists(store_->Stage(Txn(3), {record}, kNow)));
}

TEST_P(ShareStoreTest, MalformedRecordStagesNothing) {
  const KeyRecord good = RecordForTest(random_, "good@EXAMPLE.COM");
  KeyRecord bad = RecordForTest(random_, "bad@EXAMPLE.COM");
  bad.usages[1].round_keys.pop_back();
  absl::Status status = store_->Stage(Txn(1), {good, bad}, kNow);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("usage 3"));
  EXPECT_EQ(*store_->Count(KeyState::kStaged), 0u);
}

TEST_P(ShareStoreTest, ExpiryDropsOldStagedKeysAndKeepsCommittedOnes) {
  const KeyRecord old = RecordForTest(random_, "old@EXAMPLE.COM");
  const KeyRecord fresh = RecordForTest(random_, "fresh@EXAMPLE.COM");
  const KeyRecord kept = Committed("kept@EXAMPLE.COM");
  ASSERT_TRUE(store_->Stage(Txn(1), {old}, kNow).ok());
  const absl::Time later = kNow + limits::kStagedKeyLife;
  ASSERT_TRUE(store_->Stage(Txn(2), {fresh}, later).ok());
  EXPECT_EQ(*store_->ExpireStaged(later), 1u);
  EXPECT_TRUE(absl::IsNotFound(store_->Commit(Txn(1), later).status()));
  EXPECT_EQ(*store_->Commit(Txn(2), later), 1u);
  EXPECT_TRUE(store_->Get(kept.info.handle).ok());
}

TEST_P(ShareStoreTest, DeleteCountsWhatWasThere) {
  const KeyRecord a = Committed("a@EXAMPLE.COM");
  const KeyRecord b = Committed("b@EXAMPLE.COM");
  EXPECT_EQ(*store_->Delete({a.info.handle, Handle{}}), 1u);
  EXPECT_TRUE(absl::IsNotFound(store_->Get(a.info.handle).status()));
  EXPECT_TRUE(store_->Get(b.info.handle).ok());
}

TEST_P(ShareStoreTest, SetGateIsAllOrNothing) {
  const KeyRecord a = Committed("a@EXAMPLE.COM");
  EXPECT_TRUE(absl::IsNotFound(store_->SetGate({a.info.handle, Handle{}}, Gate::kNone)));
  EXPECT_EQ(store_->Get(a.info.handle)->info.gate, Gate::kTimestamp);
  ASSERT_TRUE(store_->SetGate({a.info.handle}, Gate::kKdcTrusted).ok());
  KeyRecord want = a;
  want.info.gate = Gate::kKdcTrusted;
  EXPECT_TRUE(SameRecord(*store_->Get(a.info.handle), want));
}

TEST_P(ShareStoreTest, ForEachVisitsInOrderOfHandlesAndStopsWhenTold) {
  for (int i = 0; i < 5; ++i) Committed("user@EXAMPLE.COM");
  std::vector<Handle> seen;
  ASSERT_TRUE(store_
                  ->ForEach(KeyState::kCommitted,
                            [&](const absl::StatusOr<KeyInfo>& info) {
                              seen.push_back(info->handle);
                              return seen.size() < 4;
                            })
                  .ok());
  EXPECT_EQ(seen.size(), 4u);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
}

TEST_P(ShareStoreTest, ForEachFromGoesOnWhereItIsTold) {
  for (int i = 0; i < 5; ++i) Committed("user@EXAMPLE.COM");
  const auto from = [&](const Handle& first) {
    std::vector<Handle> seen;
    EXPECT_TRUE(store_
                    ->ForEachFrom(first,
                                  [&](const absl::StatusOr<KeyInfo>& info) {
                                    seen.push_back(info->handle);
                                    return true;
                                  })
                    .ok());
    return seen;
  };
  const std::vector<Handle> all = from(Handle{});
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(from(all[2]), std::vector<Handle>(all.begin() + 2, all.end()));
  Handle between = all[2];
  for (size_t i = between.size(); i-- > 0 && ++between[i] == 0;) {
  }
  EXPECT_EQ(from(between), std::vector<Handle>(all.begin() + 3, all.end()));
  Handle last;
  last.fill(0xff);
  EXPECT_TRUE(from(last).empty());
}

TEST_P(ShareStoreTest, NonceMarkOnlyRises) {
  NonceMark high{};
  high[0] = 1;
  NonceMark low{};
  low[11] = 255;
  ASSERT_TRUE(store_->ReserveNonceMark(low).ok());
  ASSERT_TRUE(store_->ReserveNonceMark(high).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(store_->ReserveNonceMark(low)));
  EXPECT_TRUE(absl::IsFailedPrecondition(store_->ReserveNonceMark(high)));
  EXPECT_EQ(*store_->ReadNonceMark(), high);
}

TEST_P(ShareStoreTest, ReplayEntriesStayUntilTheyExpire) {
  ReplayEntry first{Handle{1}, {1}, kNow + absl::Seconds(10)};
  ReplayEntry second{Handle{2}, {2}, kNow + absl::Seconds(20)};
  ASSERT_TRUE(store_->AddReplayEntries({first, second}).ok());
  EXPECT_EQ(*store_->PruneReplayEntries(kNow + absl::Seconds(15)), 1u);
  std::vector<ReplayEntry> left;
  ASSERT_TRUE(store_->LoadReplayEntries([&](const ReplayEntry& e) { left.push_back(e); }).ok());
  EXPECT_EQ(left, std::vector<ReplayEntry>{second});
}

TEST_P(ShareStoreTest, ItemsAreKept) {
  EXPECT_TRUE(absl::IsNotFound(store_->ReadItem("x").status()));
  const SecretBytes value = {1, 2, 3};
  ASSERT_TRUE(store_->WriteItem("x", value).ok());
  EXPECT_EQ(*store_->ReadItem("x"), value);
}

INSTANTIATE_TEST_SUITE_P(Stores, ShareStoreTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Lmdb" : "Memory"; });

}  // namespace
}  // namespace mpckdc
