// SPDX-License-Identifier: Apache-2.0
//
// A store that does not know in which epoch it is: its database did not say whether a change was made, or
// another process made it.
#include <utility>

#include "mpc-server/testing/epochs_fixture.h"

namespace mpckdc {
namespace {

using EpochsUnsureTest = EpochsTest;

// The store has entered and was told that it is not known (postgres_txn.cc: the answer to COMMIT was
// lost, or its standby may not have it). It looks again, says the new epoch, and the others follow.
TEST_F(EpochsUnsureTest, AnEntryThatIsNotKnownOfLosesNoKey) {
  std::array<KeyRecord, 3> before = Enrol();
  const std::vector<Block> keys = Keys(before);
  Prepare(4);
  engines_[0]->LoseAnswer("enter an epoch", absl::UnavailableError("it is not known"));
  EXPECT_FALSE(stores_[0]->EnterEpoch(kNow).ok());
  EXPECT_EQ(stores_[0]->Epoch().epoch, 2u);
  for (int p = 1; p < 3; ++p) ASSERT_TRUE(stores_[p]->EnterEpoch(kNow).ok());
  std::array<KeyRecord, 3> now = Get(before[0].info.handle);
  EXPECT_TRUE(Keys(now) == keys);
  for (int p = 0; p < 3; ++p) ASSERT_TRUE(Reopen(p).ok());
  now = Get(before[0].info.handle);
  EXPECT_TRUE(Keys(now) == keys);
}

// Who believes itself in the old epoch changes nothing of the refresh that has happened.
TEST_F(EpochsUnsureTest, WhoHasNotLookedAgainForgetsNothing) {
  std::array<KeyRecord, 3> before = Enrol();
  const std::vector<Block> keys = Keys(before);
  Prepare(4);
  // Another process of the party enters.
  auto other = ShareStore::Open(
      engines_[0], {{"EXAMPLE.COM", 0, 7},
                    *StoreKeys::Parse(AsBytes(files_[0]), "the other server's key file"),
                    &SystemRandom()});
  ASSERT_TRUE(other.ok()) << other.status();
  ASSERT_TRUE((*other)->EnterEpoch(kNow).ok());
  EXPECT_EQ(stores_[0]->Epoch().epoch, 1u);
  EXPECT_TRUE(absl::IsUnavailable(stores_[0]->AbandonEpoch()));
  EXPECT_TRUE(absl::IsUnavailable(stores_[0]->PrepareEpoch(Id(5), Seed(5))));
  EXPECT_TRUE(absl::IsUnavailable(stores_[0]->EnterEpoch(kNow)));
  EXPECT_EQ(stores_[0]->Epoch().epoch, 2u);
  for (int p = 1; p < 3; ++p) ASSERT_TRUE(stores_[p]->EnterEpoch(kNow).ok());
  std::array<KeyRecord, 3> now = Get(before[0].info.handle);
  EXPECT_TRUE(Keys(now) == keys);
}

// Two servers of each party over one database (deploy/postgresql.md), one key file each with the
// same key at first. Each triple refreshes by itself when its day is over.
TEST_F(EpochsUnsureTest, TwoTriplesOverTheSameDatabasesLoseNoKey) {
  std::array<KeyRecord, 3> before = Enrol();
  const std::vector<Block> keys = Keys(before);
  std::array<std::unique_ptr<ShareStore>, 3> others;
  for (int p = 0; p < 3; ++p) {
    auto opened = ShareStore::Open(
        engines_[p], {{"EXAMPLE.COM", p, 7},
                      *StoreKeys::Parse(AsBytes(files_[p]), "the other server's key file"),
                      &SystemRandom()});
    ASSERT_TRUE(opened.ok()) << opened.status();
    others[p] = *std::move(opened);
  }
  Prepare(4);
  Enter();
  for (auto& other : others) {
    // Its server says epoch 1, and so do the two others of its triple.
    if (other->Epoch().epoch == 1u) other->PrepareEpoch(Id(5), Seed(5)).IgnoreError();
  }
  for (int p = 0; p < 3; ++p) {
    const auto done = mpckdc::RewriteAll(*stores_[p]);
    ASSERT_TRUE(done.ok()) << done.status();
    EXPECT_EQ(done->damaged, 0u);
    ASSERT_TRUE(stores_[p]->EndRefresh().ok());
  }
  std::array<KeyRecord, 3> now = Get(before[0].info.handle);
  EXPECT_TRUE(Keys(now) == keys);
}

// An empty store that joined, and was told that it is not known, goes on without a restart.
TEST_F(EpochsUnsureTest, AJoinThatIsNotKnownOfIsRepeated) {
  ASSERT_TRUE(stores_[0]->PrepareJoin(Id(4), 2).ok());
  engines_[0]->LoseAnswer("enter an epoch", absl::UnavailableError("it is not known"));
  EXPECT_FALSE(stores_[0]->EnterEpoch(kNow).ok());
  const absl::Status again = stores_[0]->EnterEpoch(kNow);
  EXPECT_TRUE(again.ok() || stores_[0]->Epoch().epoch == 2u) << again;
}

// Calls something once, after a read has begun.
class InterruptedEngine : public MemoryEngine {
 public:
  absl::StatusOr<std::unique_ptr<const KvTxn>> BeginRead() const override {
    auto txn = MemoryEngine::BeginRead();
    if (between) std::exchange(between, nullptr)();
    return txn;
  }
  mutable std::function<void()> between;
};

// A session begins, which looks at the store anew, while an administrator makes the realm: what was
// read before must not have the server say that there is none.
TEST(ShareStoreEpochs, ARealmThatIsMadeWhileTheStoreIsReadStaysOne) {
  const auto engine = std::make_shared<InterruptedEngine>();
  const auto store = *ShareStore::Open(engine, {kIdentityForTest, StoreKeysForTest(), &SystemRandom()});
  engine->between = [&] { EXPECT_TRUE(store->MarkInitialised().ok()); };
  ASSERT_TRUE(store->ReloadEpoch().ok());
  ASSERT_FALSE(engine->between) << "it was called";
  EXPECT_TRUE(store->Meta().initialised);
}

}  // namespace
}  // namespace mpckdc
