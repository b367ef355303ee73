// SPDX-License-Identifier: Apache-2.0
//
// What the share store promises its callers, and what it does about damage, on all engines.
#include "mpc-server/store/share_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/store/key_table.h"
#include "mpc-server/store/postgres.h"
#include "mpc-server/testing/folder.h"
#include "mpc-server/testing/long_tests.h"
#include "mpc-server/testing/memory_engine.h"
#include "mpc-server/testing/postgres_cluster.h"
#include "mpc-server/testing/records.h"

namespace mpckdc {
namespace {

namespace rf = record_format;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

TransactionId Txn(uint8_t n) {
  TransactionId txn{};
  txn[15] = n;
  return txn;
}

std::optional<ReplayClaim> KeepClaim(size_t, const ReplayClaim&) { return std::nullopt; }

constexpr char kMemory[] = "Memory", kLmdb[] = "Lmdb", kPostgres[] = "Postgres";

class ShareStoreTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { ASSERT_TRUE(Reopen().ok()); }

  // Nobody has the disk open meanwhile.
  std::shared_ptr<KvEngine> Engine() {
    store_.reset();
    if (GetParam() == kMemory) return memory_;
    if (GetParam() == kLmdb) return *LmdbEngine::Open(folder_.path(), 64 << 20);
    if (database_.empty()) database_ = SharedPostgresCluster()->NewDatabase();
    return *PostgresEngine::Open(SharedPostgresCluster()->ConnInfo(database_), folder_.path(),
                                 SystemRandom());
  }
  absl::Status Reopen(const StoreIdentity& identity = kIdentityForTest,
                      const StoreKeys& keys = StoreKeysForTest()) {
    auto opened = ShareStore::Open(Engine(), {identity, keys, &SystemRandom(), 1 << 20});
    if (opened.ok()) store_ = *std::move(opened);
    return opened.status();
  }
  // Changes what lies on the closed store's disk, as somebody who has it could; opens it again.
  void Tamper(KvEngine::Body change) {
    const absl::Status changed = Engine()->Write("tamper", change);
    ASSERT_TRUE(changed.ok()) << changed;
    const absl::Status opened = Reopen();
    ASSERT_TRUE(opened.ok()) << opened;
  }
  void TamperWithRecord(const Handle& handle, const std::string& sealed) {
    Tamper([&](KvTxn& txn) { return PutKey(txn, AsText(handle), sealed); });
  }
  // PostgreSQL, which takes two connections for each change, has what the others have all of.
  static size_t Step(size_t step) {
    return GetParam() == kPostgres ? ShortOrLong<size_t>(7 * step, step) : step;
  }
  std::string SealedRecord(const Handle& handle) {
    std::string sealed;
    Tamper([&](KvTxn& txn) {
      sealed = std::string(AsText(*GetKey(txn, AsText(handle))));
      return absl::OkStatus();
    });
    return sealed;
  }
  void SetVersion(uint32_t version) {
    const Sealer sealer(StoreKeysForTest(), kIdentityForTest, &SystemRandom());
    const absl::Status set = Engine()->Write("tamper", [&](KvTxn& txn) {
      return txn.Put(rf::kMeta, rf::kNameIdentity,
                     sealer.SealIdentity({kIdentityForTest, 1, true, version}));
    });
    ASSERT_TRUE(set.ok()) << set;
  }

  KeyRecord Committed(const std::string& principal) {
    KeyRecord record = RecordForTest(random_, principal);
    const TransactionId txn = Txn(++next_txn_);
    EXPECT_TRUE(store_->Stage(txn, {record}, kNow).ok());
    EXPECT_TRUE(store_->Commit(txn, kNow).ok());
    return record;
  }

  std::vector<ReplayEntry> Replays() {
    std::vector<ReplayEntry> entries;
    EXPECT_TRUE(
        store_->LoadReplayEntries([&](const ReplayEntry& e) { entries.push_back(e); }).ok());
    return entries;
  }

