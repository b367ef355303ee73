// SPDX-License-Identifier: Apache-2.0
//
// Three parties' stores go from one share epoch to the next: the keys stay, the shares do not, and
// whatever breaks off in between, each store is in one epoch or the other.
#include "mpc-server/store/key_table.h"
#include "mpc-server/testing/epochs_fixture.h"
#include "mpc-server/testing/folder.h"

namespace mpckdc {
namespace {

using ::testing::HasSubstr;

TEST_F(EpochsTest, TheKeysStayAndTheSharesChange) {
  for (const int32_t enctype : {kEnctypeAes128Gcm, kEnctypeAes256Gcm, 17, 18, 19, 20}) {
    std::array<KeyRecord, 3> before = Enrol(enctype);
    const uint8_t n = static_cast<uint8_t>(stores_[0]->Epoch().epoch);
    const std::vector<Block> keys = Keys(before);
    Prepare(n);
    Enter();
    for (int stage = 0; stage < 2; ++stage) {  // still as they were on the disk; written anew
      std::array<KeyRecord, 3> after = Get(before[0].info.handle);
      EXPECT_EQ(Keys(after), keys);
      size_t same = 0;
      for (int p = 0; p < 3; ++p) {
        std::array<KeyRecord, 3> pair = {before[p], after[p], after[p]};
        ForEach(pair, [&](std::array<SharedBlock*, 3> b) {
          same += b[0]->a == b[1]->a || b[0]->x == b[1]->x;
        });
      }
      EXPECT_EQ(same, 0u);
      for (int p = 0; p < 3; ++p) RewriteAll(p);
    }
  }
}

// What a refresh adds to a record depends on its handle: a copy must be made before it at all three
// servers, or after it.
TEST_F(EpochsTest, ARenamedKeyIsCopiedInOneEpoch) {
  std::array<KeyRecord, 3> old = Enrol();
  const std::vector<Block> keys = Keys(old);
  const auto rename = [&](int p, uint8_t n, uint64_t epoch) {
    RenamedKey key{{old[0].info.handle, "alice@EXAMPLE.COM"}, {n}, 4, "salt"};
    return stores_[p]
        ->StageRenamed(TransactionId{n}, {key}, "bob@EXAMPLE.COM", epoch, kNow)
        .status();
  };
  for (int p = 0; p < 3; ++p) ASSERT_TRUE(rename(p, 200, 1).ok());
  Prepare(9);
  for (int p = 0; p < 3; ++p) ASSERT_TRUE(rename(p, 201, 1).ok());
  ASSERT_TRUE(stores_[0]->EnterEpoch(kNow).ok());
  EXPECT_TRUE(absl::IsAborted(rename(0, 202, 1)));
  EXPECT_TRUE(rename(1, 202, 1).ok());
  EXPECT_TRUE(absl::IsAborted(rename(1, 203, 2)));
  for (int p = 1; p < 3; ++p) ASSERT_TRUE(stores_[p]->EnterEpoch(kNow).ok());
  // Of records that are still those of the epoch before on the disk; and of those that are not.
  for (int p = 0; p < 3; ++p) ASSERT_TRUE(rename(p, 204, 2).ok());
  Commit(TransactionId{200});
  for (int p = 0; p < 3; ++p) RewriteAll(p);
  for (int p = 0; p < 3; ++p) ASSERT_TRUE(rename(p, 205, 2).ok());
  for (const uint8_t n : {201, 204, 205}) Commit(TransactionId{n});
  for (const uint8_t n : {200, 201, 204, 205}) {
    std::array<KeyRecord, 3> copy = Get(Handle{n});
    EXPECT_EQ(Keys(copy), keys) << int{n};
    EXPECT_EQ(copy[0].info.principal, "bob@EXAMPLE.COM");
  }
}

// A thief of P_i before and of P_j after has two components of each epoch in common with nobody;
// of one epoch he has all three. The second is the control: the first must fail for a reason.
TEST_F(EpochsTest, TwoThievesOfDifferentEpochsHaveNothing) {
  std::array<KeyRecord, 3> before = Enrol();
  const std::vector<Block> keys = Keys(before);
  Prepare(9);
  Enter();
  for (int p = 0; p < 3; ++p) RewriteAll(p);
  std::array<KeyRecord, 3> after = Get(before[0].info.handle);
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      if (i == j) continue;
      const auto guess = [&](std::array<KeyRecord, 3>& first, std::array<KeyRecord, 3>& second) {
        std::vector<Block> sums;
        std::array<KeyRecord, 3> pair = {first[i], second[j], second[j]};
        ForEach(pair, [&](std::array<SharedBlock*, 3> b) {
          Block sum{};
          for (int c = 0; c < 3; ++c) {
            const bool first_has = c == i || c == (i + 2) % 3;
            sum = XorBlocks(sum, ComponentOf(first_has ? *b[0] : *b[1], first_has ? i : j, c));
          }
          sums.push_back(sum);
        });
        return sums;
      };
      EXPECT_EQ(guess(before, before), keys) << i << j;
      EXPECT_EQ(guess(after, after), keys) << i << j;
      const std::vector<Block> mixed = guess(before, after), mixed_too = guess(after, before);
      for (size_t k = 0; k < keys.size(); ++k) {
        EXPECT_NE(mixed[k], keys[k]);
        EXPECT_NE(mixed_too[k], keys[k]);
      }
    }
  }
}

