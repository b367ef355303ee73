// SPDX-License-Identifier: Apache-2.0
//
// A store that is lost whole, and one that is put back from a copy, with each server killed at each
// write of what follows: in the end the three have every key again, and nothing is undone.
#include <cstring>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/sim/small_realm.h"

namespace mpckdc::sim {
namespace {

using ::testing::HasSubstr;

struct ReplaceRealm : SmallRealm {
  ReplaceRealm() {
    bob = Add("bob@EXAMPLE.COM");
    EpochDutyOptions quick;
    quick.at_least = absl::Milliseconds(200);
    servers.SetRefreshes(quick);  // none by themselves
    servers.SetStepHook([this](int p, const absl::string_view step) { return KillsAt(p, step); });
  }

  PlainKey Add(const std::string& principal) {
    PlainKey key =
        MakePlainKey(random, principal, KeyClass::kUser, kEnctypeAes128Gcm, Gate::kTimestamp);
    const PerParty<KeyRecord> records = ShareKey(key, random);
    if (!servers.Up(0)) servers.Enrol(records);
    for (int p = 0; p < kParties && servers.Up(0); ++p) {
      EXPECT_TRUE(Enrol(*servers.process(p)->store, records[p], scheduler.now()).ok());
    }
    return key;
  }

  // From now on `party` is killed at its write number `number` of disk or key file.
  void KillAt(int party, int number) {
    victim = party;
    left = number;
  }
  bool KillsAt(int p, absl::string_view step) {
    if (p != victim ||
        !(absl::StartsWith(step, "disk: ") || absl::StartsWith(step, "key file: "))) {
      return false;
    }
    if (left-- > 0) return false;
    killed_at = std::string(step);
    victim = -1;
    servers.Kill(p, killed_at);
    return true;
  }

  void AskForReplacement(int party) {
    for (int p = 0; p < kParties; ++p) {
      if (!servers.Up(p)) continue;
      servers.process(p)->engine->Replace(party, servers.clock(p).Now() + absl::Seconds(4),
                                          [](const absl::Status&) {});
    }
  }
  EpochState Epoch(int p) { return servers.Disk(p)->Epoch(); }
  bool Settled() {
    for (int p = 0; p < kParties; ++p) {
      const EpochState state = Epoch(p);
      if (!servers.Up(p) || state.rewriting || state.receiving) return false;
      if (servers.Disk(p)->IsEmpty().value_or(true)) return false;
    }
    return servers.InOneEpoch();
  }
  // What an administrator does, again and again, until it is done and all is well. Whoever was
  // killed is started again after a while.
  template <typename Act, typename Done>
  bool Until(Act act, Done done) {
    for (int i = 0; i < 8; ++i) {
      act();
      RunFor(absl::Seconds(2));
      for (int p = 0; p < kParties; ++p) servers.Start(p);
      RunFor(absl::Seconds(2));
      const bool settled = Settled() && done();
      if (settled) victim = -1;  // it does not write so often
      if (settled) return true;
    }
    return false;
  }

  JobResult LoginWith(const PlainKey& user, const std::string& preauth) {
    Job job = LoginJob(++last_job, user, tgt, preauth);
    job.deadline_ms = 5000;
    const JobResult result = Ask({job, job, job});
    for (const SealResult& seal : result.seals) {
      const auto* gcm = std::get_if<GcmSealResult>(&seal);
      if (gcm == nullptr) continue;
      EXPECT_TRUE(nonces.insert(gcm->nonce).second) << "a nonce came twice";
    }
    return result;
  }
  std::string Preauth(const PlainKey& user) { return SealPreauth(user, scheduler.now(), random); }
  Verdict Login(const PlainKey& user) { return LoginWith(user, Preauth(user)).judgement.verdict; }

