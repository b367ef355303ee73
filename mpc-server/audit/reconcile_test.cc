// SPDX-License-Identifier: Apache-2.0
//
// Three logs that tell the same, and every way in which they may not.
#include "mpc-server/audit/reconcile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpc-server/testing/audit_log.h"

namespace mpckdc::audit {
namespace {

using ::testing::HasSubstr;

const std::vector<int> kAll = {0, 1, 2};

class ReconcileTest : public ThreeLogs {
 protected:
  void Stop(int party) { Write(party, "stop", Fields()); }
  // Server 1 starts after a minute of silence, and all goes well again.
  void Returns(const std::string& boot) {
    Pass(absl::Seconds(60));
    Start(1, boot);
    GoodBatch();
  }
  void Unbatched(int party, const Fields& job) { Write(party, "jobs", {{"jobs", {job}}}); }

  absl::StatusOr<Reconciliation> TryRun(const ReconcileOptions& options) {
    std::array<std::vector<LogFile>, kServers> files;
    for (int party : kAll) files[party] = *FindFiles({File(party)});
    return Reconcile(files, options);
  }
  Reconciliation Run(const ReconcileOptions& options = {}) {
    absl::StatusOr<Reconciliation> result = TryRun(options);
    EXPECT_TRUE(result.ok()) << result.status();
    return *result;
  }
  // The only kind of difference, explained or not.
  static void Expect(const Reconciliation& result, FindingKind kind, bool explained,
                     const std::string& text) {
    ASSERT_FALSE(result.findings.empty());
    for (const Finding& finding : result.findings) {
      EXPECT_EQ(finding.kind, kind) << finding.text;
      EXPECT_EQ(finding.explained, explained) << finding.text;
      EXPECT_THAT(finding.text, HasSubstr(text));
    }
    EXPECT_EQ(result.clean(), explained);
  }
};

TEST_F(ReconcileTest, ThreeLogsThatTellTheSame) {
  for (int i = 0; i < 20; ++i) GoodBatch();
  const Reconciliation result = Run();
  EXPECT_TRUE(result.clean());
  EXPECT_EQ(result.jobs, 20u);
  EXPECT_EQ(result.batches, 20u);
  EXPECT_TRUE(result.findings.empty());
}

TEST_F(ReconcileTest, NamesOfTheSameServerTwiceAreRefused) {
  const std::vector<LogFile> log = *FindFiles({File(1)});
  EXPECT_THAT(Reconcile({log, log, log}, {}).status().message(), HasSubstr("different servers"));
}

// ---- What only some saw ----

TEST_F(ReconcileTest, AComputedBatchThatOneLogLacks) {
  GoodBatch();
  GoodBatch({0, 2});
  GoodBatch();
  const Reconciliation result = Run();
  Expect(result, FindingKind::kJobMissing, false, "its log lacks lines");
  EXPECT_EQ(result.unexplained, 1u);
  EXPECT_EQ(result.by_kdc.at("kdc1"), 1u);
  EXPECT_EQ(result.by_principal.at(kAlice), 1u);
  EXPECT_FALSE(result.findings[0].job.told[1]);
}

TEST_F(ReconcileTest, ARemovedTail) {
  for (int i = 0; i < 4; ++i) GoodBatch();
  Rewrite(2, [](auto& lines) { lines.resize(lines.size() - 2); });
  const Reconciliation result = Run();
  Expect(result, FindingKind::kJobMissing, false, "server 2 has no line of it and has a log that "
                                                  "ends before");
  EXPECT_EQ(result.unexplained, 2u);
}

TEST_F(ReconcileTest, AKdcThatToldOnlyTwo) {
  GoodBatch();
  Unbatched(0, Job(99, "DEADLINE"));
  Unbatched(1, Job(99, "DEADLINE"));
  GoodBatch();
  Expect(Run(), FindingKind::kJobMissing, false, "the KDC told only some of the servers");
}

// A flood of refused jobs: each server lists a few, and counts the others.
class CountedTest : public ReconcileTest {
 protected:
  void Counted(int party, uint64_t count, const std::string& kdc = "kdc1") {
    const std::string since =
        absl::FormatTime(absl::RFC3339_full, clock_.Now() - absl::Seconds(1), absl::UTCTimeZone());
    Write(party, "counted",
          {{"since", since},
           {"counted", {{{"kdc", kdc}, {"op", "LOGIN"}, {"verdict", "QUOTA"}, {"count", count}}}}});
  }
};

TEST_F(CountedTest, RefusedJobsThatAServerCountedAreNormal) {
  GoodBatch();
  ++batch_;
  Batch(0, {Job(101, "QUOTA"), Job(102, "QUOTA")});
  ++batch_;
  Batch(1, {Job(103, "QUOTA")});
  for (int party : kAll) Counted(party, 3);
  GoodBatch();
  Expect(Run(), FindingKind::kJobMissing, true, "counted refused jobs of that KDC");
}

TEST_F(CountedTest, ACountExcusesNoMoreThanItCounts) {
  for (uint64_t id = 100; id < 105; ++id) Batch(0, {Job(id, "QUOTA")});
  for (int party : {1, 2}) Counted(party, 3);
  GoodBatch();
  EXPECT_EQ(Run().unexplained, 2u);
}

TEST_F(CountedTest, ACountExcusesNothingThatWasComputed) {
  Batch(0, {Job(++id_, "OK")});
  Fields guess = Job(++id_, "BAD_TAG");
  guess["computed"] = true;
  Batch(0, {guess});
  Batch(0, {Job(++id_, "UNAVAILABLE")}, "v", "the connection broke");
  for (int party : {1, 2}) Counted(party, 1000);
  GoodBatch();
  EXPECT_EQ(Run().unexplained, 3u);
}

TEST_F(CountedTest, ACountOfAnotherTimeOrKdcExcusesNothing) {
  for (int party : {1, 2}) Counted(party, 1000);
  Pass(absl::Minutes(1));
  Batch(0, {Job(101, "QUOTA")});
  for (int party : {1, 2}) Counted(party, 1000, "kdc2");
  Pass(absl::Minutes(1));
  for (int party : {1, 2}) Counted(party, 1000);
  EXPECT_EQ(Run().unexplained, 1u);
}

TEST_F(ReconcileTest, AServerThatWasDownIsNormal) {
  GoodBatch();
  Stop(1);
  Pass(absl::Seconds(60));
  for (int party : {0, 2}) Unbatched(party, Job(99, "UNAVAILABLE"));
  Returns("boot-a");
  Expect(Run(), FindingKind::kJobMissing, true, "server 1 has no line of it and was stopped");
}

TEST_F(ReconcileTest, AStopExplainsNoBatchThatWasComputed) {
  GoodBatch();
  Stop(1);
  Pass(absl::Seconds(60));
  GoodBatch({0, 2});
  Pass(absl::Seconds(60));
  Start(1, "boot-a");
  Expect(Run(), FindingKind::kJobMissing, false, "that server took part");
}

struct Lost {
  int batches;
  const char* boot;
  bool explained;
  const char* why;
};
class LostBatches : public ReconcileTest, public ::testing::WithParamInterface<Lost> {};

TEST_P(LostBatches, BeforeAStart) {
  GoodBatch();
  for (int i = 0; i < GetParam().batches; ++i) GoodBatch({0, 2});
  Returns(GetParam().boot);
  Expect(Run(), FindingKind::kJobMissing, GetParam().explained, GetParam().why);
}

// One batch dies with a killed server, two do not; a power failure takes the last second.
INSTANTIATE_TEST_SUITE_P(All, LostBatches,
                         ::testing::Values(Lost{1, "boot-a", true, "was killed or crashed"},
                                           Lost{2, "boot-a", true, "was killed or crashed"},
                                           Lost{3, "boot-a", false, "was killed or crashed"},
                                           Lost{2, "boot-b", true, "lost power"}));

TEST_F(ReconcileTest, APowerFailureDoesNotTakeMinutes) {
  GoodBatch();
  for (int i = 0; i < 10; ++i) GoodBatch({0, 2});
  Returns("boot-b");
  const Reconciliation result = Run();
  EXPECT_FALSE(result.clean());
  EXPECT_EQ(result.unexplained, 7u) << "all but those of the last two seconds";
}

TEST_F(ReconcileTest, AServerThatCouldNotWriteIsNormal) {
  GoodBatch();
  const std::string since = absl::FormatTime(absl::RFC3339_full, clock_.Now(), absl::UTCTimeZone());
  GoodBatch({0, 2});
  Pass(absl::Seconds(60));
  Write(1, "audit", {{"event", "resumed"}, {"since", since}, {"reason", "disk full"}});
  GoodBatch();
  Expect(Run(), FindingKind::kJobMissing, true, "could not write its audit log");
}

TEST_F(ReconcileTest, FilesThatBeginLaterAreNotCompared) {
  for (int i = 0; i < 3; ++i) GoodBatch();
  Rewrite(1, [](auto& lines) { lines.erase(lines.begin(), lines.begin() + 3); });
  Expect(Run(), FindingKind::kJobMissing, true, "has no files given of that time");
}

TEST_F(ReconcileTest, ANewLogThatHidesTheOldOne) {
  for (int i = 0; i < 3; ++i) GoodBatch();
  logs_[1].reset();
  unlink(File(1).c_str());
  Open(1);
  Pass(absl::Seconds(20));
  Start(1, "boot-a");
  GoodBatch();
  Expect(Run(), FindingKind::kJobMissing, false, "had no log yet");
}

TEST_F(ReconcileTest, TooMuchToRememberIsAnError) {
  for (int i = 0; i < 5; ++i) GoodBatch({0, 1});
  ReconcileOptions options;
  options.max_unmatched = 4;
  EXPECT_THAT(TryRun(options).status().message(), HasSubstr("--since and --until"));
  options.max_unmatched = 5;
  EXPECT_TRUE(TryRun(options).ok());
}

// ---- What they say differently ----

struct Telling {
  std::string verdict = "OK", digest = "d", view = "v", error = "";
};
struct Different {
  std::array<Telling, kServers> by;
  FindingKind kind;
  bool explained;
  const char* why;
};
class DifferentTellings : public ReconcileTest, public ::testing::WithParamInterface<Different> {};

TEST_P(DifferentTellings, OfOneJob) {
  GoodBatch();
  batch_ = 50;
  for (int party : kAll) {
    const Telling& told = GetParam().by[party];
    Batch(party, {Job(50, told.verdict, told.digest)}, told.view, told.error);
  }
  Expect(Run(), GetParam().kind, GetParam().explained, GetParam().why);
}

const Telling kGood, kBroken = {"UNAVAILABLE", "d", "v", "connection closed"};
INSTANTIATE_TEST_SUITE_P(
    All, DifferentTellings,
    ::testing::Values(
        Different{{{{"INCONSISTENT"}, {"INCONSISTENT"}, {"INCONSISTENT", "other"}}},
                  FindingKind::kJobDiffers, false, "told the servers different things"},
        Different{{{kGood, {"REPLAY"}, kGood}}, FindingKind::kVerdictDiffers, false,
                  "one server says OK, another REPLAY"},
        Different{{{kGood, {"CLOCK_SKEW"}, kGood}}, FindingKind::kVerdictDiffers, true,
                  "the clocks of the servers differ"},
        Different{{{kGood, kGood, kBroken}}, FindingKind::kVerdictDiffers, true,
                  "the connection between the servers broke"},
        Different{{{{"OK", "d", "lie"}, kGood, kGood}}, FindingKind::kViewDiffers, false,
                  "batch 51/50"}));

TEST_F(ReconcileTest, ADeviationIsAFindingThatNothingExplains) {
  GoodBatch();
  Write(0, "deviation",
        {{"suspects", {1, 2}}, {"text", "two stories"}, {"ring", "ab"}, {"batch", 7}});
  for (int party : kAll) {
    Write(party, "admin",
          {{"call", "Readmit"}, {"who", "a"}, {"ended", party == 0}, {"result", "OK"}});
  }
  GoodBatch();
  Expect(Run(), FindingKind::kDeviation, false,
         "server 0 saw server 1 or server 2 deviate in batch ab/7: two stories");
}

TEST_F(ReconcileTest, KeysThatServersNameDifferently) {
  const auto batch = [&](const std::array<std::string, 3>& principals) {
    Pass(absl::Seconds(1));
    ++batch_;
    for (int party : kAll) {
      Fields job = Job(++id_, "OK");
      job["id"] = batch_;
      if (!principals[party].empty()) job["keys"] = {Key("seal", 2, principals[party])};
      Batch(party, {job});
    }
  };
  batch({"aa", "aa", "aa"});
  batch({"aa", "", ""});  // two that were not upgraded yet
  EXPECT_TRUE(Run().clean());
  batch({"aa", "bb", "aa"});
  Expect(Run(), FindingKind::kKeysDiffer, false, "name different principals for its keys");
}

TEST_F(ReconcileTest, ViewsDifferThoughTheThirdIsMissing) {
  ++batch_;
  for (int party : {0, 1}) Batch(party, {Job(1, "UNAVAILABLE")}, party == 0 ? "lie" : "truth", "e");
  Unbatched(2, Job(1, "DEADLINE"));
  const Reconciliation result = Run();
  EXPECT_EQ(result.unexplained, 1u);
  EXPECT_FALSE(result.clean());
}

// ATTACK. A KDC tells two servers different things while the third is down, or says that it was: what
// explains that the third has no line of it explains nothing of the two.
TEST_F(ReconcileTest, TwoThatDifferWhileTheThirdIsMissing) {
  struct Case {
    Telling one, other;
    FindingKind kind;
    const char* why;
  };
  const Case cases[] = {
      {{"INCONSISTENT"}, {"INCONSISTENT", "other"}, FindingKind::kJobDiffers, "different things"},
      {{"DEADLINE"}, {"DEADLINE", "other"}, FindingKind::kJobDiffers, "different things"},
      {{"OK"}, {"REPLAY"}, FindingKind::kVerdictDiffers, "one server says OK, another REPLAY"}};
  for (const Case& c : cases) {
    GoodBatch();
    const std::string since =
        absl::FormatTime(absl::RFC3339_full, clock_.Now(), absl::UTCTimeZone());
    Pass(absl::Seconds(30));
    ++batch_;
    ++id_;
    Batch(0, {Job(id_, c.one.verdict, c.one.digest)}, "v");
    Batch(2, {Job(id_, c.other.verdict, c.other.digest)}, "v");
    Pass(absl::Seconds(30));
    Write(1, "audit", {{"event", "resumed"}, {"since", since}, {"reason", "disk full"}});
    GoodBatch();
    ReconcileOptions only;
    only.since = clock_.Now() - absl::Seconds(50);
    Expect(Run(only), c.kind, false, c.why);
  }
}

TEST_F(ReconcileTest, KeysThatTwoNameDifferentlyWhileTheThirdIsMissing) {
  GoodBatch();
  Stop(1);
  Pass(absl::Seconds(30));
  ++batch_;
  for (int party : {0, 2}) {
    Fields job = Job(99, "OK");
    job["keys"] = {Key("seal", 2, party == 0 ? "aa" : "bb")};
    Batch(party, {job});
  }
  Returns("boot-a");
  const Reconciliation result = Run();
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].kind, FindingKind::kKeysDiffer);
}

