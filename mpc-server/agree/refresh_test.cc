// SPDX-License-Identifier: Apache-2.0
//
// Three engines refresh their shares between batches: logins go on with the same keys, and whatever
// is lost on the way the three end in one epoch.
#include <sodium.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "absl/synchronization/notification.h"
#include "mpc-server/testing/jobs.h"
#include "mpc-server/testing/memory_image.h"
#include "mpc-server/testing/rewriting.h"

namespace mpckdc {
namespace {

class RefreshTest : public ::testing::Test {
 protected:
  // Asks the three, and waits.
  PerParty<absl::Status> Refresh(uint64_t from, absl::Duration limit = absl::Seconds(20)) {
    PerParty<absl::Notification> done;
    PerParty<absl::Status> status;
    for (int p = 0; p < kParties; ++p) {
      realm_.engine(p).Refresh(from, absl::Now() + limit, [&, p](absl::Status s) {
        status[p] = std::move(s);
        done[p].Notify();
      });
    }
    for (auto& each : done) each.WaitForNotification();
    return status;
  }
  void ExpectRefreshed(uint64_t from) {
    for (const absl::Status& status : Refresh(from)) EXPECT_TRUE(status.ok()) << status;
    for (int p = 0; p < kParties; ++p) {
      EXPECT_EQ(realm_.store(p).Epoch().epoch, from + 1);
      EXPECT_EQ(realm_.store(p).Epoch().began_by, realm_.store(0).Epoch().began_by);
    }
  }
  void Rewrite(int p) {
    ASSERT_TRUE(RewriteAll(realm_.store(p)).ok());
    ASSERT_TRUE(realm_.store(p).RewriteStaged().ok());
    ASSERT_TRUE(realm_.store(p).EndRefresh().ok());
  }
  KeyRecord Record(int p, const PlainKey& key) { return *realm_.store(p).Get(key.info.handle); }
  void ExpectSameKey(const PlainKey& key) {
    const auto joined = JoinKey({Record(0, key), Record(1, key), Record(2, key)});
    ASSERT_TRUE(joined.ok()) << joined.status();
    EXPECT_EQ(joined->base, key.base);
  }

  Realm realm_;
};

TEST_F(RefreshTest, KeysStaySharesChangeLoginsGoOn) {
  const PlainKey stock = realm_.AddKey("stock@EXAMPLE.COM", KeyClass::kUser, kEnctypeAes256Sha1);
  const std::string ticket = realm_.Tgt("from before");
  for (uint64_t epoch = 1; epoch < 4; ++epoch) {
    const PerParty<KeyRecord> before = {Record(0, realm_.alice), Record(1, realm_.alice),
                                        Record(2, realm_.alice)};
    ExpectRefreshed(epoch);
    for (int p = 0; p < kParties; ++p) {
      EXPECT_FALSE(SameRecord(before[p], Record(p, realm_.alice)));
    }
    // On records of both epochs: one server has written all, one some, one none.
    Rewrite(0);
    ASSERT_TRUE(realm_.store(1).Rewrite({&realm_.alice.info.handle, 1}).ok());
    EXPECT_VERDICT(realm_.Run(realm_.Login(realm_.alice)), Verdict::kOk);
    EXPECT_VERDICT(realm_.Run(realm_.Login(realm_.bob)), Verdict::kOk);
    EXPECT_VERDICT(realm_.Run(realm_.Login(WrongPassword(realm_.bob))), Verdict::kBadTag);
    EXPECT_VERDICT(realm_.Run(realm_.OpenTicket(ticket)), Verdict::kOk);
    EXPECT_VERDICT(
        realm_.Run(realm_.OpenPreauth(stock, SealPreauth(stock, absl::Now(), realm_.random()))),
        Verdict::kOk);
    const auto verified = realm_.Verify({realm_.alice.info.handle, stock.info.handle});
    ASSERT_TRUE(verified.ok()) << verified.status();
    for (const VerifyResult& result : *verified) EXPECT_TRUE(result.consistent) << result.detail;
    Rewrite(1);
    Rewrite(2);
    ExpectSameKey(realm_.alice);
    ExpectSameKey(stock);
    ExpectSameKey(realm_.tgt);
  }
}

TEST_F(RefreshTest, ItTakesAllThree) {
  absl::Notification done;
  absl::Status status;
  realm_.engine(0).Refresh(1, absl::Now() + absl::Seconds(2), [&](absl::Status s) {
    status = std::move(s);
    done.Notify();
  });
  EXPECT_VERDICT(realm_.Run(realm_.Login(realm_.alice)), Verdict::kOk);
  done.WaitForNotification();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(realm_.store(0).Epoch().epoch, 1u);
}

// A server that is asked for what it has done, or for what it cannot do.
TEST_F(RefreshTest, AnOldRequestIsDoneAndAWrongOneRefused) {
  ExpectRefreshed(1);
  for (const absl::Status& status : Refresh(1)) EXPECT_TRUE(status.ok());
  for (const absl::Status& status : Refresh(7)) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status));
    EXPECT_THAT(status.ToString(), ::testing::HasSubstr("this server is in epoch 2"));
  }
  EXPECT_EQ(realm_.store(1).Epoch().epoch, 2u);
}