  void ExpectKeys(const std::vector<PlainKey>& keys) {
    for (const PlainKey& key : keys) {
      PerParty<KeyRecord> records;
      for (int p = 0; p < kParties; ++p) {
        const absl::StatusOr<KeyRecord> record = servers.Disk(p)->Get(key.info.handle);
        ASSERT_TRUE(record.ok()) << "server " << p << ": " << record.status();
        records[p] = *record;
      }
      const absl::StatusOr<PlainKey> joined = JoinKey(records);
      ASSERT_TRUE(joined.ok()) << joined.status();
      EXPECT_EQ(joined->base, key.base);
    }
    EXPECT_EQ(Login(bob), Verdict::kOk);
  }

  PlainKey bob;
  int victim = -1, left = 0;
  std::string killed_at;
  JobId last_job = 1000;
  std::set<Nonce> nonces;
};

// The key as two thieves have it: a_{i+1} + x_i.
Block StolenBase(const KeyRecord& of_i, const KeyRecord& of_next) {
  return XorBlocks(of_next.base[0].a, of_i.base[0].x);
}

// Runs `attempt(victim, number)` for each server and each of its writes. It returns where the
// server was killed, or nothing when it does not write so often.
template <typename Attempt>
std::set<std::string> AtEachWrite(Attempt attempt) {
  std::set<std::string> steps;
  for (int victim = 0; victim < kParties; ++victim) {
    for (int number = 0; number < 60; ++number) {
      const std::string step = attempt(victim, number);
      if (step.empty() || ::testing::Test::HasFailure()) break;
      steps.insert(step);
    }
  }
  return steps;
}

TEST(SimReplace, ALostStoreComesBackWhoeverIsKilledWhereverMeanwhile) {
  const int lost = 1;
  const std::set<std::string> steps = AtEachWrite([](int victim, int number) {
    ReplaceRealm realm;
    realm.Start();
    EXPECT_EQ(realm.Login(realm.bob), Verdict::kOk);
    const Handle& handle = realm.bob.info.handle;
    const KeyRecord stolen = *realm.servers.Disk(lost)->Get(handle);
    const KeyRecord next = *realm.servers.Disk(NextParty(lost))->Get(handle);
    EXPECT_EQ(std::memcmp(StolenBase(stolen, next).data(), realm.bob.base.data(), 16), 0);

    realm.servers.LoseDisk(lost);
    realm.servers.Start(lost);
    realm.KillAt(victim, number);
    EXPECT_TRUE(realm.Until([&] { realm.AskForReplacement(lost); }, [] { return true; }))
        << "server " << victim << " killed at " << realm.killed_at << " " << number << "\n"
        << absl::StrJoin(realm.journal.outcome().log, "\n");
    realm.ExpectKeys({realm.guest, realm.bob, realm.carol});
    // What was on the lost disk is worth nothing beside what the others have now.
    const KeyRecord now = *realm.servers.Disk(NextParty(lost))->Get(handle);
    EXPECT_NE(std::memcmp(StolenBase(stolen, now).data(), realm.bob.base.data(), 16), 0);
    return realm.killed_at;
  });
  for (const char* step :
       {"disk: prepared to join", "disk: entered an epoch", "disk: receive keys",
        "disk: received keys", "disk: ended receiving", "disk: prepare a refresh",
        "disk: ended a refresh", "key file: written"}) {
    EXPECT_TRUE(steps.contains(step)) << step;
  }
}

TEST(SimReplace, ACopyOfTheSameEpochCatchesUpWhoeverIsKilledWhereverMeanwhile) {
  const int old = 2;
  const std::set<std::string> steps = AtEachWrite([](int victim, int number) {
    ReplaceRealm realm;
    const PlainKey deleted = realm.Add("deleted@EXAMPLE.COM");
    realm.Start();
    const Servers::Copy copy = realm.servers.CopyOf(old);
    const PlainKey late = realm.Add("late@EXAMPLE.COM");
    const std::string used = realm.Preauth(realm.bob);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(realm.LoginWith(realm.bob, used).judgement.verdict, Verdict::kOk);
    }
    for (int p = 0; p < kParties; ++p) {
      EXPECT_TRUE(realm.servers.process(p)->store->Delete({&deleted.info.handle, 1}).ok());
    }

    realm.servers.PutBack(old, copy);
    realm.servers.Start(old);
    realm.RunFor(absl::Seconds(2));
    EXPECT_EQ(realm.Login(late), Verdict::kUnknownHandle);
    realm.KillAt(victim, number);
    const auto has_all = [&] { return realm.servers.Disk(old)->Get(late.info.handle).ok(); };
    const auto ask = [&] {
      if (realm.servers.Up(old) && !has_all()) (void)realm.servers.process(old)->engine->CatchUp();
    };
    EXPECT_TRUE(realm.Until(ask, has_all))
        << "server " << victim << " killed at " << realm.killed_at << " " << number;
    realm.ExpectKeys({realm.guest, realm.bob, realm.carol, late});
    EXPECT_EQ(realm.Login(deleted), Verdict::kUnknownHandle);
    // It paid for two logins before, and two other servers know it.
    EXPECT_EQ(realm.LoginWith(realm.bob, used).judgement.verdict, Verdict::kReplay);
    return realm.killed_at;
  });
  for (const char* step : {"disk: begin receiving", "disk: began receiving", "disk: receive keys",
                           "disk: received keys", "disk: end receiving", "disk: ended receiving"}) {
    EXPECT_TRUE(steps.contains(step)) << step;
  }
}

TEST(SimReplace, ACopyOfAnOlderEpochStopsTheRealmUntilItIsReplaced) {
  for (int old = 0; old < kParties; ++old) {
    ReplaceRealm realm;
    realm.Start();
    const Servers::Copy copy = realm.servers.CopyOf(old);
    for (int p = 0; p < kParties; ++p) {
      realm.servers.process(p)->engine->Refresh(1, realm.scheduler.now() + absl::Seconds(3),
                                                [](const absl::Status&) {});
    }
    realm.RunFor(absl::Seconds(3));
    EXPECT_TRUE(realm.Settled());
    EXPECT_EQ(realm.Epoch(old).epoch, 2u);
    const PlainKey late = realm.Add("late@EXAMPLE.COM");

    realm.servers.PutBack(old, copy);
    realm.servers.Start(old);
    realm.RunFor(absl::Seconds(2));
    EXPECT_NE(realm.Login(realm.bob), Verdict::kOk);
    EXPECT_THAT(realm.servers.process(old)->engine->Status().peers_detail,
                HasSubstr("put back from a backup"));
    EXPECT_EQ(realm.Epoch(old).epoch, 1u);

    realm.servers.LoseDisk(old);
    realm.servers.Start(old);
    EXPECT_TRUE(realm.Until([&] { realm.AskForReplacement(old); }, [] { return true; }));
    EXPECT_EQ(realm.Epoch(old).epoch, 3u);
    realm.ExpectKeys({realm.guest, realm.bob, realm.carol, late});
  }
}

// A refresh, the same way.
TEST(SimReplace, ARefreshEndsInOneEpochWhoeverIsKilledWherever) {
  const std::set<std::string> steps = AtEachWrite([](int victim, int number) {
    ReplaceRealm realm;
    realm.Start();
    realm.KillAt(victim, number);
    const auto ask = [&] {
      for (int p = 0; p < kParties; ++p) {
        if (!realm.servers.Up(p)) continue;
        realm.servers.process(p)->engine->Refresh(1, realm.scheduler.now() + absl::Seconds(3),
                                                  [](const absl::Status&) {});
      }
    };
    EXPECT_TRUE(realm.Until(ask, [&] { return realm.Epoch(0).epoch == 2; }))
        << "server " << victim << " killed at " << realm.killed_at << " " << number;
    realm.ExpectKeys({realm.guest, realm.bob, realm.carol});
    return realm.killed_at;
  });
  for (const char* step : {"disk: prepare a refresh", "disk: prepared a refresh",
                           "disk: enter an epoch", "disk: entered an epoch", "disk: refresh keys",
                           "disk: end a refresh", "disk: ended a refresh", "key file: write"}) {
    EXPECT_TRUE(steps.contains(step)) << step;
  }
}

}  // namespace
}  // namespace mpckdc::sim
