// SPDX-License-Identifier: Apache-2.0
//
// Leaders and followers that say what they should not: three engines, whose frames are changed on
// the way, as one of them would send them that deviates. Both followers are told the same.
#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/agree/agreement.h"
#include "mpc-server/agree/job_queue.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/testing/cts.h"
#include "mpc-server/testing/jobs.h"

namespace mpckdc {
namespace {

class VoteTest : public ::testing::Test {
 protected:
  using Frame = MemoryRing::Intercepted;

  VoteTest() : stock_(realm_.AddKey("stock@EXAMPLE.COM", KeyClass::kUser, kEnctypeAes256Sha1)) {}

  // From the next session on: every proposal that has entries, while `change_` is set.
  void Intercept() {
    realm_.StopAll();
    realm_.hub().SetInterceptor([this](Frame& frame) {
      if (frame.type != FrameType::kAgreement || !active_) return;
      const std::string bytes(AsText(frame.payload));
      if (frame.from == kLeader) {
        Proposal proposal = *DecodeProposal(bytes);
        if (proposal.entries.empty() || !change_) return;
        if (told_ >= 0 && frame.to != told_) return;
        change_(proposal);
        frame.instead = EncodeProposal(proposal);
      } else if (frame.to == kLeader) {
        Vote vote = *DecodeVote(bytes);
        if (!vote.codes.empty()) votes_.Add(vote);
        if (vote.codes.empty() || !change_vote_) return;
        change_vote_(vote);
        frame.instead = EncodeVote(vote);
      }
    });
    realm_.StartAll();
    ASSERT_TRUE(realm_.WaitConnected());
  }
  void Submit(int party, const Job& job) {
    ++open_;
    realm_.engine(party).Submit(realm_.kdc(), job, [this](JobResult) { --open_; });
  }
  void SubmitToAll(const Job& job) {
    for (int p = 0; p < kParties; ++p) Submit(p, job);
  }
  // From now on nothing is changed, so the next session goes on.
  void EndChanges() {
    active_ = false;
    EXPECT_TRUE(Eventually([&] { return open_ == 0; }));
  }

  // Sends the job with this change in force, until a server gives the session up for this reason.
  void ExpectGivenUp(int party, const Job& job, const std::string& why) {
    Intercept();
    active_ = true;
    SubmitToAll(job);
    EXPECT_TRUE(Eventually([&] {
      const std::vector<std::string> lost = realm_.observer(party).Lost();
      return std::any_of(lost.begin(), lost.end(), [&](const std::string& text) {
        return text.find(why) != std::string::npos;
      });
    })) << ::testing::PrintToString(realm_.observer(party).Lost());
    EndChanges();
  }
  // What the followers voted on the job, with this change in force.
  void ExpectVotes(const Job& job, Verdict want) {
    Intercept();
    active_ = true;
    SubmitToAll(job);
    EXPECT_TRUE(Eventually([&] { return votes_.All().size() >= 2; }));
    EndChanges();
    for (const Vote& vote : votes_.All()) {
      EXPECT_EQ(static_cast<Verdict>(vote.codes[0]), want);
    }
  }