  TestFolder folder_;
  const std::shared_ptr<MemoryEngine> memory_ = std::make_shared<MemoryEngine>();
  std::string database_;  // of PostgreSQL
  std::unique_ptr<ShareStore> store_;
  SeededRandomForTest random_{1};
  uint8_t next_txn_ = 100;
};

TEST_P(ShareStoreTest, NewStoreIsEmptyAndKnowsWhoseItIs) {
  const StoreMeta meta = store_->Meta();
  EXPECT_EQ(meta.identity, kIdentityForTest);
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
  EXPECT_TRUE(absl::IsNotFound(
      store_->SetGate("a@EXAMPLE.COM", {a.info.handle, Handle{}}, Gate::kNone)));
  EXPECT_EQ(store_->Get(a.info.handle)->info.gate, Gate::kTimestamp);
  const KeyRecord b = Committed("b@EXAMPLE.COM");
  EXPECT_TRUE(absl::IsFailedPrecondition(
      store_->SetGate("a@EXAMPLE.COM", {a.info.handle, b.info.handle}, Gate::kNone)));
  EXPECT_EQ(store_->Get(a.info.handle)->info.gate, Gate::kTimestamp);
  ASSERT_TRUE(store_->SetGate("a@EXAMPLE.COM", {a.info.handle}, Gate::kKdcTrusted).ok());
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
  const ReplayEntry first{Handle{1}, {1}, kNow + absl::Seconds(10)};
  const ReplayEntry second{Handle{2}, {2}, kNow + absl::Seconds(20)};
  ASSERT_TRUE(store_->ClaimReplayEntries({first, second}, KeepClaim).ok());
  EXPECT_EQ(*store_->PruneReplayEntries(kNow + absl::Seconds(15)), 1u);
  EXPECT_THAT(Replays(), ElementsAre(second));
}

// Two servers of a party that share a store: the later one learns who was there, and may count.
TEST_P(ShareStoreTest, OfTwoThatClaimAMessageTheLaterLearnsOfTheFirst) {
  ReplayEntry first{Handle{1}, {1}, kNow, {Claimant{7}, kNow, 1, 2, 3, Handle{9}}};
  ReplayEntry other = first, fresh{Handle{2}, {1}, kNow, {Claimant{8}, kNow}};
  other.claim.claimant = Claimant{8};
  const auto none = store_->ClaimReplayEntries({first}, KeepClaim);
  ASSERT_TRUE(none.ok());
  EXPECT_THAT(*none, ElementsAre(std::nullopt));
  const auto found = store_->ClaimReplayEntries({other, fresh}, KeepClaim);
  ASSERT_TRUE(found.ok());
  EXPECT_THAT(*found, ElementsAre(first.claim, std::nullopt));

  const auto count = [](size_t, const ReplayClaim& claim) -> std::optional<ReplayClaim> {
    ReplayClaim more = claim;
    ++more.tickets;
    return more;
  };
  EXPECT_THAT(*store_->ClaimReplayEntries({other}, count), ElementsAre(first.claim));
  ++first.claim.tickets;
  ASSERT_TRUE(Reopen().ok());
  EXPECT_THAT(Replays(), UnorderedElementsAre(first, fresh));
}

// An older program's entries have no value.
TEST_P(ShareStoreTest, AReplayEntryWithoutAValueIsNobodysClaim) {
  const ReplayEntry entry{Handle{1}, {1}, kNow, {Claimant{7}, kNow}};
  for (const std::string& value : {std::string(), std::string("damaged"), std::string(45, 'x')}) {
    Tamper([&](KvTxn& txn) { return txn.Put(rf::kReplay, ReplayKey(entry), value); });
    EXPECT_THAT(*store_->ClaimReplayEntries({entry}, KeepClaim), ElementsAre(ReplayClaim()));
  }
}

TEST_P(ShareStoreTest, ClaimsThatCannotBeWrittenChangeNothing) {
  const ReplayEntry entry{Handle{1}, {1}, kNow, {Claimant{7}, kNow}};
  const absl::Status ended = Engine()->Write("test", [&](KvTxn& txn) -> absl::Status {
    const KvTxn::Entry row{ReplayKey(entry), "value"};
    EXPECT_TRUE(txn.InsertNew(rf::kReplay, {&row, 1}).ok());
    return absl::AbortedError("as a crash would");
  });
  EXPECT_TRUE(absl::IsAborted(ended));
  ASSERT_TRUE(Reopen().ok());
  EXPECT_THAT(Replays(), testing::IsEmpty());
}

TEST_P(ShareStoreTest, ItemsAreKept) {
  EXPECT_TRUE(absl::IsNotFound(store_->ReadItem("x").status()));
  const SecretBytes value = {1, 2, 3};
  ASSERT_TRUE(store_->WriteItem("x", value).ok());
  EXPECT_EQ(*store_->ReadItem("x"), value);
}

// ---- Reopening ----

TEST_P(ShareStoreTest, KeepsEverythingAcrossReopening) {
  NonceMark mark{};
  mark[3] = 9;
  const ReplayEntry entry{Handle{1}, {2}, kNow};
  const KeyRecord record = Committed("alice@EXAMPLE.COM");
  ASSERT_TRUE(store_->ReserveNonceMark(mark).ok());
  ASSERT_TRUE(store_->ClaimReplayEntries({entry}, KeepClaim).ok());
  ASSERT_TRUE(store_->MarkInitialised().ok());
  ASSERT_TRUE(store_->WriteItem("package-key", SecretBytes{4, 5}).ok());
  ASSERT_TRUE(Reopen().ok());
  EXPECT_TRUE(SameRecord(*store_->Get(record.info.handle), record));
  EXPECT_EQ(*store_->ReadNonceMark(), mark);
  EXPECT_TRUE(store_->Meta().initialised);
  EXPECT_EQ(*store_->ReadItem("package-key"), (SecretBytes{4, 5}));
  EXPECT_THAT(Replays(), ElementsAre(entry));
}

TEST_P(ShareStoreTest, AnotherRealmsStoreIsRefusedNamingBoth) {
  for (const StoreIdentity& wrong : {StoreIdentity{"OTHER.COM", 1, 7},
                                     StoreIdentity{"EXAMPLE.COM", 2, 7},
                                     StoreIdentity{"EXAMPLE.COM", 1, 8}}) {
    const absl::Status status = Reopen(wrong);
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("realm EXAMPLE.COM, party 1, cluster 7"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("realm " + wrong.realm));
  }
}

TEST_P(ShareStoreTest, AnotherKeyFileIsRefused) {
  const std::string key = std::string(64, '6');
  absl::Status status = Reopen(kIdentityForTest, *StoreKeys::Parse(AsBytes("1 " + key), "a/file"));
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("a/file"));
  status = Reopen(kIdentityForTest, *StoreKeys::Parse(AsBytes("2 " + key), "a/file"));
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
}