TEST_F(ReconcileTest, ABrokenChainIsNotClean) {
  for (int i = 0; i < 3; ++i) GoodBatch();
  Rewrite(0, [](auto& lines) { lines[1][lines[1].find(kAlice)] = 'b'; });
  const Reconciliation result = Run();
  EXPECT_FALSE(result.clean());
  EXPECT_EQ(result.servers[0].chain.break_count, 1u);
  EXPECT_EQ(result.unexplained, 1u) << "whose job it was, the two others say otherwise";
}

// ---- Administrators ----

TEST_F(ReconcileTest, AnActThatOnlyOneServerSaw) {
  const Fields act = {{"call", "SetPolicy"}, {"who", "admin/root"}, {"handles", {"ab"}},
                      {"gate", 3}, {"result", "OK"}};
  for (int party : kAll) Write(party, "admin", act);
  EXPECT_TRUE(Run().clean());
  Write(1, "admin", act);
  const Reconciliation result = Run();
  Expect(result, FindingKind::kAdminMissing, false, "SetPolicy");
  EXPECT_THAT(result.findings[0].text, HasSubstr("by admin/root"));
}

// ATTACK. A log was rewritten, and says that somebody else did it.
TEST_F(ReconcileTest, AnActThatOneLogAscribesToAnother) {
  for (int party : kAll) {
    Write(party, "admin",
          {{"call", "SetPolicy"}, {"who", party == 1 ? "admin/bob" : "admin/mallory"},
           {"handles", {"ab"}}, {"gate", 3}, {"result", "OK"}});
  }
  const Reconciliation result = Run();
  Expect(result, FindingKind::kAdminMissing, false, "SetPolicy");
  EXPECT_EQ(result.unexplained, 2u);
}

