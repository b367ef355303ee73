// SPDX-License-Identifier: Apache-2.0
//
// Keys under another principal's name, on all engines (epochs_test.cc has a refresh in between).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/store/lmdb.h"
#include "mpc-server/store/postgres.h"
#include "mpc-server/store/record_codec.h"
#include "mpc-server/store/record_format.h"
#include "mpc-server/store/share_store.h"
#include "mpc-server/store/staging.h"
#include "mpc-server/testing/folder.h"
#include "mpc-server/testing/memory_engine.h"
#include "mpc-server/testing/postgres_cluster.h"
#include "mpc-server/testing/records.h"

namespace mpckdc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
constexpr char kOld[] = "alice@EXAMPLE.COM", kNew[] = "alice.smith@EXAMPLE.COM";
constexpr char kMemory[] = "Memory", kLmdb[] = "Lmdb", kPostgres[] = "Postgres";

class RenamedTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { Reopen(); }

  std::shared_ptr<KvEngine> Engine() {
    if (GetParam() == kMemory) return memory_;
    if (GetParam() == kLmdb) return *LmdbEngine::Open(folder_.path(), 64 << 20);
    if (database_.empty()) database_ = SharedPostgresCluster()->NewDatabase();
    return *PostgresEngine::Open(SharedPostgresCluster()->ConnInfo(database_), folder_.path(),
                                 SystemRandom());
  }
  // As after a crash: what was not durable is gone.
  void Reopen() {
    store_.reset();
    auto opened =
        ShareStore::Open(Engine(), {kIdentityForTest, StoreKeysForTest(), &SystemRandom(), 1 << 20});
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
  }

  KeyRecord Committed(const std::string& principal, int32_t enctype = kEnctypeAes256Gcm,
                      KeyClass key_class = KeyClass::kUser) {
    KeyRecord record = RecordForTest(random_, principal, enctype, key_class);
    record.info.gate = Gate::kKdcTrusted;
    const TransactionId txn = NewTxn();
    EXPECT_TRUE(store_->Stage(txn, {record}, kNow).ok());
    EXPECT_TRUE(store_->Commit(txn, kNow).ok());
    return record;
  }
  TransactionId NewTxn() {
    TransactionId txn{};
    random_.Fill(absl::MakeSpan(txn));
    return txn;
  }
  RenamedKey As(const KeyRecord& record) {
    RenamedKey key{{record.info.handle, record.info.principal}, {}, 4, "EXAMPLE.COMalice"};
    random_.Fill(absl::MakeSpan(key.to));
    return key;
  }
  absl::StatusOr<RenamedKeys> Rename(const TransactionId& txn, std::vector<RenamedKey> keys,
                                     const std::string& principal = kNew, uint64_t epoch = 1) {
    return store_->StageRenamed(txn, keys, principal, epoch, kNow);
  }
  void ExpectRefused(const RenamedKey& key, const std::string& principal, absl::StatusCode code,
                     const std::string& text) {
    const auto refused = Rename(NewTxn(), {key}, principal);
    EXPECT_EQ(refused.status().code(), code) << refused.status();
    EXPECT_THAT(refused.status().message(), HasSubstr(text));
    EXPECT_EQ(*store_->Count(KeyState::kStaged), 0u);
  }

  TestFolder folder_;
  std::string database_;
  const std::shared_ptr<MemoryEngine> memory_ = std::make_shared<MemoryEngine>();
  std::unique_ptr<ShareStore> store_;
  SeededRandomForTest random_{11};
};

TEST_P(RenamedTest, ACopyIsTheSameKeyUnderTheOtherName) {
  for (const int32_t enctype : {kEnctypeAes128Gcm, 18}) {
    const KeyRecord old = Committed(kOld, enctype);
    const RenamedKey key = As(old);
    const TransactionId txn = NewTxn();
    const auto staged = Rename(txn, {key});
    ASSERT_TRUE(staged.ok()) << staged.status();
    EXPECT_EQ(staged->staged, 1u);
    EXPECT_THAT(staged->unknown, IsEmpty());
    Reopen();
    EXPECT_TRUE(absl::IsNotFound(store_->Get(key.to).status())) << "staged, it is of no use";
    EXPECT_EQ(*store_->Commit(txn, kNow), 1u);
    Reopen();
    KeyRecord expected = old;
    expected.info.handle = key.to;
    expected.info.principal = kNew;
    expected.info.principal_id = PrincipalIdOf(kNew);
    expected.info.salt_type = 4;
    expected.info.salt = "EXAMPLE.COMalice";
    expected.copied = CopiedFrom{old.info.handle, LineageOf(PrincipalIdOf(kOld)), old.info.handle};
    const auto copy = store_->Get(key.to);
    ASSERT_TRUE(copy.ok()) << copy.status();
    EXPECT_TRUE(SameRecord(*copy, expected));
    EXPECT_TRUE(SameRecord(*store_->Get(old.info.handle), old)) << "until it is retired";
    EXPECT_EQ(store_->Retire({{old.info.handle, kNew}}, kNow)->changed, 0u);
    EXPECT_EQ(store_->Retire({{old.info.handle, kOld}}, kNow)->changed, 1u);
  }
}

