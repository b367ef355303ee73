// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/agreement.h"

#include "gtest/gtest.h"
#include "mpc-server/share/deviation.h"

namespace mpckdc {
namespace {

Proposal Example() {
  Proposal p;
  p.kind = BatchKind::kJobs;
  p.number = 77;
  p.time = absl::FromUnixMicros(1'800'000'000'123'456);
  p.first_nonce = {1, 2, 3, 4, 0, 7, 0, 0, 0, 0, 0, 9};
  p.nonces = 5;
  for (uint8_t i = 1; i <= 3; ++i) p.entries.push_back({GroupId{i}, i, Digest{i}, kVoteOk});
  p.entries[1].code = CodeOf(Verdict::kUnknownHandle);
  p.entries[0].keys = {{{1}, {2}}, {{3}, {4}}};
  p.entries[2].keys = {{{5}, {6}}};
  return p;
}

TEST(Agreement, ProposalRoundTrip) {
  const auto p = DecodeProposal(EncodeProposal(Example()));
  ASSERT_TRUE(p.ok()) << p.status();
  EXPECT_EQ(p->kind, BatchKind::kJobs);
  EXPECT_EQ(p->number, 77u);
  EXPECT_EQ(p->time, Example().time);
  EXPECT_EQ(p->first_nonce, Example().first_nonce);
  EXPECT_EQ(p->nonces, 5u);
  EXPECT_EQ(p->entries, Example().entries);
}

TEST(Agreement, EveryTruncationAndExtensionIsRefused) {
  const std::string proposal = EncodeProposal(Example());
  const std::string vote =
      EncodeVote({77, Digest{1}, absl::UnixEpoch(), {}, {1, 0, 6}, {{{{1}, {2}}}, {}, {}}});
  const std::string greeting =
      EncodeGreeting({Nonce{1}, absl::UnixEpoch(), absl::Hours(1), absl::Milliseconds(1500)});
  EXPECT_EQ(DecodeGreeting(greeting)->clock_skew, absl::Milliseconds(1500));
  for (size_t size = 0; size < proposal.size(); ++size) {
    EXPECT_FALSE(DecodeProposal(proposal.substr(0, size)).ok()) << size;
  }
  for (size_t size = 0; size < vote.size(); ++size) {
    EXPECT_FALSE(DecodeVote(vote.substr(0, size)).ok()) << size;
  }
  for (size_t size = 0; size < greeting.size(); ++size) {
    EXPECT_FALSE(DecodeGreeting(greeting.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(DecodeProposal(proposal + "x").ok());
  EXPECT_FALSE(DecodeVote(vote + "x").ok());
  EXPECT_FALSE(DecodeGreeting(greeting + "x").ok());
}

TEST(Agreement, KeysOfAVoteAreReadBack) {
  const Vote vote = {77, Digest{1}, absl::UnixEpoch(), {}, {1, 6}, {{{{1}, {2}}, {{3}, {4}}}, {}}};
  const auto read = DecodeVote(EncodeVote(vote));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->codes, vote.codes);
  EXPECT_EQ(read->keys, vote.keys);
  Vote many = vote;
  many.keys[1].resize(kMaxKeysOfEntry + 1);
  EXPECT_FALSE(DecodeVote(EncodeVote(many)).ok());
}

// doc/jobs.md: which bytes say it.
TEST(Agreement, TheProtocolIsTheThirdByte) {
  Proposal p = Example();
  EXPECT_EQ(EncodeProposal(p)[2], 1);
  p.kind = BatchKind::kLongJobs;
  p.protocol = CtsProtocol::kGarbled;
  std::string bytes = EncodeProposal(p);
  EXPECT_EQ(bytes[2], 2);
  EXPECT_EQ(DecodeProposal(bytes)->protocol, CtsProtocol::kGarbled);
  for (const char unknown : {0, 3, 127}) {
    bytes[2] = unknown;
    EXPECT_TRUE(absl::IsDataLoss(DecodeProposal(bytes).status())) << int{unknown};
  }
  for (const BatchKind kind : {BatchKind::kDraw, BatchKind::kVerify}) {
    p.kind = kind;
    EXPECT_EQ(DecodeProposal(EncodeProposal(p))->protocol, CtsProtocol::kGarbled);
  }
  p.kind = BatchKind::kJobs;
  EXPECT_TRUE(absl::IsDataLoss(DecodeProposal(EncodeProposal(p)).status()));
}

TEST(Agreement, TheProtocolOfGcmPartsIsTheFourthByte) {
  Proposal p = Example();
  EXPECT_EQ(EncodeProposal(p)[3], 1);
  p.of_gcm = CtsProtocol::kGarbled;
  for (const BatchKind kind : {BatchKind::kJobs, BatchKind::kLongJobs}) {
    p.kind = kind;
    std::string bytes = EncodeProposal(p);
    EXPECT_EQ(bytes[3], 2);
    EXPECT_EQ(DecodeProposal(bytes)->of_gcm, CtsProtocol::kGarbled);
    for (const char unknown : {0, 3, 127}) {
      bytes[3] = unknown;
      EXPECT_TRUE(absl::IsDataLoss(DecodeProposal(bytes).status())) << int{unknown};
    }
  }
  for (const BatchKind kind : {BatchKind::kDraw, BatchKind::kVerify}) {
    p.kind = kind;
    EXPECT_TRUE(absl::IsDataLoss(DecodeProposal(EncodeProposal(p)).status()));
  }
}

TEST(Agreement, LinesOfAVoteAreReadBack) {
  Vote vote = {77, Digest{1}, absl::UnixEpoch(), {}, {1}, {{}}};
  vote.lines.prev = {absl::Microseconds(1234), 125'000'000};
  vote.lines.next = {absl::Microseconds(UINT32_MAX), UINT64_MAX};
  const std::string bytes = EncodeVote(vote);
  EXPECT_EQ(DecodeVote(bytes)->lines, vote.lines);
  EXPECT_EQ(bytes.substr(45, 12), std::string("\0\0\x04\xd2\0\0\0\0\x07\x73\x59\x40", 12));
  vote.lines.prev.distance = absl::InfiniteDuration();
  vote.lines.next.distance = -absl::Seconds(1);
  const LineReport read = DecodeVote(EncodeVote(vote))->lines;
  EXPECT_EQ(read.prev.distance, absl::Microseconds(UINT32_MAX));
  EXPECT_EQ(read.next.distance, absl::ZeroDuration());
}

TEST(Agreement, AGreetingSaysWhatItsAdministratorForces) {
  const Greeting greeting = {{}, absl::UnixEpoch(), {}, {}, ProtocolSetting::kGarbled};
  std::string bytes = EncodeGreeting(greeting);
  EXPECT_EQ(DecodeGreeting(bytes)->protocol, ProtocolSetting::kGarbled);
  bytes.back() = 3;
  EXPECT_TRUE(absl::IsDataLoss(DecodeGreeting(bytes).status()));
}

TEST(Agreement, LyingProposalsAreRefused) {
  Proposal p = Example();
  p.entries[2] = p.entries[0];
  EXPECT_EQ(SuspectsOf(DecodeProposal(EncodeProposal(p)).status()), Suspects::One(kLeader));
  p = Example();
  p.nonces = 25;
  EXPECT_FALSE(DecodeProposal(EncodeProposal(p)).ok());
  p = Example();
  p.entries[0].code = kVoteMissing;
  EXPECT_FALSE(DecodeProposal(EncodeProposal(p)).ok());
  std::string bytes = EncodeProposal(Example());
  bytes[1] = 9;
  EXPECT_FALSE(DecodeProposal(bytes).ok());
}

TEST(Agreement, Combine) {
  const VoteCode ok = kVoteOk, missing = kVoteMissing, bad = CodeOf(Verdict::kInconsistent);
  EXPECT_EQ(Combine({ok, ok, ok}).code, ok);
  EXPECT_EQ(Combine({ok, missing, ok}).code, missing);
  EXPECT_EQ(Combine({ok, missing, bad}).code, missing);
  EXPECT_EQ(Combine({bad, missing, ok}).code, missing);
  EXPECT_EQ(Combine({bad, missing, ok}).by, 1);
  EXPECT_EQ(Combine({ok, ok, bad}).code, bad);
  EXPECT_EQ(Combine({ok, ok, bad}).by, 2);
}

TEST(Agreement, KdcKeyBindsNameAndSession) {
  KdcIdentity a{"kdc1", {}}, b{"kdc2", {}}, c{"kdc1", {1}};
  EXPECT_NE(KdcKey(a), KdcKey(b));
  EXPECT_NE(KdcKey(a), KdcKey(c));
}

}  // namespace
}  // namespace mpckdc
