// SPDX-License-Identifier: Apache-2.0
//
// Some seeds, that they replay, that they come by every named step; and for each invariant a
// control in which production lacks what it protects, and it sees that.
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/job/operation_table.h"
#include "mpc-server/sim/report.h"
#include "mpc-server/sim/small_realm.h"
#include "mpc-server/sim/world.h"
#include "mpc-server/testing/tested_security.h"

namespace mpckdc::sim {
namespace {

using ::testing::HasSubstr;

const auto kThreeOk = testing::ElementsAre(Verdict::kOk, Verdict::kOk, Verdict::kOk);

TEST(Fibers, RunByTimeAndOrder) {
  Scheduler scheduler(absl::UnixEpoch());
  std::string trace;
  scheduler.Spawn("a", [&] {
    trace += 'a';
    scheduler.Sleep(absl::Seconds(2));
    trace += 'A';
  });
  Fiber* const b = scheduler.Spawn("b", [&] {
    trace += 'b';
    scheduler.Wait(absl::InfiniteFuture());
    trace += 'B';
  });
  scheduler.At(absl::FromUnixSeconds(1), [&] { scheduler.Wake(b); });
  scheduler.RunUntil(absl::FromUnixSeconds(10));
  EXPECT_EQ(trace, "abBA");
  EXPECT_EQ(scheduler.now(), absl::FromUnixSeconds(10));
}

TEST(Fibers, APausedFiberRunsLater) {
  Scheduler scheduler(absl::UnixEpoch());
  absl::Time ran;
  Fiber* const f = scheduler.Spawn("f", [&] {
    scheduler.Sleep(absl::Seconds(1));
    ran = scheduler.now();
  });
  scheduler.At(absl::FromUnixMillis(500),
               [&] { scheduler.Pause(f, absl::FromUnixSeconds(5)); });
  scheduler.RunUntil(absl::FromUnixSeconds(10));
  EXPECT_EQ(ran, absl::FromUnixSeconds(5));
}

// The seeds of CI. Together they come by every step and throw every kind of fault.
TEST(Sim, SomeSeeds) {
  Report sum;
  for (uint64_t seed = 1; seed <= 43; ++seed) {
    const Outcome outcome = World({.seed = seed}).Run();
    EXPECT_TRUE(outcome.violations.empty()) << "seed " << seed << ": " << outcome.violations[0];
    EXPECT_GT(outcome.Event("logins that succeeded"), 10u) << "seed " << seed;
    sum.Add(seed, outcome);
  }
  std::set<std::string> reached;
  for (const auto& [step, count] : sum.steps) reached.insert(step);
  const std::vector<std::string> named = NamedSteps();
  for (const std::string& step : named) EXPECT_TRUE(reached.contains(step)) << step;
  for (const std::string& step : reached) {
    EXPECT_TRUE(std::find(named.begin(), named.end(), step) != named.end()) << step;
  }
  for (int kind = 0; kind < kFaultKinds; ++kind) {
    const std::string name = FaultName(static_cast<FaultKind>(kind));
    uint64_t at_steps = 0;
    for (const std::string& step : named) at_steps += sum.faults[name + " at " + step];
    EXPECT_GT(sum.faults[name + " at any moment"], 0u) << name;
    EXPECT_GT(at_steps, 0u) << name;
  }
  EXPECT_GT(sum.events["given keys acknowledged"], 100u);
  EXPECT_GT(sum.events["drawn keys acknowledged"], 50u);
  EXPECT_GT(sum.events["enrolments taken back"], 10u);
  EXPECT_GT(sum.events["keys lost with a restored disk"], 5u);
  EXPECT_GT(sum.verdicts["REPLAY"], 50u);
  EXPECT_GT(sum.events["logins sent again that succeeded"], 100u);
  EXPECT_GT(sum.events["pre-auths that bought a second login"], 20u);
  EXPECT_GT(sum.verdicts["BAD_TAG"], 100u);
  for (const int enctype : {17, 18, 19, 20}) {
    EXPECT_GT(sum.events[absl::StrCat("logins of enctype ", enctype, " that succeeded")], 3u);
    EXPECT_GT(sum.events[absl::StrCat("replies of enctype ", enctype)], 3u);
  }
  EXPECT_GT(sum.verdicts["reply OK"], 60u);
  EXPECT_GT(sum.verdicts["third reply REFUSED"], 0u);
  EXPECT_GT(sum.verdicts["service ticket OK"], 0u);
  EXPECT_GT(sum.events["faults amid the rounds of an HMAC"], 3u);
  EXPECT_GT(sum.events["refreshes that ended on a server"], 100u);
  EXPECT_GT(sum.events["keys whose shares of two epochs were tried"], 50u);
  EXPECT_EQ(sum.events["runs with two triples"], 3u);  // 5, 21, 37
  EXPECT_GT(sum.events["logins that went to the other triple"], 20u);
  EXPECT_GT(sum.events["replays at the other triple"], 3u);
}

TEST(Sim, ASeedReplaysExactly) {
  World first({.seed = 4}), second({.seed = 4});
  const Outcome a = first.Run(), b = second.Run();
  EXPECT_EQ(a.log, b.log);
  EXPECT_EQ(a.verdicts, b.verdicts);
  EXPECT_EQ(a.steps, b.steps);
  EXPECT_EQ(first.frames(), second.frames());
  EXPECT_NE(a.log, World({.seed = 5}).Run().log);
}

// Whatever happens to one frame, the servers notice, connect anew and go on.
TEST(Sim, EachDamageToAFrameEndsTheSessionAndNothingElse) {
  for (const Damage damage : {Damage::kFlipControl, Damage::kBadRecord, Damage::kTruncate,
                              Damage::kReorder, Damage::kDuplicate}) {
    SmallRealm realm;
    realm.Start();
    EXPECT_EQ(realm.servers.process(0)->engine->Status().sessions, 1u);
    realm.network.DamageNext(1, 0, damage);
    realm.Submit(1);
    realm.RunFor(absl::Seconds(4));
    EXPECT_EQ(realm.servers.process(0)->engine->Status().sessions, 2u)
        << "damage " << static_cast<int>(damage);
    realm.Submit(2);
    realm.RunFor(absl::Seconds(1));
    EXPECT_THAT(realm.answers[2], kThreeOk) << "damage " << static_cast<int>(damage);
  }
}

TEST(Sim, AOneWayPartitionStopsTheRealmUntilItIsHealed) {
  SmallRealm realm;
  realm.Start();
  realm.network.Block(0, 1);
  realm.Submit(1);
  realm.RunFor(absl::Seconds(8));
  EXPECT_THAT(realm.answers[1], testing::Each(testing::Ne(Verdict::kOk)));
  for (int p = 0; p < kParties; ++p) {
    EXPECT_FALSE(realm.servers.process(p)->engine->Status().peers_connected) << p;
  }
  realm.network.Heal();
  realm.RunFor(absl::Seconds(3));
  realm.Submit(2);
  realm.RunFor(absl::Seconds(1));
  EXPECT_THAT(realm.answers[2], kThreeOk);
}

TEST(Sim, AnExpiredCertificateStopsNewConnectionsOnly) {
  SmallRealm realm;
  realm.Start();
  realm.network.SetCertificate(2, {absl::InfinitePast(), realm.scheduler.now()});
  realm.Submit(1);
  realm.RunFor(absl::Seconds(2));
  EXPECT_THAT(realm.answers[1], kThreeOk);
  realm.network.Cut(1, 2);
  realm.RunFor(absl::Seconds(5));
  EXPECT_FALSE(realm.servers.process(0)->engine->Status().peers_connected);
  realm.network.SetCertificate(2, {realm.scheduler.now(), absl::InfiniteFuture()});
  realm.RunFor(absl::Seconds(3));
  EXPECT_TRUE(realm.servers.process(0)->engine->Status().peers_connected);
}

// A key of enctype 18: login and reply are two jobs, and what joins them is in memory only.
TEST(Sim, AGrantEndsWithTheProcessThatKeptIt) {
  SmallRealm realm;
  realm.Start();
  ASSERT_EQ(realm.LoginAsCarol(1).judgement.verdict, Verdict::kOk);
  realm.ExpectReply(realm.ReplyToCarol(2, 1));
  realm.servers.Kill(1, "the test");
  realm.servers.Start(1);
  realm.RunFor(absl::Seconds(3));
  const JobResult refused = realm.ReplyToCarol(3, 1);
  EXPECT_EQ(refused.judgement.verdict, Verdict::kRefused);
  EXPECT_THAT(refused.judgement.detail, HasSubstr("server 1 said REFUSED"));
  EXPECT_TRUE(refused.seals.empty());
  ASSERT_EQ(realm.LoginAsCarol(4).judgement.verdict, Verdict::kOk);
  realm.ExpectReply(realm.ReplyToCarol(5, 4));
}

// In the middle of a login's HMAC and in that of a reply: nothing comes, and the next one works.
TEST(Sim, AServerKilledAmidAnHmacGivesNothing) {
  for (const bool in_reply : {false, true}) {
    SmallRealm realm;
    realm.servers.SetProtocol(ProtocolSetting::kReplicated);
    int rounds_left = -1;  // of HMACs at server 1, until it is killed; negative: it is not
    realm.servers.SetStepHook([&](int p, const absl::string_view step) {
      if (p != 1 || step != "hmac/sha1" || rounds_left < 0 || --rounds_left >= 0) return false;
      realm.servers.Kill(1, "amid an HMAC");
      return true;
    });
    realm.Start();
    JobResult result;
    if (in_reply) {
      ASSERT_EQ(realm.LoginAsCarol(1).judgement.verdict, Verdict::kOk);
    }
    rounds_left = 300;
    result = in_reply ? realm.ReplyToCarol(2, 1) : realm.LoginAsCarol(1);
    EXPECT_FALSE(realm.servers.Up(1));
    EXPECT_FALSE(result.judgement.ok());
    EXPECT_TRUE(result.seals.empty());
    realm.servers.Start(1);
    realm.RunFor(absl::Seconds(3));
    ASSERT_EQ(realm.LoginAsCarol(3).judgement.verdict, Verdict::kOk);
    realm.ExpectReply(realm.ReplyToCarol(4, 3));
  }
}

// One vote heard before the jump and one after it: the leader's clock is not yet known to be wrong,
// and a nonce of its time would stop sealing until the other clocks come within an hour of it.
// Found by seed 10365 of an earlier state of this simulation.
TEST(Sim, ALeaderWhoseClockJumpsBetweenTwoVotesSealsNothing) {
  SmallRealm realm;
  bool armed = false;
  int votes = 0;
  realm.servers.SetStepHook([&](int p, const absl::string_view step) {
    if (p == 0 && step == "send agreement") votes = 0;
    if (!armed || p != 0 || step != "receive agreement" || ++votes < 2) return false;
    armed = false;
    realm.servers.clock(0).Set(absl::Hours(2));
    realm.Submit(1);
    return false;
  });
  realm.Start(absl::Seconds(3));
  armed = true;
  realm.RunFor(absl::Seconds(4));
  EXPECT_FALSE(armed);
  EXPECT_THAT(realm.answers[1], testing::Each(Verdict::kUnavailable));
  realm.servers.clock(0).Set(absl::ZeroDuration());
  realm.RunFor(absl::Seconds(2));
  realm.Submit(2);
  realm.RunFor(absl::Seconds(3));
  EXPECT_THAT(realm.answers[2], kThreeOk);
}

TEST(Report, SurvivesItsFile) {
  Report report;
  report.first = 7;
  report.Add(7, World({.seed = 7}).Run());
  report.failures[8] = "a \"quoted\" failure";
  const absl::StatusOr<Report> read = Report::FromJson(report.ToJson());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->ToJson(), report.ToJson());
  EXPECT_FALSE(Report::FromJson(report.ToJson().substr(0, 100)).ok());
}

// ---- Controls ----

// The first violation of the first of some seeds that has one.
std::string Breaks(const Controls& controls, uint64_t last = 20, uint64_t first = 1) {
  for (uint64_t seed = first; seed <= last; ++seed) {
    const Outcome outcome = World({.seed = seed, .controls = controls}).Run();
    if (!outcome.violations.empty()) return outcome.violations[0];
  }
  return "nothing";
}

TEST(SimControl, WithoutDurableMarksNoncesRepeat) {
  EXPECT_THAT(Breaks({.disk = {.forgets_marks = true}, .all_restart = true}),
              HasSubstr("used a nonce"));
}

TEST(SimControl, WithoutDurableReplayEntriesAReplaySucceeds) {
  EXPECT_THAT(Breaks({.disk = {.forgets_replays = true}, .all_restart = true}),
              HasSubstr("replayed pre-auth succeeded"));
}

TEST(SimControl, AStoreThatLosesCommitsIsSeen) {
  EXPECT_THAT(Breaks({.disk = {.forgets_commits = true}}),
              testing::AnyOf(HasSubstr("lost acknowledged key"), HasSubstr("UNKNOWN_HANDLE"),
                             HasSubstr("VerifyKeys says")));
}

TEST(SimControl, AStoreThatKeepsWhatWasDeletedIsSeen) {
  // Few seeds see it; the first is 36.
  EXPECT_THAT(Breaks({.disk = {.keeps_deleted = true}}, 135, 36), HasSubstr("was taken back"));
}

TEST(SimControl, AServerThatCollectsDeletedKeysAtOnceIsSeen) {
  EXPECT_THAT(Breaks({.collects_at_once = true}),
              testing::AnyOf(HasSubstr("lost acknowledged key"), HasSubstr("UNKNOWN_HANDLE"),
                             HasSubstr("VerifyKeys says")));
}

// Semi-honest servers break in the first seeds.
uint64_t SeedsOfLies() { return TestedSecurity() == Security::kActive ? 8 : 20; }

// With semi-honest servers a wrong value leaves; active ones give none, and go on once readmitted.
void ExpectSecurity(const std::string& violation) {
  if (TestedSecurity() == Security::kActive) {
    EXPECT_EQ(violation, "nothing");
  } else {
    EXPECT_THAT(violation, testing::AnyOf(HasSubstr("is wrong"), HasSubstr("is BAD_TAG")));
  }
}

TEST(SimControl, AnAlteredRoundFrameYieldsAWrongReply) {
  ExpectSecurity(Breaks({.flip_rounds = true}, SeedsOfLies()));
}

// The first violation of the first of some seeds in which one server lies.
std::string LiesBreak(uint64_t seeds) {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const Outcome outcome = World({.seed = seed, .lying = Lying::kOneServer}).Run();
    if (!outcome.violations.empty()) return outcome.violations[0];
  }
  return "nothing";
}