TEST_P(RenamedTest, AbortedOrExpiredNothingIsLeft) {
  const KeyRecord old = Committed(kOld);
  const TransactionId aborted = NewTxn(), expired = NewTxn();
  ASSERT_TRUE(Rename(aborted, {As(old)}).ok());
  ASSERT_TRUE(Rename(expired, {As(old)}).ok());
  Reopen();
  EXPECT_EQ(*store_->Abort(aborted), 1u);
  EXPECT_EQ(*store_->ExpireStaged(kNow + absl::Seconds(1)), 1u);
  EXPECT_EQ(*store_->Count(KeyState::kCommitted), 1u);
  EXPECT_TRUE(absl::IsNotFound(store_->Commit(expired, kNow).status()));
}

// A call that is repeated stages the same, and one that fails in its last key stages none.
TEST_P(RenamedTest, AllOfACallOrNothing) {
  const KeyRecord one = Committed(kOld), two = Committed(kOld), bob = Committed("bob@EXAMPLE.COM");
  const TransactionId txn = NewTxn();
  RenamedKey wrong = As(bob);
  wrong.from.principal = kOld;
  EXPECT_TRUE(absl::IsPermissionDenied(Rename(txn, {As(one), As(two), wrong}).status()));
  EXPECT_EQ(*store_->Count(KeyState::kStaged), 0u);
  const std::vector<RenamedKey> keys = {As(one), As(two)};
  ASSERT_TRUE(Rename(txn, keys).ok());
  ASSERT_TRUE(Rename(txn, keys).ok());
  EXPECT_EQ(*store_->Commit(txn, kNow), 2u);
  EXPECT_TRUE(absl::IsFailedPrecondition(Rename(txn, {As(one)}).status()));
  EXPECT_TRUE(absl::IsAlreadyExists(Rename(NewTxn(), keys).status()));
}

TEST_P(RenamedTest, NoKeyGetsOrLosesAPowerfulName) {
  const RenamedKey alice = As(Committed(kOld));
  const auto kDenied = absl::StatusCode::kPermissionDenied;
  for (const char* name : {"krbtgt/EXAMPLE.COM@EXAMPLE.COM", "kadmin/admin@EXAMPLE.COM",
                           "kadmin/changepw@EXAMPLE.COM", "krbtgt/OTHER.ORG@EXAMPLE.COM",
                           "K/M@EXAMPLE.COM"}) {
    ExpectRefused(alice, name, kDenied, "neither given to another name nor taken from one");
  }
  ExpectRefused(alice, "alice@OTHER.ORG", kDenied, "is not of realm EXAMPLE.COM");
  ExpectRefused(alice, "", kDenied, "is not of realm");
  ExpectRefused(alice, kOld, absl::StatusCode::kInvalidArgument, "the new name is the old one");
  ExpectRefused(As(Committed("krbtgt/EXAMPLE.COM@EXAMPLE.COM", kEnctypeAes256Gcm, KeyClass::kTgs)),
                kNew, kDenied, "neither given");
  ExpectRefused(As(Committed("kadmin/admin@EXAMPLE.COM", kEnctypeAes256Gcm, KeyClass::kService)),
                kNew, kDenied, "neither given");
  // Whatever it is called: what seals TGTs stays where it is.
  ExpectRefused(As(Committed("tgs@EXAMPLE.COM", kEnctypeAes256Gcm, KeyClass::kTgs)), kNew, kDenied,
                "seals ticket-granting tickets");
}