// Neither the disk nor the key file of a store that has left an epoch opens what was sealed in it.
TEST_F(EpochsTest, WhatLiesInAnOldCopyIsUnreadableWithTheNewKeyFile) {
  std::array<KeyRecord, 3> before = Enrol();
  auto copy = std::make_shared<MemoryEngine>(engines_[1]->Snapshot());
  Prepare(1);
  auto copy_with_seed = std::make_shared<MemoryEngine>(engines_[1]->Snapshot());
  Enter();
  EXPECT_THAT(files_[1], HasSubstr("\n1 "));
  for (int p = 0; p < 3; ++p) RewriteAll(p);
  EXPECT_THAT(files_[1], Not(HasSubstr("\n1 ")));
  EXPECT_THAT(files_[1], HasSubstr("\n2 "));
  for (auto& old : {copy, copy_with_seed}) {
    engines_[1] = old;
    EXPECT_THAT(Reopen(1).ToString(), HasSubstr("epoch 1, for which key file 1 holds no key"));
  }
}

// Each store is stopped behind each step and opened again; then it goes on.
TEST_F(EpochsTest, ARestartAnywhereLeavesOneEpoch) {
  const std::vector<std::function<void(int)>> steps = {
      [&](int p) { ASSERT_TRUE(stores_[p]->PrepareEpoch(Id(1), Seed(1)).ok()); },
      [&](int p) { ASSERT_TRUE(stores_[p]->EnterEpoch(kNow).ok()); },
      [&](int p) {
        ASSERT_TRUE(stores_[p]->Rewrite({&half_, 1}).ok());
      },
      [&](int p) { ASSERT_TRUE(mpckdc::RewriteAll(*stores_[p]).ok()); },
      [&](int p) { ASSERT_TRUE(stores_[p]->RewriteStaged().ok()); },
      [&](int p) { ASSERT_TRUE(stores_[p]->EndRefresh().ok()); },
  };
  for (size_t cut = 0; cut <= steps.size(); ++cut) {
    SCOPED_TRACE(cut);
    for (int p = 0; p < 3; ++p) {
      engines_[p] = std::make_shared<MemoryEngine>();
      files_[p] = absl::StrCat("1 ", std::string(64, 'a' + p));
      ASSERT_TRUE(Reopen(p).ok());
    }
    std::array<KeyRecord, 3> one = Enrol(), two = Enrol(18), staged = Deal();
    half_ = two[0].info.handle;
    const TransactionId txn = Stage(staged, 1);
    for (size_t s = 0; s < steps.size(); ++s) {
      for (int p = 0; p < 3; ++p) {
        if (s == cut) {
          const EpochState state = stores_[p]->Epoch();
          ASSERT_TRUE(stores_[p]->WriteItem("package-key", AsBytes("secret")).ok());
          ASSERT_TRUE(Reopen(p).ok());
          EXPECT_EQ(stores_[p]->Epoch().epoch, state.epoch);
          EXPECT_EQ(stores_[p]->Epoch().prepared, state.prepared);
          EXPECT_EQ(stores_[p]->Epoch().rewriting, state.rewriting);
          EXPECT_EQ(stores_[p]->Epoch().began_by, state.began_by);
          EXPECT_EQ(stores_[p]->Meta().epoch, state.epoch);
          EXPECT_EQ(AsText(*stores_[p]->ReadItem("package-key")), "secret");
        }
        steps[s](p);
      }
      std::array<KeyRecord, 3> now = Get(two[0].info.handle);
      EXPECT_EQ(Keys(now), Keys(two));
    }
    for (int p = 0; p < 3; ++p) ASSERT_TRUE(Reopen(p).ok());
    Commit(txn);
    for (auto* record : {&one, &two, &staged}) {
      std::array<KeyRecord, 3> now = Get((*record)[0].info.handle);
      EXPECT_EQ(Keys(now), Keys(*record));
      for (int p = 0; p < 3; ++p) EXPECT_FALSE(SameRecord(now[p], (*record)[p]));
    }
  }
}