// The next waits until all three have written their records.
TEST_F(RefreshTest, TheNextWaitsForTheLast) {
  ExpectRefreshed(1);
  Rewrite(0);
  Rewrite(1);
  std::thread later([&] {
    absl::SleepFor(absl::Seconds(1));
    Rewrite(2);
  });
  ExpectRefreshed(2);
  later.join();
  ExpectSameKey(realm_.bob);
}

// Its key file cannot be written, say: nobody enters, whoever asked hears why, logins go on.
TEST_F(RefreshTest, AServerThatCannotPrepareStopsTheRefreshAndNothingElse) {
  realm_.store(2).FailWrites(absl::ResourceExhaustedError("disk full: the test's"));
  PerParty<absl::Status> status;
  std::thread asking([&] { status = Refresh(1, absl::Seconds(4)); });
  EXPECT_TRUE(Eventually([&] { return !realm_.observer(2).Lost().empty(); }));
  realm_.store(2).FailWrites(absl::OkStatus());
  EXPECT_TRUE(Eventually([&] { return realm_.Run(realm_.Login(realm_.alice)).judgement.ok(); }));
  asking.join();
  EXPECT_THAT(status[2].ToString(), ::testing::HasSubstr("disk full: the test's"));
  EXPECT_TRUE(absl::IsUnavailable(status[0])) << status[0];
  for (int p = 0; p < kParties; ++p) EXPECT_EQ(realm_.store(p).Epoch().epoch, 1u);
  ExpectRefreshed(1);
}

// One has told the others that it prepared and did not hear them: they are ahead, and it follows.
TEST_F(RefreshTest, WhoWasCutOffFollowsInTheNextSession) {
  for (int lost = 0; lost < kParties; ++lost) {
    const uint64_t epoch = realm_.store(0).Epoch().epoch;
    // In place of what the previous party tells it comes something else.
    std::atomic<int> prepared_seen{0};
    realm_.hub().SetInterceptor([&, lost](MemoryRing::Intercepted& m) {
      const bool prepared =
          m.type == FrameType::kAgreement && m.payload.size() == 25 && m.payload[0] == 3;
      if (prepared && m.from == PrevParty(lost) && m.to == lost && prepared_seen++ == 0) {
        m.payload[5] ^= 1;
      }
    });
    realm_.hub().CloseCurrent();  // connections made from now on have it
    ASSERT_TRUE(realm_.WaitConnected());
    ExpectRefreshed(epoch);
    EXPECT_GT(prepared_seen.load(), 0);
    realm_.hub().SetInterceptor(nullptr);
    EXPECT_TRUE(Eventually([&] { return realm_.Run(realm_.Login(realm_.alice)).judgement.ok(); }));
    for (int p = 0; p < kParties; ++p) Rewrite(p);
    ExpectSameKey(realm_.alice);
  }
}

TEST_F(RefreshTest, RestartsInBetween) {
  ExpectRefreshed(1);
  realm_.RestartAll();
  EXPECT_EQ(realm_.store(1).Epoch().epoch, 2u);
  EXPECT_VERDICT(realm_.Run(realm_.Login(realm_.alice)), Verdict::kOk);
}

