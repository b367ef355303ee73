// SPDX-License-Identifier: Apache-2.0
//
// Two triples of engines on three stores: what is enrolled, spent or refreshed through one holds
// for the other, whoever is down.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "mpc-server/agree/epoch_duties.h"
#include "mpc-server/agree/quarantine.h"
#include "mpc-server/judge/budget.h"
#include "mpc-server/key/nonce.h"
#include "mpc-server/testing/jobs.h"
#include "mpc-server/testing/rewriting.h"

namespace mpckdc {
namespace {

class TriplesTest : public ::testing::Test {
 protected:
  TriplesTest()
      : stores_{std::make_shared<MemoryEngine>(), std::make_shared<MemoryEngine>(),
                std::make_shared<MemoryEngine>()},
        first_(stores_),
        second_(first_, stores_, 1) {
    // KDCs are told apart by name; its connections are two.
    second_.kdc().name = first_.kdc().name;
    NoteAll();
    first_.StartAll();
    second_.StartAll();
    EXPECT_TRUE(first_.WaitConnected() && second_.WaitConnected());
  }

  void NoteAll(absl::Time now = absl::Now()) {
    for (Realm* realm : {&first_, &second_}) {
      for (int p = 0; p < kParties; ++p) EXPECT_TRUE(realm->store(p).NoteFellow(now).ok());
    }
  }

  static PerParty<absl::Status> Refresh(Realm& realm, absl::Duration limit = absl::Seconds(20)) {
    PerParty<absl::Notification> done;
    PerParty<absl::Status> status;
    const uint64_t from = realm.store(0).Epoch().epoch;
    for (int p = 0; p < kParties; ++p) {
      realm.engine(p).Refresh(from, absl::Now() + limit, [&, p](absl::Status s) {
        status[p] = std::move(s);
        done[p].Notify();
      });
    }
    for (auto& each : done) each.WaitForNotification();
    return status;
  }
  static void ExpectRefreshed(Realm& realm) {
    for (const absl::Status& status : Refresh(realm)) EXPECT_TRUE(status.ok()) << status;
  }
  // What one machine of each party does after a refresh.
  static void Finish(Realm& realm) {
    for (int p = 0; p < kParties; ++p) {
      ASSERT_TRUE(RewriteAll(realm.store(p)).ok());
      ASSERT_TRUE(realm.store(p).RewriteStaged().ok());
      const absl::Status ended = realm.store(p).EndRefresh();
      ASSERT_TRUE(ended.ok()) << ended;
    }
  }
  static bool LogsIn(Realm& realm, const PlainKey& key) {
    return Eventually([&] {
      const JobResult result = realm.Run(realm.Login(key));
      EXPECT_NE(result.judgement.verdict, Verdict::kBadTag);
      EXPECT_NE(result.judgement.verdict, Verdict::kInconsistent);
      return result.judgement.ok();
    });
  }
  static uint64_t EpochOf(Realm& realm, int p) { return realm.store(p).Epoch().epoch; }