// Packages are made for an epoch and may come to one server before it enters the next, to another
// after.
TEST_F(EpochsTest, AnEnrolmentOverTheChangeIsOneKey) {
  std::array<KeyRecord, 3> records = Deal();
  const TransactionId txn{5};
  ASSERT_TRUE(stores_[0]->Stage(txn, {&records[0], 1}, 1, kNow).ok());
  Prepare(1);
  ASSERT_TRUE(stores_[1]->Stage(txn, {&records[1], 1}, 1, kNow).ok());
  Enter();
  ASSERT_TRUE(stores_[2]->Stage(txn, {&records[2], 1}, 1, kNow).ok());
  ASSERT_TRUE(stores_[0]->Commit(txn, kNow).ok());  // before it is rewritten, and after
  for (int p = 0; p < 3; ++p) RewriteAll(p);
  ASSERT_TRUE(stores_[1]->Commit(txn, kNow).ok());
  ASSERT_TRUE(stores_[2]->Commit(txn, kNow).ok());
  std::array<KeyRecord, 3> now = Get(records[0].info.handle);
  EXPECT_EQ(Keys(now), Keys(records));

  std::array<KeyRecord, 3> late = Deal();
  const absl::Status refused = stores_[0]->Stage(TransactionId{6}, {&late[0], 1}, 1, kNow);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused));
  EXPECT_THAT(refused.ToString(), HasSubstr("epoch 1, this server is in epoch 2"));
}

TEST_F(EpochsTest, AGateSetAmidARefreshKeepsTheKey) {
  std::array<KeyRecord, 3> records = Enrol();
  const Handle handle = records[0].info.handle;
  Prepare(1);
  Enter();
  const std::string principal = records[0].info.principal;
  for (int p = 0; p < 3; ++p) {
    ASSERT_TRUE(stores_[p]->SetGate(principal, {&handle, 1}, Gate::kNone).ok());
  }
  EXPECT_EQ(mpckdc::RewriteAll(*stores_[0])->written, 0u);
  std::array<KeyRecord, 3> now = Get(handle);
  EXPECT_EQ(Keys(now), Keys(records));
  EXPECT_EQ(now[1].info.gate, Gate::kNone);
}