TEST(SimControl, AServerThatLiesBreaksARealmThatTrustsIt) {
  ExpectSecurity(LiesBreak(SeedsOfLies()));
}

TEST(SimControl, AWrongPasswordThatSucceedsIsSeen) {
  EXPECT_THAT(Breaks({.other_password = true}),
              testing::AnyOf(HasSubstr("wrong password succeeded"), HasSubstr("is BAD_TAG")));
}

TEST(SimControl, AReplyWithAnotherTextIsSeen) {
  EXPECT_THAT(Breaks({.other_text = true}),
              testing::AllOf(HasSubstr("reply "), HasSubstr("is wrong")));
}

TEST(SimControl, AConfounderThatComesTwiceAndAThirdReplyOfOneGrantAreSeen) {
  SmallRealm realm;
  Invariants invariants(&realm.scheduler, &realm.journal, &realm.servers, absl::Seconds(5));
  invariants.Sealed(std::string(60, 'a'));
  invariants.Sealed(std::string(15, 'a') + std::string(45, 'b'));
  for (const char* preauth : {"a", "b", "a", "b"}) invariants.Replied(preauth);
  EXPECT_FALSE(realm.journal.violated());
  invariants.Sealed(std::string(16, 'a') + std::string(70, 'c'));
  invariants.Replied("a");
  EXPECT_THAT(realm.journal.outcome().violations,
              testing::ElementsAre(HasSubstr("a confounder came twice"),
                                   HasSubstr("paid for three replies")));
}

TEST(SimControl, AThirdLoginOfOnePreauthAndOneAtAnotherKdcAreSeen) {
  SmallRealm realm;
  Invariants invariants(&realm.scheduler, &realm.journal, &realm.servers, absl::Seconds(5));
  for (const char* preauth : {"a", "b", "a"}) invariants.LoggedIn(preauth, "kdc1");
  EXPECT_FALSE(realm.journal.violated());
  invariants.LoggedIn("a", "kdc1");
  invariants.LoggedIn("b", "kdc2");
  EXPECT_THAT(realm.journal.outcome().violations,
              testing::ElementsAre(HasSubstr("three logins"), HasSubstr("at two KDCs")));
}

TEST(SimControl, AServerThatStaysDownIsSeen) {
  EXPECT_THAT(Breaks({.never_heal = true}), HasSubstr("no login succeeds"));
}

TEST(SimControl, ALostAuditLineIsSeen) {
  EXPECT_THAT(Breaks({.lose_audit = true}), HasSubstr("audit"));
}

}  // namespace
}  // namespace mpckdc::sim
