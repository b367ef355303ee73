// SPDX-License-Identifier: Apache-2.0
//
// Proposals, votes and greetings of any bytes: refused, or read as what they say and nothing beside
// it, so that what a server hashes is what it understood.
#include <cstdio>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "mpc-server/agree/agreement.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/testing/mutations.h"

namespace mpckdc {
namespace {

constexpr int kRuns = 60'000;

EntryTags SomeTags(Mutations& mutations) {
  EntryTags tags(mutations.Below(4));
  for (RecordTags& tag : tags) {
    for (auto* half : {&tag.with_prev, &tag.with_next}) {
      for (auto& byte : *half) byte = static_cast<uint8_t>(mutations.Below(256));
    }
  }
  return tags;
}

// Of every kind and either protocol, where it may be.
Proposal SomeProposal(Mutations& mutations) {
  Proposal p;
  p.kind = static_cast<BatchKind>(1 + mutations.Below(kLastBatchKind));
  if (p.kind == BatchKind::kLongJobs && mutations.Chance(2)) p.protocol = CtsProtocol::kGarbled;
  const bool jobs = p.kind == BatchKind::kLongJobs || p.kind == BatchKind::kJobs;
  if (jobs && mutations.Chance(2)) p.of_gcm = CtsProtocol::kGarbled;
  p.number = static_cast<uint32_t>(mutations.Below(UINT32_MAX));
  p.time = absl::FromUnixMicros(static_cast<int64_t>(mutations.Below(1ull << 62)));
  const size_t entries = mutations.Below(4);
  p.nonces = static_cast<uint32_t>(entries);
  for (size_t i = 0; i < entries; ++i) {
    p.entries.push_back({GroupId{1}, i, Digest{2}, kVoteOk, SomeTags(mutations)});
  }
  return p;
}

Vote SomeVote(Mutations& mutations) {
  Vote v = {77, Digest{1}, absl::FromUnixSeconds(1'800'000'000), {}, {}, {}};
  v.lines.prev = {absl::Microseconds(mutations.Below(UINT32_MAX)), mutations.Below(UINT64_MAX)};
  v.lines.next = {absl::Microseconds(mutations.Below(1000)), 0};
  for (size_t left = mutations.Below(4); left > 0; --left) {
    v.codes.push_back(mutations.Chance(2) ? kVoteOk : kVoteMissing);
    v.keys.push_back(SomeTags(mutations));
  }
  return v;
}

Greeting SomeGreeting(Mutations& mutations) {
  Greeting g;
  g.time = absl::FromUnixSeconds(1'800'000'000);
  g.max_renewable_life = absl::Hours(24 * 7);
  g.clock_skew = absl::Minutes(5);
  g.protocol = static_cast<ProtocolSetting>(mutations.Below(kLastProtocolSetting + 1));
  g.epoch.epoch = mutations.Below(9);
  g.epoch.began_by = RefreshId{3};
  g.epoch.refresh = mutations.Below(2) == 1;
  g.epoch.receiving = mutations.Below(2) == 1;
  g.epoch.replace = static_cast<uint8_t>(mutations.Below(4));
  if (mutations.Below(2) == 1) g.epoch.prepared = RefreshId{5};
  return g;
}

// What is taken of altered messages says the same bytes again.
template <class Draw, class Encode, class Decode>
void ExpectReadOrRefused(Draw draw, Encode encode, Decode decode) {
  Mutations mutations(1);
  size_t taken = 0, refused = 0;
  for (int i = 0; i < kRuns; ++i) {
    const std::string good = encode(draw(mutations));
    const auto same = decode(good);
    ASSERT_TRUE(same.ok()) << same.status();
    ASSERT_EQ(encode(*same), good);
    std::vector<uint8_t> bytes(good.begin(), good.end());
    if (mutations.Chance(2)) {
      mutations.AlterLength(bytes);
    } else {
      mutations.Alter(absl::MakeSpan(bytes));
    }
    const std::string altered(AsText(bytes));
    const auto read = decode(altered);
    ++(read.ok() ? taken : refused);
    if (read.ok()) {
      ASSERT_EQ(encode(*read), altered);
    }
  }
  std::printf("%zu refused, %zu are messages too\n", refused, taken);
  EXPECT_GT(taken, 1000u) << "else little beyond the first bytes was read";
  EXPECT_GT(refused, 1000u);
}

TEST(AnyAgreementTest, Proposals) {
  ExpectReadOrRefused(SomeProposal, EncodeProposal, DecodeProposal);
}
TEST(AnyAgreementTest, Votes) { ExpectReadOrRefused(SomeVote, EncodeVote, DecodeVote); }
TEST(AnyAgreementTest, Greetings) {
  ExpectReadOrRefused(SomeGreeting, EncodeGreeting, DecodeGreeting);
}

}  // namespace
}  // namespace mpckdc