TEST_F(EpochsTest, WhatWasAbandonedIsForgotten) {
  std::array<KeyRecord, 3> records = Enrol();
  Prepare(1);
  for (int p = 0; p < 3; ++p) ASSERT_TRUE(stores_[p]->AbandonEpoch().ok());
  EXPECT_FALSE(stores_[0]->Epoch().prepared.has_value());
  EXPECT_TRUE(absl::IsFailedPrecondition(stores_[0]->EnterEpoch(kNow)));
  Prepare(2);
  Enter();
  EXPECT_EQ(stores_[0]->Epoch().began_by, Id(2));
  std::array<KeyRecord, 3> now = Get(records[0].info.handle);
  EXPECT_EQ(Keys(now), Keys(records));
}

// Whoever read the key file amid an attempt that came to nothing has no key of a later epoch.
TEST_F(EpochsTest, AKeyFileOfBeforeOpensNoStoreOfAfter) {
  for (const bool abandoned : {true, false}) {
    const uint64_t epoch = stores_[1]->Epoch().epoch;
    Prepare(1);
    const std::string stolen = files_[1];
    for (int p = 0; abandoned && p < 3; ++p) ASSERT_TRUE(stores_[p]->AbandonEpoch().ok());
    Prepare(2);
    Enter();
    for (int p = 0; p < 3; ++p) RewriteAll(p);
    const std::string now = std::exchange(files_[1], stolen);
    EXPECT_FALSE(Reopen(1).ok()) << "abandoned: " << abandoned;
    files_[1] = now;
    ASSERT_TRUE(Reopen(1).ok());
    EXPECT_EQ(stores_[1]->Epoch().epoch, epoch + 1);
  }
}

// The same where a machine's own database serves others too.
TEST_F(EpochsTest, AMachinesKeyFileOfBeforeOpensNoSharedStoreOfAfter) {
  std::string file = "1 " + std::string(64, 'a');
  const auto shared = std::make_shared<MemoryEngine>();
  const auto open = [&] {
    StoreKeys keys = *StoreKeys::Parse(AsBytes(file), "its key file");
    keys.SetSaver([&](absl::Span<const uint8_t> text) {
      file = std::string(AsText(text));
      return absl::OkStatus();
    });
    return ShareStore::Open(std::make_shared<SharedMemoryEngine>(shared, MachineName{1}),
                            {{"EXAMPLE.COM", 0, 7}, keys, &SystemRandom()});
  };
  auto store = open();
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_TRUE((*store)->PrepareEpoch(Id(1), Seed(1)).ok());
  const std::string stolen = file;
  ASSERT_TRUE((*store)->AbandonEpoch().ok());
  ASSERT_TRUE((*store)->PrepareEpoch(Id(2), Seed(2)).ok());
  ASSERT_TRUE((*store)->EnterEpoch(kNow).ok());
  ASSERT_TRUE((*store)->EndRefresh().ok());
  const std::string now = std::exchange(file, stolen);
  EXPECT_FALSE(open().ok());
  file = now;
  EXPECT_TRUE(open().ok());
}

// The key file is newer than the store: no other machine has its key either.
TEST_F(EpochsTest, ADatabaseOfBeforeARefreshIsNotWaitedForByCopyingKeyFiles) {
  const auto open = [](std::shared_ptr<MemoryEngine> shared, std::string file) {
    return ShareStore::Open(
        std::make_shared<SharedMemoryEngine>(std::move(shared), MachineName{1}),
        {{"EXAMPLE.COM", 0, 7}, *StoreKeys::Parse(AsBytes(file), "store.key"), &SystemRandom()});
  };
  const auto database = std::make_shared<MemoryEngine>();
  const std::string before = "1 " + std::string(64, 'a'), after = "2 " + std::string(64, 'b');
  ASSERT_TRUE(open(database, before).ok());
  const std::string said(open(database, after).status().message());
  EXPECT_THAT(said, ::testing::HasSubstr("make an empty database"));
  EXPECT_THAT(said, ::testing::HasSubstr("mpc-admin replace-party"));
  EXPECT_THAT(said, ::testing::Not(::testing::HasSubstr("from another machine")));
  const std::string empty(open(std::make_shared<MemoryEngine>(), after).status().message());
  EXPECT_THAT(empty, ::testing::HasSubstr("move the key file away"));
}

