// SPDX-License-Identifier: Apache-2.0
//
// A party that lost its store is rebuilt from the two others while users log in.
#include <sodium.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "mpc-server/agree/hand_over.h"
#include "mpc-server/testing/hand_over_fixture.h"
#include "mpc-server/testing/long_tests.h"
#include "mpc-server/testing/memory_image.h"
#include "mpc-server/testing/records.h"

namespace mpckdc {
namespace {

TEST_P(HandOverTest, ALostStoreIsRebuiltAndItsOldSharesAreWorthNothing) {
  const size_t count = ShortOrLong(400, 1500);  // of several batches
  std::vector<PlainKey> users;
  for (size_t i = 0; i < count; ++i) {
    users.push_back(realm_.AddKey(absl::StrCat("user", i, "@EXAMPLE.COM"), KeyClass::kUser,
                                  i % 3 == 0 ? kEnctypeAes256Sha1 : kEnctypeAes128Gcm));
  }
  ASSERT_TRUE(LogsIn(realm_.alice));
  const KeyRecord stolen = Records(realm_.alice)[lost()];
  LoseStore(lost());
  ExpectReplaced(lost());
  for (const PlainKey* key : {&realm_.alice, &realm_.tgt, &realm_.otp, &users[0], &users.back()}) {
    ExpectSameKey(*key);
  }
  for (int p = 0; p < kParties; ++p) {
    EXPECT_EQ(realm_.store(p).Epoch().epoch, 2u);
    EXPECT_EQ(*realm_.store(p).Count(KeyState::kCommitted), count + 6);
    EXPECT_TRUE(realm_.store(p).Meta().initialised == (p == lost())) << "the fixture's are not";
  }
  EXPECT_TRUE(Eventually([&] { return LogsIn(realm_.alice); }));
  EXPECT_VERDICT(realm_.Run(realm_.Login(WrongPassword(realm_.bob))), Verdict::kBadTag);
  // The thief of the lost store and one of another server, now.
  PerParty<KeyRecord> mixed = Records(realm_.alice);
  mixed[lost()] = stolen;
  const auto joined = JoinKey(mixed);
  EXPECT_TRUE(!joined.ok() || joined->base != realm_.alice.base);
  // And what was received is refreshed with the rest.
  for (int p = 0; p < kParties; ++p) {
    if (p != lost()) Rewrite(p);
  }
  const auto verified = realm_.Verify({realm_.alice.info.handle, users[0].info.handle});
  ASSERT_TRUE(verified.ok()) << verified.status();
  for (const VerifyResult& result : *verified) EXPECT_TRUE(result.consistent) << result.detail;
}

// What logins named lately and nobody has any more is not counted as a key that could not be given.
TEST_P(HandOverTest, AKeyThatWasUsedAndDeletedIsNotMissing) {
  const PlainKey gone = realm_.AddKey("gone@EXAMPLE.COM", KeyClass::kUser, kEnctypeAes128Gcm);
  ASSERT_TRUE(LogsIn(gone));
  for (int p = 0; p < kParties; ++p) {
    ASSERT_EQ(*realm_.store(p).Delete({gone.info.handle}), 1u);
  }
  LoseStore(lost());
  ExpectReplaced(lost());
  const EngineStatus status = realm_.engine(lost()).Status();
  EXPECT_EQ(status.left_out, 0u);
  EXPECT_EQ(status.handed_over, *realm_.store(lost()).Count(KeyState::kCommitted));
}

// Logins whose keys have not come yet are refused as an outage, and their keys come first.
TEST_P(HandOverTest, AKeyThatIsMissingIsAnOutageAndNoWrongPassword) {
  realm_.hub().SetInterceptor([&](MemoryRing::Intercepted& m) {
    const bool components = m.type == FrameType::kAgreement && !m.payload.empty() &&
                            m.payload[0] == 6 && m.payload.size() > 100;
    if (components) absl::SleepFor(absl::Milliseconds(300));
  });
  LoseStore(lost());
  for (const absl::Status& status : AskAll(lost())) ASSERT_TRUE(status.ok()) << status;
  const JobResult early = realm_.Run(realm_.Login(realm_.alice));
  EXPECT_TRUE(early.judgement.ok() || early.judgement.verdict == Verdict::kUnavailable) << early;
  EXPECT_TRUE(Eventually([&] { return LogsIn(realm_.alice); }));
}

// It waits until every key is back and the last refresh is written, whoever leads.
TEST_P(HandOverTest, ARefreshThatIsAskedTooSoonEndsNoSession) {
  realm_.hub().SetInterceptor([&](MemoryRing::Intercepted& m) {
    const bool components = m.type == FrameType::kAgreement && !m.payload.empty() &&
                            m.payload[0] == 6 && m.payload.size() > 100;
    if (components) absl::SleepFor(absl::Milliseconds(700));
  });
  LoseStore(lost());
  for (const absl::Status& status : AskAll(lost())) ASSERT_TRUE(status.ok()) << status;
  for (int p = 0; p < kParties; ++p) {
    ASSERT_TRUE(Eventually([&] { return realm_.engine(p).Status().peers_connected; }));
  }
  PerParty<uint64_t> sessions;
  PerParty<absl::Status> refreshed;
  std::array<absl::Notification, kParties> done;
  for (int p = 0; p < kParties; ++p) {
    sessions[p] = realm_.engine(p).Status().sessions;
    realm_.engine(p).Refresh(2, absl::Now() + absl::Seconds(60), [&, p](const absl::Status& s) {
      refreshed[p] = s;
      done[p].Notify();
    });
  }
  EXPECT_TRUE(Eventually([&] { return !realm_.store(lost()).Epoch().receiving; }));
  absl::SleepFor(absl::Milliseconds(500));  // the two others have not written theirs yet
  EXPECT_TRUE(LogsIn(realm_.alice));
  for (int p = 0; p < kParties; ++p) {
    EXPECT_EQ(realm_.engine(p).Status().sessions, sessions[p]);
    if (p != lost()) Rewrite(p);
  }
  for (auto& each : done) each.WaitForNotification();
  for (int p = 0; p < kParties; ++p) {
    EXPECT_TRUE(refreshed[p].ok()) << refreshed[p];
    EXPECT_EQ(realm_.store(p).Epoch().epoch, 3u);
  }
}

// What it has is named by the thousand, and of what it lacks then nothing is passed over: most of
// what a store from a backup is named is there.
TEST_P(HandOverTest, AStoreThatLacksSomeIsNamedManyAtOnce) {
  std::vector<Handle> handles;
  for (int i = 0; i < 1700; ++i) {
    handles.push_back(
        realm_.AddKey(absl::StrCat("user", i, "@EXAMPLE.COM"), KeyClass::kUser, kEnctypeAes128Gcm)
            .info.handle);
  }
  std::sort(handles.begin(), handles.end());
  const size_t all = *realm_.store(lost()).Count(KeyState::kCommitted);
  handles.erase(handles.begin(), handles.begin() + 400);  // the guide names the first ones first
  ASSERT_EQ(*realm_.store(lost()).Delete(handles), handles.size());
  std::atomic<int> named{0};
  realm_.hub().SetInterceptor([&](MemoryRing::Intercepted& m) {
    named += m.type == FrameType::kAgreement && !m.payload.empty() && m.payload[0] == 4;
  });
  ASSERT_TRUE(realm_.engine(lost()).CatchUp().ok());
  ASSERT_TRUE(Eventually([&] { return !realm_.store(lost()).Epoch().receiving; }));
  EXPECT_EQ(*realm_.store(lost()).Count(KeyState::kCommitted), all);
  // At the beginning few; then more than one batch can give; what was behind these; the other pass.
  EXPECT_LE(named.load(), 14) << "as many as one batch gives would be 14 of each of two passes";
}

// It is cut off after each of its frames in turn; the next session goes on with what is missing. In
// make test each cut meets one party.
TEST_P(HandOverTest, ACutAnywhereLosesNothing) {
  for (int i = 0; i < 40; ++i) {
    realm_.AddKey(absl::StrCat("user", i, "@EXAMPLE.COM"), KeyClass::kUser, kEnctypeAes128Gcm);
  }
  constexpr int kCuts = 16;  // six of the epoch, two of each of the hand-over's
  for (int cut = ShortOrLong(lost(), 0); cut < kCuts; cut += ShortOrLong(kParties, 1)) {
    SCOPED_TRACE(cut);
    std::atomic<int> seen{0};
    realm_.hub().SetInterceptor([&, cut](MemoryRing::Intercepted& m) {
      const bool of_hand_over = m.type == FrameType::kAgreement && !m.payload.empty() &&
                                m.payload[0] >= 3 && m.payload[0] <= 8;
      if (of_hand_over && seen++ == cut) m.payload[0] = 99;  // whoever gets it ends the session
    });
    LoseStore(lost());
    // Cut before all had entered: whoever was behind follows, or they begin again by themselves.
    for (const absl::Status& asked : AskAll(lost())) EXPECT_TRUE(asked.ok()) << asked;
    ASSERT_TRUE(Eventually([&] {
      return !realm_.store(lost()).Epoch().receiving &&
             *realm_.store(lost()).Count(KeyState::kCommitted) == 46;
    }));
    EXPECT_GT(seen.load(), cut);
    EXPECT_TRUE(Eventually([&] { return LogsIn(realm_.alice); }));
    ExpectSameKey(realm_.tgt);
    for (int p = 0; p < kParties; ++p) {
      if (realm_.store(p).Epoch().rewriting) Rewrite(p);
    }
  }
}

TEST_P(HandOverTest, NobodyIsReplacedUnlessAllThreeAreAsked) {
  LoseStore(lost());
  absl::Notification done;
  absl::Status status;
  realm_.engine((lost() + 1) % 3)
      .Replace(lost(), absl::Now() + absl::Milliseconds(800), [&](absl::Status s) {
        status = std::move(s);
        done.Notify();
      });
  done.WaitForNotification();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(*realm_.store(lost()).Count(KeyState::kCommitted), 0u);
}

// Who has keys is not replaced, whatever is asked.
TEST_P(HandOverTest, AStoreWithKeysIsNotReplaced) {
  const auto asked = AskAll(lost(), absl::Milliseconds(800));
  EXPECT_TRUE(absl::IsFailedPrecondition(asked[lost()])) << asked[lost()];
  EXPECT_TRUE(LogsIn(realm_.alice));
  EXPECT_EQ(realm_.store(0).Epoch().epoch, 1u);
}

// The store is lost amid a refresh, when one of the two others has entered the new epoch and the
// other one has prepared it. No key is lost: the two have them all.
TEST_P(HandOverTest, AStoreLostAmidARefreshIsRebuilt) {
  const int behind = NextParty(lost()), ahead = PrevParty(lost());
  std::atomic<bool> cut{false};
  realm_.hub().SetInterceptor([&](MemoryRing::Intercepted& m) {
    if (cut && m.type == FrameType::kHello) m.drop = true;
    const bool prepared =
        m.type == FrameType::kAgreement && m.payload.size() == 25 && m.payload[0] == 3;
    // Lost, not altered: that would end the session, maybe before the third has heard all.
    if (prepared && m.from == lost() && m.to == behind && !cut.exchange(true)) m.drop = true;
  });
  realm_.hub().CloseCurrent();
  ASSERT_TRUE(realm_.WaitConnected());
  for (int p = 0; p < kParties; ++p) {
    realm_.engine(p).Refresh(1, absl::Now() + absl::Seconds(18), [](const absl::Status&) {});
  }
  ASSERT_TRUE(Eventually([&] { return realm_.store(ahead).Epoch().epoch == 2u; }));
  EXPECT_EQ(realm_.store(behind).Epoch().epoch, 1u);
  EXPECT_TRUE(realm_.store(behind).Epoch().prepared.has_value());
  realm_.Stop(lost());
  realm_.LoseStore(lost());
  realm_.hub().SetInterceptor(nullptr);
  realm_.hub().CloseCurrent();
  realm_.Start(lost());
  EXPECT_TRUE(Eventually([&] { return realm_.store(behind).Epoch().epoch == 2u; }));
  for (const int p : {ahead, behind}) Rewrite(p);
  for (const absl::Status& status : AskAll(lost(), absl::Seconds(15))) {
    EXPECT_TRUE(status.ok()) << status;
  }
  EXPECT_EQ(realm_.store(behind).Epoch().epoch, realm_.store(ahead).Epoch().epoch)
      << realm_.engine(behind).Status().peers_detail;
  EXPECT_TRUE(Eventually([&] { return LogsIn(realm_.alice); }));
}

// One of the two who hand keys over says of each that it was deleted in 1970. The other one and its
// administrator say that it is in use.
TEST_P(HandOverTest, OneLiarDoesNotHaveTheNewcomersKeysCollected) {
  const int liar = PrevParty(lost());
  std::atomic<int> lies{0};
  realm_.hub().SetInterceptor([&](MemoryRing::Intercepted& m) {
    const bool components = m.type == FrameType::kAgreement && m.payload.size() > 17 &&
                            m.payload[0] == 6 && m.from == liar && m.to == lost();
    for (size_t at = 5; components && at + 12 <= m.payload.size();) {
      m.payload[at + 7] = 1;  // a microsecond
      ++lies;
      size_t length = 0;
      for (size_t i = 8; i < 12; ++i) length = length << 8 | m.payload[at + i];
      at += 12 + length;
    }
  });
  LoseStore(lost());
  ExpectReplaced(lost());
  EXPECT_GE(lies.load(), 6);
  EXPECT_TRUE(Eventually([&] { return LogsIn(realm_.alice); }));
  const size_t before = *realm_.store(lost()).Count(KeyState::kCommitted);
  // As the collector does every so often, with a grace time of a month.
  const auto collected = realm_.store(lost()).CollectRetired(absl::Now() - absl::Hours(720), 1000);
  ASSERT_TRUE(collected.ok()) << collected.status();
  EXPECT_EQ(collected->size(), 0u);
  EXPECT_EQ(*realm_.store(lost()).Count(KeyState::kCommitted), before);
  EXPECT_TRUE(LogsIn(realm_.alice));
  for (const int honest : {NextParty(lost()), lost()}) {
    EXPECT_TRUE(realm_.store(honest).Get(realm_.alice.info.handle).ok()) << honest;
  }
}

// The guide says at once that no key follows. The other one knows better.
TEST_P(HandOverTest, OneLiarDoesNotHaveTheNewcomerBelieveThatItHasAll) {
  const int guide = lost() == 0 ? 1 : 0;
  realm_.hub().SetInterceptor([&](MemoryRing::Intercepted& m) {
    if (m.type != FrameType::kAgreement || m.payload.empty() || m.payload[0] != 4) return;
    if (m.from == guide) m.instead = std::string("\x04\x01\0\0\0\0", 6);
  });
  LoseStore(lost());
  for (const absl::Status& status : AskAll(lost())) ASSERT_TRUE(status.ok()) << status;
  const bool ended = Eventually([&] { return !realm_.store(lost()).Epoch().receiving; });
  EXPECT_FALSE(ended && *realm_.store(lost()).Count(KeyState::kCommitted) == 0)
      << "the newcomer ended with no key";
}

// Who stole the lost store, and sees the memory of one of the two others after the hand-over.
TEST_P(HandOverTest, AMemoryImageOfLaterDoesNotMakeTheLostStoreWorthAnything) {
  const KeyRecord stolen = Records(realm_.alice)[lost()];
  LoseStore(lost());
  ExpectReplaced(lost());
  for (int p = 0; p < kParties; ++p) {
    if (p != lost()) Rewrite(p);
  }
  ASSERT_TRUE(Eventually([&] { return LogsIn(realm_.alice); }));
  // P_{i+1} has a_{i+1}, which with x_i of P_i is the key.
  const int other = NextParty(lost());
  const KeyRecord now = Records(realm_.alice)[other];
  int as_seed = 0, as_session_key = 0;
  const auto gives_the_key = [&](const RefreshSeed& seed) {
    KeyRecord back = now;
    RefreshRecord(seed, 2, other, back);
    SecretVector<Block> base;
    for (size_t k = 0; k < back.base.size(); ++k) {
      base.push_back(XorBlocks(back.base[k].a, stolen.base[k].x));
    }
    return std::memcmp(base.data(), realm_.alice.base.data(), realm_.alice.base.size()) == 0;
  };
  ForEachSecretBlock([&](const uint8_t* bytes) {
    RefreshSeed seed;
    std::memcpy(seed.Get().data(), bytes, seed.Get().size());
    if (std::count(bytes, bytes + 32, 0) > 8) return;  // no key
    as_seed += gives_the_key(seed);
    crypto_kdf_derive_from_key(seed.Get().data(), seed.Get().size(), 1, "mpckdc-t", bytes);
    as_session_key += gives_the_key(seed);
  });
  EXPECT_EQ(as_seed, 0);
  EXPECT_EQ(as_session_key, 0) << "a key that the seed follows from is in memory";
}

// The two others collect a key when the newcomer has its components and nobody has verified them.
TEST_P(HandOverTest, AKeyThatIsCollectedOnTheWayEndsNoSession) {
  const PlainKey deleted = realm_.AddKey("deleted@EXAMPLE.COM", KeyClass::kUser, kEnctypeAes128Gcm);
  const std::vector<NamedKey> name = {{deleted.info.handle, deleted.info.principal}};
  const std::vector<int> others = {NextParty(lost()), PrevParty(lost())};
  for (const int p : others) ASSERT_TRUE(realm_.store(p).Retire(name, absl::Now()).ok());
  std::atomic<bool> collected{false};
  std::atomic<int> sessions{0};
  realm_.hub().SetInterceptor([&](MemoryRing::Intercepted& m) {
    if (collected && m.type == FrameType::kHello) ++sessions;
    const bool candidates = m.type == FrameType::kAgreement && !m.payload.empty() &&
                            m.payload[0] == 8 && m.from == lost();
    if (!candidates || collected.exchange(true)) return;
    for (const int p : others) EXPECT_TRUE(realm_.store(p).DeleteNamed(name).ok());
  });
  LoseStore(lost());
  ExpectReplaced(lost());
  EXPECT_TRUE(collected);
  EXPECT_EQ(sessions.load(), 0) << "all began again";
  // It is the newcomer's to collect, which heard of both that it is deleted.
  const auto retired = realm_.store(lost()).MarksOf({&deleted.info.handle, 1});
  ASSERT_TRUE(retired.ok()) << retired.status();
  EXPECT_TRUE(retired->at(0).has_value());
  EXPECT_TRUE(Eventually([&] { return LogsIn(realm_.alice); }));
  ExpectSameKey(realm_.bob);
}

// In its grace time, and after: the newcomer keeps them too, and they can still be compared.
TEST_P(HandOverTest, KeysOfThePasswordHistoryComeAsThat) {
  const PlainKey kept = realm_.AddKey("kept@EXAMPLE.COM", KeyClass::kUser, kEnctypeAes128Gcm);
  const PlainKey reduced = realm_.AddKey("kept@EXAMPLE.COM", KeyClass::kUser, kEnctypeAes256Sha1);
  const absl::Time now = absl::Now();
  for (int p = 0; p < kParties; ++p) {
    ShareStore& store = realm_.store(p);
    ASSERT_TRUE(store.Retire({{{reduced.info.handle, reduced.info.principal, true}}},
                             now - absl::Hours(1)).ok());
    ASSERT_EQ(store.CollectRetired(now - absl::Minutes(1), 10)->size(), 1u);
    ASSERT_TRUE(store.Retire({{{kept.info.handle, kept.info.principal, true}}}, now).ok());
  }
  LoseStore(lost());
  ExpectReplaced(lost());
  const std::vector<Handle> old = {kept.info.handle, reduced.info.handle};
  const auto marks = realm_.store(lost()).MarksOf(old);
  ASSERT_TRUE(marks.ok()) << marks.status();
  ASSERT_TRUE(marks->at(0).has_value() && marks->at(1).has_value());
  EXPECT_TRUE(marks->at(0)->for_history && !marks->at(0)->reduced);
  EXPECT_TRUE(marks->at(1)->for_history && marks->at(1)->reduced);
  EXPECT_EQ(realm_.store(lost()).Get(reduced.info.handle)->info.key_class, KeyClass::kHistory);

  const TransactionId txn{0x77};
  std::vector<Handle> staged;
  for (PlainKey again : {kept, reduced}) {
    realm_.random().Fill(absl::MakeSpan(again.info.handle));
    staged.push_back(again.info.handle);
    const PerParty<KeyRecord> records = ShareKey(again, realm_.random());
    for (int p = 0; p < kParties; ++p) {
      ASSERT_TRUE(realm_.store(p).Stage(txn, {&records[p], 1}, absl::Now()).ok());
    }
  }
  ASSERT_TRUE(realm_.WaitConnected());
  for (const auto& answer :
       realm_.CompareEach([&](int) { return CompareRequest{{}, txn, staged, old}; })) {
    ASSERT_TRUE(answer.ok()) << answer.status();
    for (const CompareResult& result : *answer) {
      EXPECT_EQ(result.comparison, Comparison::kEqual);
    }
  }
}

// A KDC that names handles that nobody has, as fast as it likes: the newcomer is done all the same.
// Until it is, shares are not refreshed.
TEST_P(HandOverTest, AKdcDoesNotKeepTheNewcomerReceiving) {
  LoseStore(lost());
  std::atomic<bool> stop{false};
  std::mutex making;  // with the realm's random numbers
  std::vector<std::thread> kdcs;
  for (int k = 0; k < 4; ++k) {
    kdcs.emplace_back([&, k] {
      PlainKey nobody = realm_.alice;
      nobody.info.handle.fill(static_cast<uint8_t>(0xa0 + k));
      while (!stop) {
        const Job login = [&] {
          std::lock_guard<std::mutex> lock(making);
          return realm_.Login(nobody);
        }();
        realm_.Run(login);
      }
    });
  }
  for (const absl::Status& status : AskAll(lost())) EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(
      Eventually([&] { return !realm_.store(lost()).Epoch().receiving; }, absl::Seconds(15)));
  stop = true;
  for (std::thread& kdc : kdcs) kdc.join();
  EXPECT_TRUE(Eventually([&] { return !realm_.store(lost()).Epoch().receiving; }))
      << "the control: without the KDC it ends";
}

// A renamed key stays one: guesses at it count with those at the old one, here as well.
TEST_P(HandOverTest, ARenamedKeyComesAsThat) {
  const RenamedKey key{{realm_.alice.info.handle, realm_.alice.info.principal}, Handle{77}, 4, "s"};
  for (int p = 0; p < kParties; ++p) {
    const TransactionId txn{78};
    ASSERT_TRUE(realm_.store(p)
                    .StageRenamed(txn, {key}, "alice.smith@EXAMPLE.COM", 1, absl::Now())
                    .ok());
    ASSERT_TRUE(realm_.store(p).Commit(txn, absl::Now()).ok());
  }
  LoseStore(lost());
  ExpectReplaced(lost());
  const auto copy = realm_.store(lost()).Get(key.to);
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_EQ(copy->info.principal, "alice.smith@EXAMPLE.COM");
  EXPECT_EQ(copy->copied,
            (CopiedFrom{key.from.handle, LineageOf(realm_.alice.info.principal_id),
                        key.from.handle}));
}

// The three confirm to each other in which shape they verify records. Two records of a key that
// differ in it would be computed with in different rounds.
TEST(HandOver, WhatIsConfirmedTellsRecordsOfDifferentRoundsApart) {
  SeededRandomForTest random(1);
  const KeyRecord one = RecordForTest(random, "krbtgt/EXAMPLE.COM@EXAMPLE.COM",
                                      kEnctypeAes256Gcm, KeyClass::kTgs);
  const auto differs = [&](const std::function<void(KeyRecord&)>& change) {
    KeyRecord other = one;
    change(other);
    return ShapeOf({&one, 1}) != ShapeOf({&other, 1});
  };
  EXPECT_FALSE(differs([](KeyRecord&) {}));
  EXPECT_TRUE(differs([](KeyRecord& r) { r.usages.pop_back(); })) << "from before usage 64";
  EXPECT_TRUE(differs([](KeyRecord& r) { r.usages.clear(); })) << "reduced for the history";
  EXPECT_TRUE(differs([](KeyRecord& r) { r.info.enctype = kEnctypeAes128Gcm; }));
  EXPECT_TRUE(differs([](KeyRecord& r) { r.info.key_class = KeyClass::kService; }));
  EXPECT_TRUE(differs([](KeyRecord& r) { ++r.info.handle[0]; }));
  EXPECT_FALSE(differs([](KeyRecord& r) { ++r.base[0].x[0]; })) << "shares are no facts";
}

TEST(HandOver, BatchesGrowWhileTheyAreQuick) {
  const absl::Duration quick = absl::Milliseconds(10), fair = absl::Milliseconds(150),
                       slow = absl::Milliseconds(400);
  size_t keys = kFewKeysHandedOver;
  for (int i = 0; i < 10; ++i) keys = KeysOfNextBatch(keys, keys, quick);
  EXPECT_EQ(keys, kMostKeysHandedOver);
  EXPECT_EQ(KeysOfNextBatch(keys, keys, fair), keys);
  EXPECT_EQ(KeysOfNextBatch(256, 255, quick), 256u) << "it was not full";
  EXPECT_EQ(KeysOfNextBatch(256, 3, slow), 128u) << "the line became slow";
  for (int i = 0; i < 10; ++i) keys = KeysOfNextBatch(keys, keys, slow);
  EXPECT_EQ(keys, 32u);
}

INSTANTIATE_TEST_SUITE_P(Parties, HandOverTest, ::testing::Range(0, 3));

}  // namespace
}  // namespace mpckdc