TEST_F(ReconcileTest, AGuessThatOneLogAscribesToAnother) {
  GoodBatch();
  ++batch_;
  for (int party : kAll) {
    Fields guess = Job(99, "BAD_TAG", "d", party == 1 ? std::string(32, 'b') : kAlice);
    guess["computed"] = true;
    Batch(party, {guess});
  }
  Expect(Run(), FindingKind::kKeysDiffer, false, "different principals or operations of one job");
}

TEST_F(ReconcileTest, WhoDoesNotKnowWhoseAJobIsContradictsNobody) {
  for (int party : kAll) {
    Fields job = Job(99, "UNKNOWN_HANDLE", "d", party == 1 ? std::string(32, '0') : kAlice);
    if (party == 2) job["principal"] = "";
    Unbatched(party, job);
  }
  EXPECT_TRUE(Run().clean());
}

// ATTACK. Whoever has the role admin deletes a key at once at one server, for which it is unknown from
// now on, and for its grace time at the two others; or has one alone forget it for the history.
TEST_F(ReconcileTest, AnActThatServersWereToldDifferently) {
  const auto deleted = [&](bool now, const std::vector<std::string>& for_history) {
    for (int party : kAll) {
      Write(party, "admin",
            {{"call", "DeleteKeys"}, {"who", "admin/kadmind"}, {"handles", {"ab"}}, {"count", 1},
             {"now", now && party == 1},
             {"for_history", party == 1 ? for_history : std::vector<std::string>()},
             {"result", "OK"}});
    }
  };
  deleted(false, {});
  EXPECT_TRUE(Run().clean());
  deleted(true, {});
  Reconciliation result = Run();
  EXPECT_EQ(result.unexplained, 2u) << "what one was told, and what the others were";
  Expect(result, FindingKind::kAdminMissing, false, "now");
  deleted(false, {"ab"});
  result = Run();
  EXPECT_EQ(result.unexplained, 3u);
}