TEST_F(EpochsTest, TheNextRefreshWaitsForTheLast) {
  Enrol();
  Prepare(1);
  Enter();
  EXPECT_TRUE(absl::IsFailedPrecondition(stores_[0]->PrepareEpoch(Id(2), Seed(2))));
  RewriteAll(0);
  EXPECT_TRUE(stores_[0]->PrepareEpoch(Id(2), Seed(2)).ok());
}

TEST_F(EpochsTest, ADamagedRecordIsCountedAndStaysDamaged) {
  std::array<KeyRecord, 3> good = Enrol(), bad = Enrol();
  const Handle handle = bad[0].info.handle;
  ASSERT_TRUE(engines_[0]
                  ->Write("tamper",
                          [&](KvTxn& txn) {
                            std::string sealed(AsText(*GetKey(txn, AsText(handle))));
                            sealed.back() ^= 1;
                            return PutKey(txn, AsText(handle), sealed);
                          })
                  .ok());
  Prepare(1);
  Enter();
  EXPECT_EQ(mpckdc::RewriteAll(*stores_[0])->damaged, 1u);
  ASSERT_TRUE(stores_[0]->EndRefresh().ok());
  EXPECT_TRUE(absl::IsDataLoss(stores_[0]->Get(handle).status()));
  std::array<KeyRecord, 3> now = Get(good[0].info.handle);
  EXPECT_EQ(Keys(now), Keys(good));
}

// ---- What is computed before the write ----

TEST_F(EpochsTest, AWritePutsWhatWasComputedBeforeIt) {
  std::array<KeyRecord, 3> one = Enrol(), other = Enrol();
  const std::vector<Handle> handles = {one[0].info.handle, other[0].info.handle};
  Prepare(1);
  Enter();
  ShareStore::Renewals renewals;
  stores_[0]->Renew({handles.data(), 1}, &renewals);
  stores_[0]->Renew({&handles[1], 1}, &renewals);
  ASSERT_EQ(renewals.records.size(), 2u);
  EXPECT_EQ(stores_[0]->Rewrite(handles, renewals)->written, 2u);
  for (size_t i = 0; i < handles.size(); ++i) {
    const auto txn = engines_[0]->BeginRead();
    EXPECT_EQ(AsText(*GetKey(**txn, AsText(handles[i]))), renewals.records[i].renewed);
  }
  for (int p : {1, 2}) RewriteAll(p);
  ASSERT_TRUE(stores_[0]->EndRefresh().ok());
  ExpectKey(handles[0], one);
  ExpectKey(handles[1], other);
}

// Of the keys that were looked at beforehand one is deleted, one changed, and one was damaged, or
// could not be looked at.
TEST_F(EpochsTest, WhatChangedSinceIsComputedInTheWrite) {
  std::array<KeyRecord, 3> deleted = Enrol(), changed = Enrol(), late = Enrol();
  const std::vector<Handle> handles = {deleted[0].info.handle, changed[0].info.handle,
                                       late[0].info.handle};
  Prepare(1);
  Enter();
  ShareStore::Renewals renewals;
  stores_[0]->Renew({handles.data(), 2}, &renewals);
  ASSERT_TRUE(stores_[0]->Delete({handles.data(), 1}).ok());
  ASSERT_TRUE(stores_[0]->SetGate(changed[0].info.principal, {&handles[1], 1}, Gate::kKdcTrusted).ok());
  EXPECT_TRUE(stores_[0]->Rewrite(handles, renewals).ok());
  EXPECT_TRUE(absl::IsNotFound(stores_[0]->Get(handles[0]).status()));
  EXPECT_EQ(stores_[0]->Get(handles[1])->info.gate, Gate::kKdcTrusted);
  EXPECT_EQ(mpckdc::RewriteAll(*stores_[0])->written, 0u);
  ASSERT_TRUE(stores_[0]->EndRefresh().ok());
  for (int p : {1, 2}) RewriteAll(p);
  ExpectKey(handles[1], changed);
  ExpectKey(handles[2], late);
}