// Two thefts in different epochs: one of P0's shares before the refresh, one of P1's shares and
// memory long after its end, when the seed and the old epoch's key are erased.
TEST_F(RefreshTest, AMemoryImageOfALaterEpochDoesNotUndoTheRefresh) {
  const KeyRecord of_p0_before = Record(0, realm_.alice);
  ExpectRefreshed(1);
  for (int p = 0; p < kParties; ++p) Rewrite(p);
  for (int i = 0; i < 3; ++i) {
    EXPECT_VERDICT(realm_.Run(realm_.Login(realm_.bob)), Verdict::kOk);  // life goes on
  }
  const KeyRecord of_p1_after = Record(1, realm_.alice);
  int blocks = 0, as_seed = 0, as_session_key = 0;
  // P1's shares of after, taken back by a seed, beside P0's of before.
  const auto gives_the_key = [&](const RefreshSeed& seed) {
    KeyRecord p1 = of_p1_after;
    RefreshRecord(seed, 2, 1, p1);
    KeyRecord p2 = p1;
    std::vector<Block> a0_a2, a2;
    KeyRecord p0 = of_p0_before;
    ForEachBlock(p0, [&](SharedBlock& block) { a2.push_back(XorBlocks(block.x, block.a)); });
    size_t k = 0;
    ForEachBlock(p2, [&](SharedBlock& block) {
      block.x = XorBlocks(a2[k], block.a);
      block.a = a2[k++];
    });
    const auto joined = JoinKey({p0, p1, p2});
    return joined.ok() && joined->base == realm_.alice.base;
  };
  ForEachSecretBlock([&](const uint8_t* bytes) {
    ++blocks;
    RefreshSeed seed;
    std::memcpy(seed.Get().data(), bytes, seed.Get().size());
    if (std::count(bytes, bytes + 32, 0) > 8) return;  // no key
    as_seed += gives_the_key(seed);
    crypto_kdf_derive_from_key(seed.Get().data(), seed.Get().size(), 1, "mpckdc-s", bytes);
    as_session_key += gives_the_key(seed);
  });
  EXPECT_GT(blocks, 100);
  EXPECT_EQ(as_seed, 0) << "the erased seed is in memory";
  EXPECT_EQ(as_session_key, 0) << "a key that the seed follows from is in memory";
}

// P0's database commits the new epoch and its answer is lost, with what P0 tells the others: one
// network that fails. Then all three say the old epoch, and forget the way to the new one.
TEST_F(RefreshTest, AServerWhoseDatabasesAnswerIsLostKeepsItsKeys) {
  std::atomic<int> cut{0};
  realm_.hub().SetInterceptor([&](MemoryRing::Intercepted& m) {
    const bool prepared =
        m.type == FrameType::kAgreement && m.payload.size() == 25 && m.payload[0] == 3;
    if (prepared && m.from == 0 && cut++ < 2) m.payload[5] ^= 1;
  });
  realm_.hub().CloseCurrent();
  ASSERT_TRUE(realm_.WaitConnected());
  realm_.store(0).engine().LoseAnswer("enter an epoch", absl::UnavailableError("not known"));
  std::thread asking([&] { Refresh(1, absl::Seconds(4)); });
  EXPECT_TRUE(Eventually([&] { return cut.load() == 2; }));
  asking.join();
  realm_.hub().SetInterceptor(nullptr);
  EXPECT_TRUE(Eventually([&] { return realm_.Run(realm_.Login(realm_.alice)).judgement.ok(); }));
  // What its next start finds.
  namespace rf = record_format;
  const MemoryEngine::State disk = realm_.store(0).engine().Snapshot();
  const MemoryEngine::Table& meta = *disk[static_cast<size_t>(rf::kMeta)];
  const auto identity = Sealer::ReadIdentity(AsBytes(meta.at(rf::kNameIdentity)));
  ASSERT_TRUE(identity.ok());
  const bool has_seed = meta.contains(rf::kNameRefresh);
  for (const auto& [place, record] : *disk[static_cast<size_t>(rf::kRecords)]) {
    if (record.size() < 32) continue;
    const uint64_t epoch = Sealer::EpochOf(AsBytes(record));
    EXPECT_TRUE(epoch == identity->epoch || has_seed)
        << "the store says epoch " << identity->epoch << ", has a record of " << epoch
        << " and no seed";
  }
}

// Under load nothing fails, and nothing is judged wrongly.
TEST_F(RefreshTest, LoginsAcrossManyRefreshes) {
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> tried{0};
  std::thread refreshing([&] {
    for (uint64_t epoch = 1; epoch < 6; ++epoch) {
      absl::SleepFor(absl::Milliseconds(100));
      // However slow the logins are (a sanitizer), some are between two refreshes.
      while (tried < 2 * epoch) absl::SleepFor(absl::Milliseconds(5));
      ExpectRefreshed(epoch);
      for (int p = 0; p < kParties; ++p) Rewrite(p);
    }
    stop = true;
  });
  int good = 0, bad = 0;
  while (!stop) {
    const JobResult right = realm_.Run(realm_.Login(realm_.alice));
    EXPECT_VERDICT(right, Verdict::kOk);
    good += right.judgement.ok();
    const JobResult wrong = realm_.Run(realm_.Login(WrongPassword(realm_.alice)));
    EXPECT_VERDICT(wrong, Verdict::kBadTag);
    bad += wrong.judgement.verdict == Verdict::kBadTag;
    ++tried;
  }
  refreshing.join();
  EXPECT_GT(good, 5);
  EXPECT_GT(bad, 5);
}

}  // namespace
}  // namespace mpckdc