TEST_P(ShareStoreTest, StoresOfOtherVersionsAreRefused) {
  for (const uint32_t version : {0u, rf::kStoreVersion + 1u}) {
    SetVersion(version);
    const absl::Status status = Reopen();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("format version"));
  }
}

// ---- Damage ----

TEST_P(ShareStoreTest, EachChangedByteOfARecordIsDataLossThatNamesTheKey) {
  const KeyRecord record = Committed("alice@EXAMPLE.COM");
  const KeyRecord other = Committed("bob@EXAMPLE.COM");
  const std::string good = SealedRecord(record.info.handle);
  ASSERT_GT(good.size(), rf::kOverheadBytes);
  for (size_t i = 0; i < good.size(); i += Step(i < 60 || i + 20 > good.size() ? 1 : 37)) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x40);
    TamperWithRecord(record.info.handle, bad);
    const absl::Status status = store_->Get(record.info.handle).status();
    ASSERT_TRUE(absl::IsDataLoss(status)) << "byte " << i << ": " << status;
    ASSERT_THAT(std::string(status.message()), HasSubstr(HandleText(record.info.handle)));
    ASSERT_TRUE(SameRecord(*store_->Get(other.info.handle), other));
  }
}

TEST_P(ShareStoreTest, TruncatedAndExtendedRecordsAreDataLoss) {
  const Handle handle = Committed("alice@EXAMPLE.COM").info.handle;
  const std::string good = SealedRecord(handle);
  for (size_t size = 0; size <= good.size() + 1; size += Step(size < 64 ? 1 : 31)) {
    if (size == good.size()) continue;
    std::string bad = good;
    bad.resize(size);
    TamperWithRecord(handle, bad);
    EXPECT_TRUE(absl::IsDataLoss(store_->Get(handle).status())) << size;
  }
}

TEST_P(ShareStoreTest, RecordOfAnotherKeyIsDataLoss) {
  const Handle alice = Committed("alice@EXAMPLE.COM").info.handle;
  const Handle mallory = Committed("mallory@EXAMPLE.COM").info.handle;
  TamperWithRecord(alice, SealedRecord(mallory));
  EXPECT_TRUE(absl::IsDataLoss(store_->Get(alice).status()));
  EXPECT_TRUE(absl::IsDataLoss(store_->SetGate("alice@EXAMPLE.COM", {alice}, Gate::kNone)));
  size_t damaged = 0;
  ASSERT_TRUE(store_->ForEach(KeyState::kCommitted, [&](const absl::StatusOr<KeyInfo>& info) {
    damaged += absl::IsDataLoss(info.status());
    return true;
  }).ok());
  EXPECT_EQ(damaged, 1u);
}