TEST_F(ReconcileTest, WhatOneServerRefusedOthersMayHaveDone) {
  Fields act = {{"call", "CommitKeys"}, {"who", "admin/root"}, {"transaction", "7a"}};
  for (int party : kAll) {
    act["result"] = party == 0 ? "UNAVAILABLE" : "OK";
    Write(party, "admin", act);
  }
  Expect(Run(), FindingKind::kAdminMissing, false, "server 0");
}

// A rename is staged by one call, and made by the CommitKeys of its transaction.
class RenameTest : public ReconcileTest {
 protected:
  void Act(int party, const std::string& call, Fields more = {},
           const std::string& result = "OK") {
    Fields act = {{"call", call}, {"who", "admin/kadmind"}, {"transaction", "7a"}};
    act.update(more);
    act["result"] = result;
    Write(party, "admin", act);
  }
  void Rename(int party, const std::string& to, const std::string& result = "OK") {
    const Fields key = {{"handle", "ab"}, {"new_handle", "cd"}, {"for_history", false}};
    Act(party, "RenameKeys",
        {{"principal", "alice@EXAMPLE.COM"}, {"new_principal", to}, {"keys", {key}}}, result);
  }
  void Stage(int party, int gate) {
    const Fields key = {{"handle", "ab"}, {"principal", "alice@EXAMPLE.COM"}, {"gate", gate}};
    Act(party, "StageKeys", {{"signer", "admin/root"}, {"keys", {key}}});
  }
};