TEST_P(RenamedTest, ADeletedKeyIsNotRevived) {
  const KeyRecord old = Committed(kOld);
  EXPECT_EQ(store_->Retire({{old.info.handle, kOld}}, kNow)->changed, 1u);
  ExpectRefused(As(old), kNew, absl::StatusCode::kFailedPrecondition, "was deleted");
  EXPECT_EQ(store_->Restore({{old.info.handle, kOld}})->changed, 1u);
  EXPECT_TRUE(Rename(NewTxn(), {As(old)}).ok());
}

TEST_P(RenamedTest, AnUnknownKeyIsRefused) {
  KeyRecord never = RecordForTest(random_, kOld);
  ExpectRefused(As(never), kNew, absl::StatusCode::kNotFound, "no key");
}

// What the password history names goes along, to be compared and for nothing else; what the servers
// have no more is told.
TEST_P(RenamedTest, KeysOfTheHistoryGoAlong) {
  const KeyRecord full = Committed(kOld), reduced = Committed(kOld),
                  gone = RecordForTest(random_, kOld);
  for (const KeyRecord& key : {full, reduced}) {
    EXPECT_EQ(store_->Retire({{key.info.handle, kOld, true}}, kNow)->changed, 1u);
    if (SameRecord(key, full)) {
      EXPECT_TRUE(store_->Restore({{full.info.handle, kOld}}).ok());
    }
  }
  EXPECT_EQ(store_->CollectRetired(kNow + absl::Seconds(1), 10)->size(), 1u);
  EXPECT_EQ(store_->Retire({{full.info.handle, kOld, true}}, kNow)->changed, 1u);
  ExpectRefused(As(reduced), kNew, absl::StatusCode::kFailedPrecondition,
                "serves the password history alone");
  std::vector<RenamedKey> keys = {As(full), As(reduced), As(gone)};
  for (RenamedKey& key : keys) key.from.for_history = true;
  const TransactionId txn = NewTxn();
  const auto staged = Rename(txn, keys);
  ASSERT_TRUE(staged.ok()) << staged.status();
  EXPECT_EQ(staged->staged, 2u);
  EXPECT_THAT(staged->unknown, ElementsAre(gone.info.handle));
  EXPECT_EQ(*store_->Commit(txn, kNow), 2u);
  for (const RenamedKey& key : {keys[0], keys[1]}) {
    const auto copy = store_->Get(key.to);
    ASSERT_TRUE(copy.ok()) << copy.status();
    EXPECT_EQ(copy->info.key_class, KeyClass::kHistory);
    EXPECT_TRUE(copy->usages.empty());
    EXPECT_EQ(copy->info.principal, kNew);
    EXPECT_EQ(store_->Retire({{key.to, kNew, true}}, kNow)->changed, 1u);
  }
  // They are kept as those that became so by time.
  EXPECT_EQ(store_->CollectRetired(absl::FromUnixSeconds(2'000'000'000), 10)->size(), 3u);
  EXPECT_TRUE(store_->Get(keys[0].to).ok());
  EXPECT_TRUE(store_->Get(keys[1].to).ok());
}

// ATTACK. A key that was deleted, and not for the history, is gone when its time of grace is over.
// Renamed "for the history" before, it would be there for ever, to be compared with guesses.
TEST_P(RenamedTest, ADeletedKeyIsNotKeptForComparisonsForEver) {
  const KeyRecord old = Committed(kOld);
  EXPECT_EQ(store_->Retire({{old.info.handle, kOld}}, kNow)->changed, 1u);
  RenamedKey key = As(old);
  key.from.for_history = true;
  const TransactionId txn = NewTxn();
  const auto staged = Rename(txn, {key});
  EXPECT_TRUE(absl::IsFailedPrecondition(staged.status())) << staged.status();
  (void)store_->Commit(txn, kNow);
  EXPECT_EQ(store_->CollectRetired(kNow + absl::Hours(1000), 10)->size(), 1u);
  EXPECT_TRUE(absl::IsNotFound(store_->Get(old.info.handle).status()));
  EXPECT_FALSE(store_->Get(key.to).ok()) << "the deleted key's base lives on under " << kNew;
}

// ATTACK. What is staged before the key is deleted would be committed after it, and log in again.
TEST_P(RenamedTest, AKeyThatIsDeletedBetweenStageAndCommitIsNotRevived) {
  const KeyRecord old = Committed(kOld);
  const RenamedKey key = As(old);
  const TransactionId txn = NewTxn();
  ASSERT_TRUE(Rename(txn, {key}).ok());
  EXPECT_EQ(store_->Retire({{old.info.handle, kOld}}, kNow)->changed, 1u);
  EXPECT_FALSE(store_->Commit(txn, kNow + absl::Minutes(1)).ok());
  EXPECT_FALSE(store_->Get(key.to).ok()) << "a key of class user, with all its usages";
}

// ATTACK. The same of a key that is gone at once, and another one is put under its handle.
TEST_P(RenamedTest, AnotherKeyUnderTheHandleLetsNoCopyIn) {
  const KeyRecord old = Committed(kOld);
  const auto again = [&] {
    KeyRecord other = RecordForTest(random_, kOld, kEnctypeAes256Gcm);
    other.info.handle = old.info.handle;
    const TransactionId txn = NewTxn();
    EXPECT_TRUE(store_->Stage(txn, {other}, kNow).ok());
    EXPECT_TRUE(store_->Commit(txn, kNow).ok());
  };
  const auto staged = [&](TransactionId* txn) {
    *txn = NewTxn();
    const RenamedKey key = As(old);
    EXPECT_TRUE(Rename(*txn, {key}).ok());
    return key.to;
  };
  const auto expect_none = [&](const TransactionId& txn, const Handle& copy) {
    again();
    EXPECT_FALSE(store_->Commit(txn, kNow).ok());
    EXPECT_TRUE(absl::IsNotFound(store_->Get(copy).status()));
    EXPECT_TRUE(store_->Abort(txn).ok());
  };
  TransactionId txn;
  Handle copy = staged(&txn);
  EXPECT_EQ(store_->DeleteNamed({{old.info.handle, kOld}})->changed, 1u);
  EXPECT_FALSE(store_->Commit(txn, kNow).ok()) << "it is not there";
  expect_none(txn, copy);
  copy = staged(&txn);
  EXPECT_EQ(*store_->Delete({&old.info.handle, 1}), 1u);
  expect_none(txn, copy);
  copy = staged(&txn);
  EXPECT_EQ(store_->Retire({{old.info.handle, kOld}}, kNow)->changed, 1u);
  EXPECT_EQ(store_->CollectRetired(kNow + absl::Hours(1), 10)->size(), 1u);
  expect_none(txn, copy);
  // Others' copies stay.
  const KeyRecord bob = Committed("bob@EXAMPLE.COM");
  const RenamedKey of_bob = As(bob);
  EXPECT_TRUE(Rename(txn = NewTxn(), {of_bob}, "robert@EXAMPLE.COM").ok());
  EXPECT_EQ(*store_->Delete({&old.info.handle, 1}), 1u);
  EXPECT_EQ(*store_->Commit(txn, kNow), 1u);
}

// What is kept for the history goes along while it is kept, and not when that ends before the commit.
TEST_P(RenamedTest, TheEndOfTheHistoryInBetweenIsSeenToo) {
  const KeyRecord old = Committed(kOld);
  EXPECT_EQ(store_->Retire({{old.info.handle, kOld, true}}, kNow)->changed, 1u);
  RenamedKey key = As(old);
  key.from.for_history = true;
  const TransactionId txn = NewTxn();
  ASSERT_TRUE(Rename(txn, {key}).ok());
  EXPECT_EQ(store_->Retire({{old.info.handle, kOld, false}}, kNow)->changed, 1u);
  EXPECT_TRUE(absl::IsFailedPrecondition(store_->Commit(txn, kNow).status()));
  EXPECT_EQ(store_->Retire({{old.info.handle, kOld, true}}, kNow)->changed, 1u);
  EXPECT_EQ(store_->CollectRetired(kNow + absl::Hours(1), 10)->size(), 1u);
  EXPECT_EQ(*store_->Commit(txn, kNow), 1u) << "reduced meanwhile";
}

// ATTACK. The copies are staged at the three servers one after the other, and committed so, and an
// administrator's `policy` comes amid, which does not know the new name. So a key's new gate ends its
// renaming wherever the copy is staged: no server commits one with another gate than the others'.
TEST_P(RenamedTest, AGateThatIsSetInBetweenEndsTheRenaming) {
  const KeyRecord old = Committed(kOld);
  const RenamedKey key = As(old);
  const TransactionId txn = NewTxn();
  ASSERT_TRUE(Rename(txn, {key}).ok());
  ASSERT_TRUE(store_->SetGate(kOld, {&old.info.handle, 1}, Gate::kPkinit).ok());
  EXPECT_FALSE(store_->Commit(txn, kNow).ok());
  EXPECT_TRUE(absl::IsNotFound(store_->Get(key.to).status()));
  EXPECT_TRUE(store_->Abort(txn).ok());
  // Begun anew it has that gate. Others' gates are nothing to it.
  const KeyRecord bob = Committed("bob@EXAMPLE.COM");
  const RenamedKey again = As(old);
  const TransactionId second = NewTxn();
  ASSERT_TRUE(Rename(second, {again}).ok());
  ASSERT_TRUE(store_->SetGate(bob.info.principal, {&bob.info.handle, 1}, Gate::kPkinit).ok());
  EXPECT_EQ(*store_->Commit(second, kNow), 1u);
  EXPECT_EQ(store_->Get(again.to)->info.gate, Gate::kPkinit);
}

// ATTACK. A copy that the version before has staged has a name that does not say of which key it is one,
// so nothing that is done to the key finds it: it would come with the gate of then, of which the
// administrator was told that it is gone.
TEST_P(RenamedTest, ACopyThatTheVersionBeforeHasStagedBringsNoOldGate) {
  const KeyRecord old = Committed(kOld);
  const RenamedKey key = As(old);
  const TransactionId txn = NewTxn();
  ASSERT_TRUE(Rename(txn, {key}).ok());
  store_.reset();
  ASSERT_TRUE(Engine()->Write("as the version before", [&](KvTxn& write) -> absl::Status {
    const std::string before = StagedKey(txn, key.to);
    const std::string name = absl::StrCat(before, AsText(old.info.handle));
    const auto sealed = write.Get(record_format::kStaged, name);
    if (!sealed.ok()) return sealed.status();
    const std::string copy(AsText(*sealed));
    const absl::Status gone = write.Delete(record_format::kStaged, name);
    return gone.ok() ? write.Put(record_format::kStaged, before, copy) : gone;
  }).ok());
  Reopen();
  ASSERT_TRUE(store_->SetGate(kOld, {&old.info.handle, 1}, Gate::kPkinit).ok());
  EXPECT_FALSE(store_->Commit(txn, kNow).ok());
  EXPECT_TRUE(absl::IsNotFound(store_->Get(key.to).status())) << "a key that logs in without card";
  EXPECT_TRUE(store_->Abort(txn).ok());
}

// A key of one handle is staged once: as a copy of another key, or as none.
TEST_P(RenamedTest, WhatIsStagedAsACopyIsNotStagedAsAnotherKey) {
  const KeyRecord old = Committed(kOld), other = Committed(kOld);
  const RenamedKey key = As(old);
  const TransactionId txn = NewTxn();
  ASSERT_TRUE(Rename(txn, {key}).ok());
  EXPECT_EQ(Rename(txn, {key})->staged, 1u) << "asked again";
  EXPECT_EQ(*store_->Count(KeyState::kStaged), 1u);
  KeyRecord record = RecordForTest(random_, kNew);
  record.info.handle = key.to;
  EXPECT_TRUE(absl::IsAlreadyExists(store_->Stage(txn, {record}, kNow)));
  RenamedKey of_other = As(other);
  of_other.to = key.to;
  EXPECT_TRUE(absl::IsAlreadyExists(Rename(txn, {of_other}).status()));
  EXPECT_EQ(store_->GetStaged(txn, key.to)->copied->handle, old.info.handle);
  EXPECT_EQ(*store_->Commit(txn, kNow), 1u);
}

// ATTACK. Each deletion opens all that is staged, while nothing else is written: no replay entry, no
// mark of nonces, so no login. Whoever may stage and delete stops the realm so for a moment each time.
// So it goes by the names of what is staged, and a damaged record is none of its business.
TEST_P(RenamedTest, ADeletionOpensNothingThatIsStaged) {
  const KeyRecord old = Committed(kOld), staged = RecordForTest(random_, "bob@EXAMPLE.COM");
  const TransactionId txn = NewTxn(), copies = NewTxn();
  ASSERT_TRUE(store_->Stage(txn, {staged}, kNow).ok());
  ASSERT_TRUE(Rename(copies, {As(old)}).ok());
  store_.reset();
  const std::shared_ptr<KvEngine> engine = Engine();
  size_t damaged = 0;
  ASSERT_TRUE(engine->Write("damage", [&](KvTxn& write) -> absl::Status {
    std::vector<std::string> keys;
    absl::Status done = write.ScanNames(record_format::kStaged, "", [&](absl::string_view key) {
      keys.emplace_back(key);
      return true;
    });
    for (const std::string& key : keys) done.Update(write.Put(record_format::kStaged, key, "x"));
    damaged = keys.size();
    return done;
  }).ok());
  EXPECT_EQ(damaged, 2u);
  auto opened =
      ShareStore::Open(engine, {kIdentityForTest, StoreKeysForTest(), &SystemRandom(), 1 << 20});
  ASSERT_TRUE(opened.ok()) << opened.status();
  store_ = *std::move(opened);
  EXPECT_EQ(store_->DeleteNamed({{old.info.handle, kOld}})->changed, 1u);
  EXPECT_EQ(*store_->Count(KeyState::kStaged), 1u) << "the copy goes, and what is none stays";
}

// Whose the first of its copies was each says, over however many names, and after a restart.
TEST_P(RenamedTest, ACopyOfACopyKnowsTheFirst) {
  const KeyRecord first = Committed(kOld);
  RenamedKey key = As(first);
  std::string to = kNew;
  for (int i = 0; i < 3; ++i) {
    const TransactionId txn = NewTxn();
    const auto staged = Rename(txn, {key}, to);
    ASSERT_TRUE(staged.ok()) << staged.status();
    EXPECT_THAT(staged->lineages, ElementsAre(LineageOf(PrincipalIdOf(kOld))));
    EXPECT_EQ(*store_->Commit(txn, kNow), 1u);
    Reopen();
    const auto copy = store_->Get(key.to);
    ASSERT_TRUE(copy.ok()) << copy.status();
    EXPECT_EQ(copy->lineage(), LineageOf(PrincipalIdOf(kOld)));
    EXPECT_EQ(copy->copied->handle, key.from.handle);
    EXPECT_EQ(copy->replay_handle(), first.info.handle);
    key = As(*copy);
    to = i == 0 ? kOld : absl::StrCat("alice", i, "@EXAMPLE.COM");
  }
  EXPECT_EQ(first.guessed(), PrincipalIdOf(kOld)) << "whoever gets that name shares nothing with them";
}

// What the version before wrote of a copy, in the place of the lineage, is the id of the first owner
// himself. Were it taken for a lineage, who gets his name next would share her guesses and comparisons,
// and her pre-auths would be spent for each copy apart.
TEST(RenamedRecordTest, ACopyOfTheVersionBeforeHasTheLineageOfItsFirstOwner) {
  SeededRandomForTest random(5);
  const KeyRecord record = RecordForTest(random, kNew);
  const Handle from{9, 8, 7};
  const SecretBytes plain = EncodeKeyRecord(record);
  std::string bytes(AsText(plain));
  bytes[12] = static_cast<char>(bytes[12] | record_format::kCopiedBit);  // the class
  bytes.insert(record_format::kKeyFixedBytes + record.info.principal.size() + record.info.salt.size(),
               absl::StrCat(AsText(from), AsText(PrincipalIdOf(kOld))));
  const auto read = DecodeKeyRecord(record.info.handle, AsBytes(bytes));
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_TRUE(read->copied.has_value());
  EXPECT_EQ(read->copied->handle, from);
  EXPECT_EQ(read->lineage(), LineageOf(PrincipalIdOf(kOld)));
  EXPECT_NE(read->guessed(), PrincipalIdOf(kOld)) << "whoever has that name now";
  // And it stays so when it is written by this version.
  const auto again = DecodeKeyRecord(record.info.handle, EncodeKeyRecord(*read));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(SameRecord(*again, *read));
}

TEST_P(RenamedTest, AnotherEpochIsRefused) {
  const KeyRecord old = Committed(kOld);
  const auto refused = Rename(NewTxn(), {As(old)}, kNew, 2);
  EXPECT_TRUE(absl::IsAborted(refused.status())) << refused.status();
  EXPECT_THAT(refused.status().message(), HasSubstr("this server is in epoch 1"));
}

INSTANTIATE_TEST_SUITE_P(Engines, RenamedTest, ::testing::Values(kMemory, kLmdb, kPostgres),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace mpckdc