  std::atomic<bool> active_{false};
  std::function<void(Proposal&)> change_;
  std::atomic<int> told_{-1};  // the one follower to whom it is changed; or both
  std::function<void(Vote&)> change_vote_;
  Told<Vote> votes_;  // as the followers sent them to the leader, while changes are in force
  std::atomic<int> open_{0};
  Realm realm_;
  const PlainKey stock_;
};

// ---- What a follower refuses of a proposal ----

TEST_F(VoteTest, ALongJobOnTheShortRing) {
  change_ = [](Proposal& proposal) {
    proposal.kind = BatchKind::kJobs;
    proposal.protocol = CtsProtocol::kReplicated;
  };
  ExpectVotes(realm_.Login(stock_), Verdict::kUnavailable);
}

TEST_F(VoteTest, AShortJobOnTheLongRing) {
  change_ = [](Proposal& proposal) { proposal.kind = BatchKind::kLongJobs; };
  ExpectVotes(realm_.Login(realm_.alice), Verdict::kUnavailable);
}

// ---- Which protocol ----

void Garble(Proposal& proposal) { proposal.protocol = CtsProtocol::kGarbled; }
void ComputeInRounds(Proposal& proposal) { proposal.protocol = CtsProtocol::kReplicated; }

TEST_F(VoteTest, AGarbledBatchOfALongMessage) {
  const PlainKey service =
      realm_.AddKey("HTTP/www@EXAMPLE.COM", KeyClass::kService, kEnctypeAes256Sha1);
  change_ = Garble;
  const MakeMacPart mac = {service.info.handle, kUsagePacChecksum,
                           std::string(limits::kGarbledMessageBytes + 1, 'd')};
  ExpectVotes(realm_.MakeChecksums({mac}), Verdict::kUnavailable);
}

// Each of them may be garbled, and the last one not with the others.
TEST_F(VoteTest, AGarbledBatchOfTooManyParts) {
  const PlainKey service =
      realm_.AddKey("HTTP/www@EXAMPLE.COM", KeyClass::kService, kEnctypeAes256Sha1);
  const MakeMacPart mac = {service.info.handle, kUsagePacChecksum, "short"};
  std::vector<Job> jobs;
  std::vector<ProposalEntry> entries;
  for (size_t parts = 0; parts <= limits::kGarbledParts; parts += 4) {
    Job& job = jobs.emplace_back(realm_.MakeChecksums({mac, mac, mac, mac}));
    job.deadline_ms = 8000;
    entries.push_back({KdcKey(realm_.kdc()), job.id, JobDigest(realm_.kdc(), job), kVoteOk, {{}}});
  }
  // The leader has none of them but the last, which it would garble alone.
  change_ = [&](Proposal& proposal) {
    ASSERT_EQ(proposal.protocol, CtsProtocol::kGarbled);
    for (ProposalEntry& entry : entries) entry.keys = proposal.entries[0].keys;
    proposal.entries.insert(proposal.entries.begin(), entries.begin(), entries.end() - 1);
  };
  Intercept();
  for (size_t i = 0; i + 1 < jobs.size(); ++i) {
    for (const int follower : {1, 2}) Submit(follower, jobs[i]);
  }
  active_ = true;
  SubmitToAll(jobs.back());
  EXPECT_TRUE(Eventually([&] { return votes_.All().size() >= 2; }));
  EndChanges();
  for (const Vote& vote : votes_.All()) {
    ASSERT_EQ(vote.codes.size(), jobs.size());
    for (size_t i = 0; i + 1 < jobs.size(); ++i) EXPECT_EQ(vote.codes[i], kVoteOk) << i;
    EXPECT_EQ(static_cast<Verdict>(vote.codes.back()), Verdict::kUnavailable);
  }
}

TEST_F(VoteTest, AProtocolThatItsAdministratorRulesOut) {
  for (const int follower : {1, 2}) {
    realm_.options(follower).protocol = ProtocolSetting::kReplicated;
  }
  change_ = Garble;
  ExpectVotes(realm_.Login(stock_), Verdict::kUnavailable);
}

TEST_F(VoteTest, RoundsWhereItsAdministratorForcesTheOther) {
  for (const int follower : {1, 2}) {
    realm_.options(follower).protocol = ProtocolSetting::kGarbled;
  }
  change_ = ComputeInRounds;
  ExpectVotes(realm_.Login(stock_), Verdict::kUnavailable);
}

// The choice is in what the votes are about.
TEST_F(VoteTest, TwoFollowersAreToldDifferentProtocols) {
  change_ = ComputeInRounds;
  told_ = 2;
  ExpectGivenUp(1, realm_.Login(stock_), "agreement: party 2 votes on proposal ");
}

TEST_F(VoteTest, AnotherJobThanItHas) {
  change_ = [](Proposal& proposal) { proposal.entries[0].digest[5] ^= 1; };
  ExpectVotes(realm_.Login(realm_.alice), Verdict::kInconsistent);
}

// More than the locked memory is meant to hold. The leader has only the first of the jobs, and
// refuses the others itself, so that nothing is computed.
TEST_F(VoteTest, TooLargeABatch) {
  const std::string data(limits::kMaxMacDataBytes, 'd');
  const MakeMacPart mac = {realm_.tgt.info.handle, kUsagePacChecksum, data};
  std::vector<Job> jobs;
  std::vector<ProposalEntry> entries;
  for (size_t blocks = 0; blocks <= 2 * limits::kMaxBatchBlocks;) {
    Job& job = jobs.emplace_back(realm_.MakeChecksums({mac, mac, mac, mac}));
    job.deadline_ms = 8000;
    entries.push_back({KdcKey(realm_.kdc()), job.id, JobDigest(realm_.kdc(), job),
                       CodeOf(Verdict::kUnavailable)});
    blocks += BlocksOfJob(job);
  }
  change_ = [&](Proposal& proposal) {
    proposal.entries.insert(proposal.entries.end(), entries.begin() + 1, entries.end());
  };
  Intercept();
  for (size_t i = 1; i < jobs.size(); ++i) {
    for (const int follower : {1, 2}) Submit(follower, jobs[i]);
  }
  active_ = true;
  Job last = realm_.MakeChecksums({mac, mac, mac, mac});  // in the place of the first
  SubmitToAll(last);
  EXPECT_TRUE(Eventually([&] { return votes_.All().size() >= 2; }));
  EndChanges();
  for (const Vote& vote : votes_.All()) {
    ASSERT_EQ(vote.codes.size(), jobs.size());
    EXPECT_EQ(vote.codes[1], kVoteOk);
    EXPECT_EQ(vote.codes[vote.codes.size() - 2], kVoteOk);
    EXPECT_EQ(static_cast<Verdict>(vote.codes.back()), Verdict::kUnavailable);
  }
}

TEST_F(VoteTest, ANumberThatIsNotTheNext) {
  change_ = [](Proposal& proposal) { ++proposal.number; };
  ExpectGivenUp(1, realm_.Login(realm_.alice), "agreement: proposal ");
}

TEST_F(VoteTest, MoreThanOneKeyToDraw) {
  change_ = [](Proposal& proposal) {
    proposal.kind = BatchKind::kDraw;
    proposal.entries.push_back({GroupId{1}, 0, {}, kVoteOk});
  };
  ExpectGivenUp(2, realm_.Login(realm_.alice), "more than one key to draw");
}

TEST_F(VoteTest, TooManyKeysToVerify) {
  change_ = [](Proposal& proposal) {
    proposal.kind = BatchKind::kVerify;
    for (uint64_t i = 1; i <= kVerifyKeysPerBatch; ++i) {
      proposal.entries.push_back({GroupId{1}, i, {}, kVoteOk});
    }
  };
  ExpectGivenUp(1, realm_.Login(realm_.alice), "too many keys to verify");
}

// ---- What is refused of a vote ----

TEST_F(VoteTest, AVoteOnMoreEntriesThanThereAre) {
  change_vote_ = [](Vote& vote) {
    vote.codes.push_back(kVoteOk);
    vote.keys.emplace_back();
  };
  ExpectGivenUp(kLeader, realm_.Login(realm_.alice), "votes on 2 entries of 1");
}

TEST_F(VoteTest, AVoteOnFewerEntries) {
  change_vote_ = [](Vote& vote) {
    vote.codes.clear();
    vote.keys.clear();
  };
  ExpectGivenUp(kLeader, realm_.Login(realm_.alice), "votes on 0 entries of 1");
}

TEST_F(VoteTest, AVoteOnAnotherProposal) {
  change_vote_ = [](Vote& vote) { vote.proposal[9] ^= 1; };
  ExpectGivenUp(kLeader, realm_.Login(realm_.alice), "and was told another one than this server's");
}

// ---- What the three must have alike ----

TEST_F(VoteTest, AnotherMaxRenewableLifeIsNoSession) {
  realm_.Stop(1);
  realm_.options(1).max_renewable_life += absl::Hours(1);
  realm_.Start(1);
  for (int p = 0; p < kParties; ++p) {
    EXPECT_TRUE(Eventually([&] {
      const std::vector<std::string> lost = realm_.observer(p).Lost();
      return !lost.empty() && lost.back().find("max_renewable_life is ") != std::string::npos;
    })) << p;
  }
  realm_.Stop(1);
  realm_.options(1).max_renewable_life -= absl::Hours(1);
  realm_.Start(1);
  EXPECT_TRUE(realm_.WaitConnected());
}

// A smaller clock_skew of one server is that of what all three compute together.
class SkewTest : public VoteTest, public ::testing::WithParamInterface<ProtocolSetting> {};

TEST_P(SkewTest, TheSmallestOfThreeDecidesWhatIsComputed) {
  realm_.options(1).protocol = GetParam();
  realm_.options(2).clock_skew = absl::Seconds(60);
  realm_.RestartAll();
  const Job late = realm_.Login(stock_, realm_.Preauth(stock_, absl::Seconds(-120)));
  const PerParty<JobResult> results = realm_.RunEach(late);
  EXPECT_VERDICT(results[0], Verdict::kInconsistent);
  EXPECT_VERDICT(results[1], Verdict::kInconsistent);
  EXPECT_VERDICT(results[2], Verdict::kClockSkew);
  EXPECT_VERDICT(realm_.Run(realm_.Login(stock_, realm_.Preauth(stock_, absl::Seconds(-30)))),
                 Verdict::kOk);
  ExpectComputedBy(realm_, GetParam());
}

// ATTACK. One that lies about it: what it has the others leave out is an outage, and no wrong clock of the
// client's, which krb5kdc believes when all three say so.
TEST_P(SkewTest, OneServerAloneMakesNobodysClockWrong) {
  realm_.options(1).protocol = GetParam();
  realm_.options(2).clock_skew = absl::Milliseconds(1);
  realm_.RestartAll();
  const PerParty<JobResult> results =
      realm_.RunEach(realm_.Login(stock_, realm_.Preauth(stock_, absl::Seconds(-20))));
  for (const int honest : {0, 1}) {
    EXPECT_VERDICT(results[honest], Verdict::kInconsistent);
    EXPECT_THAT(results[honest].judgement.detail,
                ::testing::HasSubstr("smallest clock_skew"));
  }
}

INSTANTIATE_TEST_SUITE_P(Protocols, SkewTest, ::testing::ValuesIn(kForcedProtocols));

}  // namespace
}  // namespace mpckdc