TEST_F(RenameTest, OfAllThreeIsNormal) {
  for (int party : kAll) Rename(party, "bob@EXAMPLE.COM");
  for (int party : kAll) Act(party, "CommitKeys", {{"count", 1}});
  EXPECT_TRUE(Run().clean());
}

// ATTACK. One tool asks one server alone, or a server makes up that it was asked.
TEST_F(RenameTest, ThatOnlyOneServerSaw) {
  Rename(1, "bob@EXAMPLE.COM");
  GoodBatch();
  const Reconciliation result = Run();
  Expect(result, FindingKind::kAdminMissing, false, "RenameKeys");
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_THAT(result.findings[0].text, HasSubstr("by admin/kadmind: server 0 has no line of it"));
  EXPECT_THAT(result.findings[0].text, HasSubstr("bob@EXAMPLE.COM"));
}

// ATTACK. The same transaction, and another new name at one of them: who asks is bob here and root
// there.
TEST_F(RenameTest, ThatServersWereToldDifferently) {
  for (int party : kAll) Rename(party, party == 1 ? "root@EXAMPLE.COM" : "bob@EXAMPLE.COM");
  for (int party : kAll) Act(party, "CommitKeys", {{"count", 1}});
  const Reconciliation result = Run();
  Expect(result, FindingKind::kAdminMissing, false, "transaction");
  ASSERT_EQ(result.findings.size(), 3u) << "what one was told, what the others were, and the keys";
  EXPECT_THAT(result.findings[0].text, HasSubstr("server 1"));
}