  Realm::SharedStores stores_;
  Realm first_, second_;
};

TEST_F(TriplesTest, AKeyOfOneIsTheOthersAndNoncesDiffer) {
  const PlainKey carol = first_.AddKey("carol@EXAMPLE.COM", KeyClass::kUser, kEnctypeAes128Gcm);
  uint16_t cluster = 7;
  for (Realm* realm : {&first_, &second_}) {
    const JobResult result = realm->Run(realm->Login(carol));
    EXPECT_VERDICT(result, Verdict::kOk);
    for (const auto& seal : result.seals) {
      EXPECT_EQ(SplitNonce(GcmOf(seal).nonce).cluster, cluster);
    }
    ++cluster;
  }
}

TEST_F(TriplesTest, APreauthIsSpentForBoth) {
  const std::string preauth = first_.Preauth(first_.alice);
  EXPECT_VERDICT(first_.Run(first_.Login(first_.alice, preauth)), Verdict::kOk);
  // The same KDC lost the answer and asks the other triple; another KDC has no business with it.
  EXPECT_VERDICT(second_.Run(second_.Login(second_.alice, preauth)), Verdict::kOk);
  second_.kdc().name = "kdc2";
  ExpectRefused(second_.Run(second_.Login(second_.alice, preauth)), Verdict::kReplay,
                "from another KDC");
}

TEST_F(TriplesTest, OneRefreshesTheOtherFollows) {
  absl::Notification stop;
  int good = 0, later = 0;
  std::thread logins([&] {
    while (!stop.HasBeenNotified()) {
      const JobResult result = second_.Run(second_.Login(second_.bob));
      const Verdict verdict = result.judgement.verdict;
      EXPECT_TRUE(verdict == Verdict::kOk || verdict == Verdict::kUnavailable) << result;
      verdict == Verdict::kOk ? ++good : ++later;
    }
  });
  for (uint64_t epoch = 1; epoch < 4; ++epoch) {
    ExpectRefreshed(first_);
    EXPECT_TRUE(LogsIn(first_, first_.alice));
    EXPECT_TRUE(Eventually([&] { return EpochOf(second_, 2) == epoch + 1; }));
    EXPECT_TRUE(LogsIn(second_, second_.alice));
    EXPECT_VERDICT(first_.Run(first_.Login(WrongPassword(first_.bob))), Verdict::kBadTag);
    Finish(first_);
    for (int p = 0; p < kParties; ++p) {
      EXPECT_TRUE(second_.store(p).Look().ok());
      EXPECT_FALSE(second_.store(p).Epoch().rewriting);
    }
    EXPECT_TRUE(LogsIn(second_, second_.alice));
  }
  stop.Notify();
  logins.join();
  EXPECT_GT(good, 3);
  EXPECT_EQ(later, 0) << "jobs that waited were lost in a change of sessions";
}

// Nobody asks for anything: the machines find by themselves what another one did.
TEST_F(TriplesTest, AnIdleTripleFollowsToo) {
  ExpectRefreshed(first_);
  for (int p = 0; p < kParties; ++p) second_.engine(p).Look();
  EXPECT_TRUE(Eventually([&] { return EpochOf(second_, 1) == 2; }));
}

TEST_F(TriplesTest, AnotherTripleTakesOverFromOneThatIsDown) {
  first_.StopAll();
  ExpectRefreshed(second_);
  EXPECT_EQ(second_.store(1).Epoch().steward, 1);
  EXPECT_TRUE(LogsIn(second_, second_.alice));
  for (int p = 0; p < kParties; ++p) ASSERT_TRUE(first_.store(p).Look().ok());  // takes the new key
  Finish(second_);
  first_.StartAll();
  ASSERT_TRUE(first_.WaitConnected());
  EXPECT_TRUE(LogsIn(first_, first_.alice));
  ExpectRefreshed(first_);  // and takes it back
  EXPECT_EQ(first_.store(2).Epoch().steward, 0);
  EXPECT_TRUE(LogsIn(second_, second_.bob));
}

// Both at once, again and again: some fail, none tears the stores apart.
TEST_F(TriplesTest, TwoThatRefreshAtOnceEndInOneEpoch) {
  for (int round = 0; round < 4; ++round) {
    std::thread other([&] { Refresh(second_, absl::Seconds(3)); });
    Refresh(first_, absl::Seconds(3));
    other.join();
    EXPECT_TRUE(LogsIn(first_, first_.alice));
    EXPECT_TRUE(LogsIn(second_, second_.bob));
    for (int p = 0; p < kParties; ++p) {
      for (Realm* realm : {&first_, &second_}) EXPECT_TRUE(realm->store(p).Look().ok());
      EXPECT_EQ(EpochOf(first_, p), EpochOf(second_, 0));
    }
    if (first_.store(0).Epoch().rewriting) Finish(first_);
    for (int p = 0; p < kParties; ++p) EXPECT_TRUE(second_.store(p).Look().ok());
  }
  EXPECT_GT(EpochOf(first_, 0), 1u);
}

// A triple that has prepared and not entered yet may have told the others so: no session of another
// triple forgets that for it, and after another took over it does not enter.
TEST_F(TriplesTest, WhatOneHasPreparedTheOtherLeavesAlone) {
  const RefreshId id{9};
  const RefreshSeed seed;
  ASSERT_TRUE(first_.store(0).PrepareEpoch(id, seed).ok());
  second_.RestartAll();
  EXPECT_EQ(second_.store(0).Epoch().prepared, id);
  EXPECT_TRUE(absl::IsUnavailable(second_.store(0).AbandonEpoch()));
  EXPECT_TRUE(absl::IsUnavailable(second_.store(0).EnterEpoch(absl::Now())));
  ASSERT_TRUE(second_.store(0).TakeOver().ok());
  EXPECT_TRUE(absl::IsUnavailable(first_.store(0).EnterEpoch(absl::Now())));
  EXPECT_TRUE(absl::IsUnavailable(first_.store(0).PrepareEpoch(id, seed)));
  EXPECT_TRUE(second_.store(0).AbandonEpoch().ok());
}

// One party has entered, and its machine of the triple that led is gone with all of that triple.
TEST_F(TriplesTest, AnyTripleFollowsWhereAnotherPartyHasEntered) {
  first_.StopAll();
  second_.StopAll();
  const RefreshId id{9};
  RefreshSeed seed;
  seed.Get()[3] = 1;
  for (int p = 0; p < kParties; ++p) ASSERT_TRUE(first_.store(p).PrepareEpoch(id, seed).ok());
  ASSERT_TRUE(first_.store(1).EnterEpoch(absl::Now()).ok());
  second_.StartAll();
  ASSERT_TRUE(second_.WaitConnected());
  for (int p = 0; p < kParties; ++p) EXPECT_EQ(EpochOf(second_, p), 2u);
  EXPECT_TRUE(LogsIn(second_, second_.alice));
}

// A machine that has not heard of a refresh takes orders for keys all the same. Found by the
// simulation.
TEST_F(TriplesTest, WhatIsStagedIsFoundThroughAMachineThatIsBehind) {
  second_.StopAll();
  const TransactionId txn{5};
  SeededRandomForTest random(3);
  const KeyRecord record = ShareKey(
      MakePlainKey(random, "new@EXAMPLE.COM", KeyClass::kUser, kEnctypeAes128Gcm, Gate::kTimestamp),
      random)[0];
  const KeyRecord staged[] = {record};
  ASSERT_TRUE(first_.store(0).Stage(txn, staged, absl::Now()).ok());
  ExpectRefreshed(first_);
  EXPECT_EQ(EpochOf(second_, 0), 1u);
  const absl::StatusOr<KeyRecord> there = second_.store(0).GetStaged(txn, record.info.handle);
  ASSERT_TRUE(there.ok()) << there.status();
  EXPECT_TRUE(there->info == record.info);
  EXPECT_TRUE(absl::IsNotFound(second_.store(0).GetStaged({6}, record.info.handle).status()));
}

TEST_F(TriplesTest, AQuarantineIsThePartys) {
  ASSERT_TRUE(second_.store(1)
                  .WriteItem("quarantine",
                             AsBytes(EncodeReport({Suspects::One(2), "a lie", {}, 3, absl::Now()})))
                  .ok());
  first_.engine(1).Look();
  EXPECT_TRUE(first_.engine(1).Status().quarantine.has_value());
  EXPECT_TRUE(Eventually([&] { return !first_.engine(0).Status().peers_connected; }));
  EXPECT_FALSE(first_.engine(1).Status().peers_connected) << "its session goes on";
  ASSERT_TRUE(first_.engine(1).Readmit().ok());
  EXPECT_TRUE(LogsIn(first_, first_.alice));
  second_.engine(1).Look();
  EXPECT_FALSE(second_.engine(1).Status().quarantine.has_value());
}

// Another party may keep a triple down for as long as it likes.
TEST_F(TriplesTest, AMachineWhoseTripleIsDownKeepsNoOldKey) {
  second_.Stop(2);
  for (uint64_t epoch = 1; epoch < 4; ++epoch) {
    ExpectRefreshed(first_);
    NoteAll();
    Finish(first_);
    for (int p = 0; p < 2; ++p) {
      second_.engine(p).Look();  // as its duties do
      EXPECT_TRUE(second_.store(p).EraseOldKeys().ok());
      EXPECT_THAT(second_.store(p).KeyEpochs(), ::testing::ElementsAre(epoch + 1)) << p;
    }
  }
  second_.Start(2);
  ASSERT_TRUE(second_.WaitConnected());
  EXPECT_TRUE(LogsIn(second_, second_.alice));
}

TEST_F(TriplesTest, WhoWasAwayIsToldWhatToDo) {
  second_.StopAll();
  ExpectRefreshed(first_);
  Finish(first_);  // nobody waited for it
  const absl::Status look = second_.store(0).Look();
  EXPECT_TRUE(absl::IsFailedPrecondition(look)) << look;
  EXPECT_THAT(look.ToString(), ::testing::HasSubstr("copy that file from another machine"));
  EXPECT_TRUE(LogsIn(first_, first_.alice));
}

TEST_F(TriplesTest, TwoMachinesOfOneTripleAreNoticed) {
  MemoryShareStore same(stores_[0], {"EXAMPLE.COM", 0, 7}, 0);
  EXPECT_TRUE(same.NoteFellow(absl::Now()).ok());  // by name it is the one that is there
  const auto engine = std::make_shared<SharedMemoryEngine>(stores_[0], MachineName{77});
  const auto other = ShareStore::Open(
      engine, {{"EXAMPLE.COM", 0, 7}, StoreKeysForTest(), &SystemRandom(), 1 << 20, 0});
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_THAT((*other)->NoteFellow(absl::Now()).ToString(),
              ::testing::HasSubstr("of triple 0 too"));
  EXPECT_TRUE((*other)->NoteFellow(absl::Now() + absl::Minutes(1)).ok());
  // The first one goes on, and its clock is behind.
  EXPECT_THAT(same.NoteFellow(absl::Now() - absl::Minutes(3)).ToString(),
              ::testing::HasSubstr("of triple 0 too"));
}

// The end of a replay entry's life is a part of its key.
TEST_F(TriplesTest, APreauthIsSpentForBothWhileOneHasASmallerClockSkew) {
  for (int p = 0; p < kParties; ++p) second_.options(p).clock_skew = absl::Seconds(200);
  second_.RestartAll();
  const std::string preauth = first_.Preauth(first_.alice);
  EXPECT_VERDICT(first_.Run(first_.Login(first_.alice, preauth)), Verdict::kOk);
  second_.kdc().name = "kdc2";
  ExpectRefused(second_.Run(second_.Login(second_.alice, preauth)), Verdict::kReplay,
                "from another KDC");
}

// Each takes the other for down and writes the records; the one that does not end the refresh must
// not go on waiting.
TEST_F(TriplesTest, AMachineWithAnotherClockWaitsForNobodyWhenTheRefreshHasEnded) {
  const auto shared = std::make_shared<MemoryEngine>();
  MemoryShareStore one(shared, {"EXAMPLE.COM", 0, 7}, 0), other(shared, {"EXAMPLE.COM", 0, 7}, 1);
  const EpochDutyOptions options{.at_least = absl::ZeroDuration()};
  const auto ended = [](const EpochState&, const EpochProgress&) { return absl::OkStatus(); };
  OffsetClock clock, ahead;
  ahead.Set(absl::Minutes(4));
  EpochDuties ones(&one, &first_.engine(0), &clock, options, ended, [](const std::string&) {});
  EpochDuties others(&other, &first_.engine(0), &ahead, options, ended, [](const std::string&) {});
  ones.Step();
  ASSERT_TRUE(one.PrepareEpoch(RefreshId{1}, RefreshSeed()).ok());
  ASSERT_TRUE(one.EnterEpoch(absl::Now()).ok());
  ASSERT_TRUE(other.ReloadEpoch().ok());
  others.Step();
  EXPECT_THAT(others.Progress().waits, ::testing::HasSubstr("triples 0"));
  clock.Set(limits::kFellowNotes);
  for (int step = 0; step < 3; ++step) ones.Step();
  EXPECT_FALSE(one.Epoch().rewriting);
  ASSERT_TRUE(other.Look().ok());
  others.Step();
  EXPECT_EQ(others.Progress().waits, "");
}

// It takes both others for gone for twelve hours, and is up itself: no key is erased that one of them
// still needs by its word alone.
TEST_F(TriplesTest, AMachineWhoseClockIsADayAheadTakesNobodyForGone) {
  const auto shared = std::make_shared<MemoryEngine>();
  MemoryShareStore one(shared, {"EXAMPLE.COM", 0, 7}, 0), ahead(shared, {"EXAMPLE.COM", 0, 7}, 1),
      busy(shared, {"EXAMPLE.COM", 0, 7}, 2);
  OffsetClock clock;
  clock.Set(absl::Hours(24));
  EpochDuties duties(
      &ahead, &first_.engine(0), &clock, {.at_least = absl::ZeroDuration()},
      [](const EpochState&, const EpochProgress&) { return absl::OkStatus(); },
      [](const std::string&) {});
  for (MemoryShareStore* store : {&one, &busy}) ASSERT_TRUE(store->NoteFellow(absl::Now()).ok());
  ASSERT_TRUE(one.PrepareEpoch(RefreshId{1}, RefreshSeed()).ok());
  ASSERT_TRUE(one.EnterEpoch(absl::Now()).ok());
  ASSERT_TRUE(ahead.ReloadEpoch().ok());
  for (int step = 0; step < 5; ++step) duties.Step();
  EXPECT_THAT(duties.Progress().waits, ::testing::HasSubstr("triples 0, 2"));
  EXPECT_TRUE(busy.Look().ok()) << busy.Look();
  EXPECT_THAT(busy.KeyEpochs(), ::testing::ElementsAre(1, 2));
}

// An intruder at the KDC, who presents one pre-auth to both triples at once, as a login and for
// grants, and asks each grant for as much as it gives: a ticket comes twice, a reply twice.
TEST_F(TriplesTest, ARaceOfTwoTriplesIsWorthOneGrant) {
  for (int round = 0; round < 12; ++round) {
    const std::string preauth = first_.Preauth(first_.alice);
    std::atomic<int> tickets{0}, replies{0}, checksums{0};
    const auto count = [&](const Job& job, const JobResult& result) {
      if (!result.judgement.ok()) return false;
      const GrantUse use = UseOf(job);
      tickets += use.tickets;
      replies += use.replies;
      checksums += use.checksums;
      return true;
    };
    std::vector<std::thread> intruders;
    for (Realm* realm : {&first_, &second_}) {
      intruders.emplace_back([&, realm] {
        const Job login = realm->Login(realm->alice, preauth);
        count(login, realm->Run(login));
      });
      intruders.emplace_back([&, realm] {
        const Job open = realm->OpenPreauth(realm->alice, preauth);
        if (!count(open, realm->Run(open))) return;
        for (int i = 0; i < 3; ++i) {
          const Job ticket = realm->Granted(open.id);
          count(ticket, realm->Run(ticket));
          const Job reply =
              realm->Granted(open.id, realm->alice, {realm->alice.info.handle, kUsageAsReply, 100});
          count(reply, realm->Run(reply));
        }
      });
    }
    for (std::thread& intruder : intruders) intruder.join();
    EXPECT_GE(tickets, 1);
    EXPECT_LE(tickets, 2);
    EXPECT_LE(replies, 2);
    EXPECT_LE(checksums, 2);
  }
}

// Down for 13 hours, over two refreshes of which the second one was not waited for it: told what to
// do; with another machine's key file it serves.
TEST_F(TriplesTest, OldKeysAreKeptForTwelveHoursAndNoLonger) {
  second_.StopAll();
  const EpochDutyOptions options{.at_least = absl::ZeroDuration()};
  const auto ended = [](const EpochState&, const EpochProgress&) { return absl::OkStatus(); };
  ExpectRefreshed(first_);
  const auto step = [&](absl::Duration later) {
    for (int p = 0; p < kParties; ++p) first_.clock(p).Set(later);
    for (int p = 0; p < kParties; ++p) {
      EXPECT_TRUE(Eventually([&] {
        return first_.engine(p).Status().clock_confirmed > absl::Now() + later - absl::Minutes(1);
      })) << later;
      EpochDuties duties(&first_.store(p), &first_.engine(p), &first_.clock(p), options, ended,
                         [](const std::string&) {});
      for (int i = 0; i < 3; ++i) duties.Step();
    }
  };
  for (const int hours : {0, 1, 11}) {
    step(absl::Hours(hours));
    for (int p = 0; p < kParties; ++p) {
      EXPECT_TRUE(first_.store(p).Epoch().rewriting) << hours;
      EXPECT_THAT(first_.store(p).KeyEpochs(), ::testing::ElementsAre(1, 2));
    }
  }
  step(absl::Hours(13));
  for (int p = 0; p < kParties; ++p) {
    EXPECT_FALSE(first_.store(p).Epoch().rewriting);
    EXPECT_THAT(first_.store(p).KeyEpochs(), ::testing::ElementsAre(2));
    EXPECT_THAT(second_.store(p).Look().ToString(),
                ::testing::HasSubstr("copy that file from another machine"));
    first_.clock(p).Set(absl::ZeroDuration());
  }
  EXPECT_TRUE(LogsIn(first_, first_.alice));
}

TEST_F(TriplesTest, TroubleIsSaidOnceAndStaysInTheStatus) {
  bool full = false;
  StoreKeys keys = StoreKeysForTest();
  keys.SetSaver([&full](absl::Span<const uint8_t>) {
    return full ? absl::ResourceExhaustedError("no space left") : absl::OkStatus();
  });
  const auto engine =
      std::make_shared<SharedMemoryEngine>(std::make_shared<MemoryEngine>(), MachineName{5});
  const auto store = ShareStore::Open(
      engine, {{"EXAMPLE.COM", 0, 7}, std::move(keys), &SystemRandom(), 1 << 20, 0});
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_TRUE((*store)->PrepareEpoch(RefreshId{1}, RefreshSeed()).ok());
  ASSERT_TRUE((*store)->EnterEpoch(absl::Now()).ok());
  full = true;
  OffsetClock clock;
  std::vector<std::string> said;
  EpochDuties duties(
      store->get(), &first_.engine(0), &clock, {.at_least = absl::ZeroDuration()},
      [](const EpochState&, const EpochProgress&) { return absl::OkStatus(); },
      [&said](const std::string& trouble) { said.push_back(trouble); });
  for (int second = 0; second < 30; ++second) {
    duties.Step();
    EXPECT_THAT(duties.Progress().trouble, ::testing::HasSubstr("no space left"));
    clock.Set(absl::Seconds(second));
  }
  EXPECT_LE(said.size(), 2u);  // that the refresh does not end; that the key of before is left
  full = false;
  duties.Step();
  EXPECT_EQ(duties.Progress().trouble, "");
}

}  // namespace
}  // namespace mpckdc