TEST_P(ShareStoreTest, ADamagedStagedRecordFailsTheCommit) {
  const KeyRecord record = RecordForTest(random_, "alice@EXAMPLE.COM");
  ASSERT_TRUE(store_->Stage(Txn(1), {record}, kNow).ok());
  const std::string key = absl::StrCat(AsText(Txn(1)), AsText(record.info.handle));
  Tamper([&](KvTxn& txn) {
    std::string bad(AsText(*txn.Get(rf::kStaged, key)));
    bad.back() = static_cast<char>(bad.back() ^ 1);
    return txn.Put(rf::kStaged, key, bad);
  });
  EXPECT_TRUE(absl::IsDataLoss(store_->Commit(Txn(1), kNow).status()));
  Tamper([&](KvTxn& txn) { return txn.Delete(rf::kStaged, key); });
  EXPECT_TRUE(absl::IsDataLoss(store_->Commit(Txn(1), kNow).status())) << "a key is missing";
  EXPECT_EQ(*store_->Count(KeyState::kCommitted), 0u);
  EXPECT_TRUE(store_->Abort(Txn(1)).ok());
}

// ---- Places ----

TEST_P(ShareStoreTest, RecordsOfAVersion1StoreAreReadChangedAndDeleted) {
  KeyRecord kept = Committed("kept@EXAMPLE.COM");
  KeyRecord changed = Committed("changed@EXAMPLE.COM");
  KeyRecord deleted = Committed("deleted@EXAMPLE.COM");
  // There the record itself was where the place stands now.
  Tamper([&](KvTxn& txn) {
    absl::Status s;
    for (const KeyRecord* record : {&kept, &changed, &deleted}) {
      const absl::string_view handle = AsText(record->info.handle);
      const std::string sealed(AsText(*GetKey(txn, handle)));
      s.Update(DeleteKey(txn, handle));
      s.Update(txn.Put(rf::kKeys, handle, sealed));
    }
    return s;
  });
  SetVersion(1);
  ASSERT_TRUE(Reopen().ok());
  EXPECT_EQ(store_->Meta().format_version, rf::kStoreVersion);
  EXPECT_TRUE(store_->Meta().initialised);
  const KeyRecord fresh = Committed("fresh@EXAMPLE.COM");
  ASSERT_TRUE(store_->SetGate(changed.info.principal, {changed.info.handle}, Gate::kNone).ok());
  changed.info.gate = Gate::kNone;
  EXPECT_EQ(*store_->Delete({deleted.info.handle}), 1u);
  ASSERT_TRUE(Reopen().ok());
  EXPECT_EQ(*store_->Count(KeyState::kCommitted), 3u);
  for (const KeyRecord& record : {kept, changed, fresh}) {
    EXPECT_TRUE(SameRecord(*store_->Get(record.info.handle), record));
  }
  EXPECT_TRUE(absl::IsNotFound(store_->Get(deleted.info.handle).status()));
}

TEST_P(ShareStoreTest, AnEmptyPlaceIsDataLossThatNamesTheKey) {
  const Handle handle = Committed("alice@EXAMPLE.COM").info.handle;
  Tamper([&](KvTxn& txn) {
    const std::string place(AsText(*txn.Get(rf::kKeys, AsText(handle))));
    EXPECT_EQ(place.size(), rf::kPlaceBytes);
    return txn.Delete(rf::kRecords, place);
  });
  const absl::Status status = store_->Get(handle).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(HandleText(handle)));
  EXPECT_TRUE(absl::IsDataLoss(store_->SetGate("alice@EXAMPLE.COM", {handle}, Gate::kNone)));
  EXPECT_EQ(*store_->Delete({handle}), 1u) << "what is damaged can be deleted";
}

// The newest key may be deleted, and its place taken again by the next: nobody names it any more.
TEST_P(ShareStoreTest, PlacesAfterDeletions) {
  std::vector<KeyRecord> kept;
  for (int i = 0; i < 30; ++i) {
    const KeyRecord record = Committed("user@EXAMPLE.COM");
    if (i % 3 == 0) {
      ASSERT_EQ(*store_->Delete({record.info.handle}), 1u);
    } else {
      kept.push_back(record);
    }
  }
  for (const KeyRecord& record : kept) {
    EXPECT_TRUE(SameRecord(*store_->Get(record.info.handle), record));
  }
  EXPECT_EQ(*store_->Count(KeyState::kCommitted), kept.size());
}

INSTANTIATE_TEST_SUITE_P(Engines, ShareStoreTest, ::testing::Values(kMemory, kLmdb, kPostgres),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace mpckdc