// ATTACK. The same transaction and handles, and a gate that one server alone was told.
TEST_F(RenameTest, KeysStagedDifferentlyAreFoundToo) {
  for (int party : kAll) Stage(party, 1);
  for (int party : kAll) Act(party, "CommitKeys", {{"count", 1}});
  EXPECT_TRUE(Run().clean());
  for (int party : kAll) {
    Act(party, "StageKeys",
        {{"transaction", "7b"}, {"keys", {{{"handle", "ef"}, {"gate", party == 2 ? 3 : 1}}}}});
  }
  for (int party : kAll) Act(party, "CommitKeys", {{"transaction", "7b"}});
  const Reconciliation result = Run();
  Expect(result, FindingKind::kAdminMissing, false, "7b");
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_THAT(result.findings[0].text, HasSubstr("server 2"));
}

// Many keys are staged by several calls. A log that has not all of these, as it says itself, tells
// of fewer keys than the server has.
TEST_F(RenameTest, ALogThatCouldNotBeWrittenAmidATransactionContradictsNobody) {
  for (int party : kAll) Stage(party, 1);
  const std::string since = absl::FormatTime(absl::RFC3339_full, clock_.Now(), absl::UTCTimeZone());
  Pass(absl::Seconds(1));
  for (int party : {0, 1}) Stage(party, 2);
  Pass(absl::Seconds(1));
  Write(2, "audit", {{"event", "resumed"}, {"since", since}, {"reason", "disk full"}});
  for (int party : kAll) Act(party, "CommitKeys", {{"count", 2}});
  Expect(Run(), FindingKind::kAdminMissing, true, "server 2 could not write its audit log");
}

TEST_F(RenameTest, FilesThatBeginAmidATransactionContradictNobody) {
  for (int party : kAll) Stage(party, 1);
  Pass(absl::Seconds(1));
  for (int party : kAll) Stage(party, 2);
  for (int party : kAll) Act(party, "CommitKeys", {{"count", 2}});
  Rewrite(2, [](auto& lines) { lines.erase(lines.begin(), lines.begin() + 2); });
  Expect(Run(), FindingKind::kAdminMissing, true, "server 2 has no files given of that time");
}

// ATTACK. Nor does it excuse what the two others were told.
TEST_F(RenameTest, ALogThatCouldNotBeWrittenExcusesNobodyElse) {
  for (int party : kAll) Stage(party, party);
  const std::string since = absl::FormatTime(absl::RFC3339_full, clock_.Now(), absl::UTCTimeZone());
  Write(2, "audit", {{"event", "resumed"}, {"since", since}, {"reason", "disk full"}});
  for (int party : kAll) Act(party, "CommitKeys", {{"count", 1}});
  Expect(Run(), FindingKind::kAdminMissing, false, "differs at server 0 and server 1");
}

// A refresh in between has one server refuse; the tool takes it all back and begins again.
TEST_F(RenameTest, ThatWasGivenUpIsNormal) {
  Rename(0, "bob@EXAMPLE.COM");
  Rename(1, "bob@EXAMPLE.COM", "ABORTED");
  Rename(2, "bob@EXAMPLE.COM");
  for (int party : {0, 2}) Act(party, "AbortKeys", {{"count", 1}});
  EXPECT_TRUE(Run().clean());
}

// ---- Spans ----

TEST_F(ReconcileTest, OnlyTheSpanAskedForIsReported) {
  GoodBatch();
  GoodBatch({0, 1});
  const absl::Time after = clock_.Now() + absl::Milliseconds(500);
  GoodBatch();
  ReconcileOptions options;
  options.since = after;
  const Reconciliation later = Run(options);
  EXPECT_TRUE(later.clean());
  EXPECT_EQ(later.jobs, 1u);
  options = {};
  options.until = after;
  EXPECT_FALSE(Run(options).clean());
}

}  // namespace
}  // namespace mpckdc::audit