// What was computed for one epoch is put into no other.
TEST_F(EpochsTest, WhatWasComputedInAnotherEpochIsNotPut) {
  std::array<KeyRecord, 3> records = Enrol();
  const Handle handle = records[0].info.handle;
  Prepare(1);
  Enter();
  ShareStore::Renewals renewals;
  stores_[0]->Renew({&handle, 1}, &renewals);
  ASSERT_FALSE(renewals.records.at(0).renewed.empty());
  for (int p = 0; p < 3; ++p) RewriteAll(p);
  Prepare(2);
  Enter();
  EXPECT_EQ(stores_[0]->Rewrite({&handle, 1}, renewals)->written, 1u);
  for (int p = 0; p < 3; ++p) RewriteAll(p);
  ExpectKey(handle, records);
}

// Nothing begins where the new key cannot be kept; the old one is erased as soon as it can be.
TEST_F(EpochsTest, AKeyFileThatCannotBeWritten) {
  Enrol();
  key_file_fails_ = absl::PermissionDeniedError("no");
  EXPECT_TRUE(absl::IsPermissionDenied(stores_[0]->PrepareEpoch(Id(1), Seed(1))));
  EXPECT_FALSE(stores_[0]->Epoch().prepared.has_value());
  key_file_fails_ = absl::OkStatus();
  Prepare(1);
  Enter();
  ASSERT_TRUE(mpckdc::RewriteAll(*stores_[0]).ok());
  key_file_fails_ = absl::ResourceExhaustedError("full");
  EXPECT_TRUE(absl::IsResourceExhausted(stores_[0]->EndRefresh()));
  EXPECT_THAT(files_[0], HasSubstr("\n1 "));
  key_file_fails_ = absl::OkStatus();
  ASSERT_TRUE(Reopen(0).ok());
  EXPECT_THAT(files_[0], Not(HasSubstr("\n1 ")));
}

TEST(StoreKeysFileTest, ACredentialCannotBeRefreshedAndSaysSoBeforehand) {
  TestFolder folder;
  ASSERT_TRUE(StoreKeys::Create(folder.path() + "/store-key", SystemRandom()).ok());
  setenv("CREDENTIALS_DIRECTORY", folder.path().c_str(), 1);
  absl::StatusOr<StoreKeys> keys = StoreKeys::LoadCredential("store-key");
  unsetenv("CREDENTIALS_DIRECTORY");
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_THAT(keys->CheckChangeable().ToString(), HasSubstr("refresh_every = \"never\""));
  EXPECT_TRUE(absl::IsFailedPrecondition(keys->Add(2, SystemRandom())));
  EXPECT_TRUE(StoreKeys::Load(folder.path() + "/store-key")->CheckChangeable().ok());
}

TEST(StoreKeysFileTest, ARefreshReplacesTheFile) {
  TestFolder folder;
  const std::string path = folder.path() + "/store.key";
  ASSERT_TRUE(StoreKeys::Create(path, SystemRandom()).ok());
  absl::StatusOr<StoreKeys> keys = StoreKeys::Load(path);
  ASSERT_TRUE(keys.ok());
  const SecretBytes first = *keys->ForEpoch(1);
  ASSERT_TRUE(keys->Add(2, SystemRandom()).ok());
  EXPECT_EQ(*StoreKeys::Load(path)->ForEpoch(1), first);
  EXPECT_EQ(*StoreKeys::Load(path)->ForEpoch(2), *keys->ForEpoch(2));
  ASSERT_TRUE(keys->EraseBefore(2).ok());
  EXPECT_EQ(StoreKeys::Load(path)->ForEpoch(1), nullptr);
  EXPECT_EQ(*StoreKeys::Load(path)->ForEpoch(2), *keys->ForEpoch(2));
}

}  // namespace
}  // namespace mpckdc
