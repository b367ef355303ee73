// SPDX-License-Identifier: Apache-2.0
//
// A pre-auth that is presented again is worth what it was worth once: any sequence of repeats, by
// any KDC, at two servers of a party that share a store, with restarts in between.
#include "mpc-server/judge/budget.h"

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/judge/replay_cache.h"
#include "mpc-server/testing/memory_engine.h"
#include "mpc-server/testing/records.h"

namespace mpckdc {
namespace {

using ::testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
const KdcIdentity kKdc{"kdc1", {1}}, kOther{"kdc2", {1}};
const Handle kUser{1}, kKrbtgt{2}, kKadmin{3};

enum class Parts { kAll, kTicketAndChecksum, kReply, kTicket, kKadminTicket, kNothing };

Job JobOf(Parts parts) {
  Job job;
  job.operation = parts == Parts::kNothing ? Operation::kOpenPreauth : Operation::kLogin;
  const bool ticket = parts == Parts::kAll || parts == Parts::kTicket ||
                      parts == Parts::kTicketAndChecksum || parts == Parts::kKadminTicket;
  if (ticket) {
    job.seals.push_back({parts == Parts::kKadminTicket ? kKadmin : kKrbtgt, kUsageTicket, 1});
  }
  if (parts == Parts::kAll || parts == Parts::kReply)
    job.seals.push_back({kUser, kUsageAsReply, 1});
  if (parts == Parts::kAll || parts == Parts::kTicketAndChecksum) {
    job.make_macs.push_back({kUser, kUsageAsReqChecksum, ""});
  }
  return job;
}

// The servers of one party. What they share is the store.
class Party {
 public:
  Party() {
    auto store = ShareStore::Open(engine_, {kIdentityForTest, StoreKeysForTest(), &random_});
    EXPECT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    for (size_t i = 0; i < servers_.size(); ++i) Restart(i);
  }
  void Restart(size_t i) {
    servers_[i].emplace(store_.get(), &random_);
    EXPECT_TRUE(servers_[i]->Load(now).ok());
  }
  ReplayCache& server(size_t i) { return *servers_[i]; }

  // As the judge does.
  Judgement Present(size_t i, const KdcIdentity& kdc, Parts parts,
                    std::shared_ptr<Budget>* budget = nullptr) {
    const Job job = JobOf(parts);
    const Judgement seen = server(i).Look(kUser, kNonce, ClaimantOf(kdc), UseOf(job), now);
    if (!seen.ok()) return seen;
    BudgetAsk ask{&job, Entry(kdc), nullptr, Ok()};
    server(i).Settle({&ask, 1}, now);
    if (budget != nullptr) *budget = ask.budget;
    return ask.judgement;
  }
  Judgement Granted(size_t i, std::shared_ptr<Budget> budget, Parts parts) {
    Job job = JobOf(parts);
    job.operation = Operation::kSealGranted;
    BudgetAsk ask{&job, {}, std::move(budget), Ok()};
    server(i).Settle({&ask, 1}, now);
    return ask.judgement;
  }
  ReplayEntry Entry(const KdcIdentity& kdc) const {
    return {kUser, kNonce, kNow + absl::Minutes(11), {.claimant = ClaimantOf(kdc), .since = now}};
  }
  ReplayClaim Written() const {
    ReplayClaim claim;
    EXPECT_TRUE(
        store_->LoadReplayEntries([&](const ReplayEntry& entry) { claim = entry.claim; }).ok());
    return claim;
  }
  MemoryEngine& engine() { return *engine_; }

  absl::Time now = kNow;

 private:
  static constexpr Nonce kNonce{5};
  const std::shared_ptr<MemoryEngine> engine_ = std::make_shared<MemoryEngine>();
  SeededRandomForTest random_{1};
  std::unique_ptr<ShareStore> store_;
  std::array<std::optional<ReplayCache>, 2> servers_;
};

TEST(Budget, ALostAnswerIsGivenAgainAtAnyServerAndOnce) {
  for (const bool restarted : {false, true}) {
    Party party;
    EXPECT_TRUE(party.Present(0, kKdc, Parts::kAll).ok());
    if (restarted) party.Restart(0);
    EXPECT_TRUE(party.Present(restarted ? 0 : 1, kKdc, Parts::kAll).ok());
    for (const size_t server : {0u, 1u}) {
      const Judgement third = party.Present(server, kKdc, Parts::kAll);
      EXPECT_EQ(third.verdict, Verdict::kReplay);
      EXPECT_THAT(third.detail, HasSubstr("used up"));
    }
  }
}

TEST(Budget, AnotherKdcGetsNothingForIt) {
  Party party;
  ASSERT_TRUE(party.Present(0, kKdc, Parts::kNothing).ok());
  for (int i = 0; i < 3; ++i) {
    for (const size_t server : {0u, 1u}) {
      const Judgement other = party.Present(server, kOther, Parts::kNothing);
      EXPECT_EQ(other.verdict, Verdict::kReplay);
      EXPECT_THAT(other.detail, HasSubstr("from another KDC"));
      party.Restart(server);
    }
  }
  // Its other processes are the same KDC.
  EXPECT_TRUE(party.Present(1, {kKdc.name, {9}}, Parts::kAll).ok());
}

TEST(Budget, TheMinuteBeginsWithTheFirst) {
  Party party;
  ASSERT_TRUE(party.Present(0, kKdc, Parts::kNothing).ok());
  party.now += limits::kGrantLife - absl::Milliseconds(1);
  ASSERT_TRUE(party.Present(0, kKdc, Parts::kNothing).ok());
  ASSERT_TRUE(party.Present(1, kKdc, Parts::kNothing).ok());
  party.now += absl::Milliseconds(1);
  for (const size_t server : {0u, 1u}) {
    EXPECT_EQ(party.Present(server, kKdc, Parts::kNothing).verdict, Verdict::kReplay);
    party.Restart(server);
    EXPECT_EQ(party.Present(server, kKdc, Parts::kNothing).verdict, Verdict::kReplay);
  }
}

TEST(Budget, ASecondTicketIsUnderTheFirstOnesKeyWherever) {
  Party party;
  std::shared_ptr<Budget> budget;
  ASSERT_TRUE(party.Present(0, kKdc, Parts::kNothing, &budget).ok());
  ASSERT_TRUE(party.Granted(0, budget, Parts::kTicket).ok());
  EXPECT_THAT(party.Present(1, kKdc, Parts::kKadminTicket).detail, HasSubstr("another key"));
  EXPECT_THAT(party.Granted(0, budget, Parts::kKadminTicket).detail, HasSubstr("another key"));
  party.Restart(0);
  EXPECT_THAT(party.Present(0, kKdc, Parts::kKadminTicket).detail, HasSubstr("another key"));
  EXPECT_TRUE(party.Present(0, kKdc, Parts::kAll).ok());
}

// A login's second job costs no second write.
TEST(Budget, AnOrdinaryReplyIsTakenInAdvance) {
  Party party;
  std::shared_ptr<Budget> budget;
  ASSERT_TRUE(party.Present(0, kKdc, Parts::kTicketAndChecksum, &budget).ok());
  const ReplayClaim before = party.Written();
  party.engine().FailWrites(absl::ResourceExhaustedError("disk full"));
  EXPECT_TRUE(party.Granted(0, budget, Parts::kReply).ok());
  // What is unusual does, and leaves nothing unless it is written.
  EXPECT_EQ(party.Granted(0, budget, Parts::kReply).verdict, Verdict::kUnavailable);
  EXPECT_EQ(party.Granted(0, budget, Parts::kTicket).verdict, Verdict::kUnavailable);
  EXPECT_EQ(party.Written(), before);
  party.engine().FailWrites(absl::OkStatus());
  EXPECT_TRUE(party.Granted(0, budget, Parts::kReply).ok());
  EXPECT_TRUE(party.Granted(0, budget, Parts::kTicket).ok());
  EXPECT_EQ(party.Granted(0, budget, Parts::kTicket).verdict, Verdict::kRefused);
  EXPECT_EQ(party.Written().tickets, kGrantTickets);
}

TEST(Budget, WhatCannotBeWrittenDownIsNotPresented) {
  Party party;
  party.engine().FailWrites(absl::ResourceExhaustedError("disk full"));
  EXPECT_EQ(party.Present(0, kKdc, Parts::kAll).verdict, Verdict::kUnavailable);
  party.engine().FailWrites(absl::OkStatus());
  EXPECT_TRUE(party.Present(0, kKdc, Parts::kAll).ok()) << "a later try is the first";
}

TEST(Budget, OfOneBatchTheOrderDecides) {
  Party party;
  const Job job = JobOf(Parts::kAll);
  std::vector<BudgetAsk> asks;
  for (const KdcIdentity& kdc : {kKdc, kOther, kKdc, kKdc}) {
    asks.push_back({&job, party.Entry(kdc), nullptr, Ok()});
  }
  party.server(0).Settle(absl::MakeSpan(asks), party.now);
  EXPECT_TRUE(asks[0].judgement.ok());
  EXPECT_EQ(asks[1].judgement.verdict, Verdict::kReplay);
  EXPECT_TRUE(asks[2].judgement.ok());
  EXPECT_EQ(asks[3].judgement.verdict, Verdict::kReplay);
}

// What each KDC was paid, over sequences of everything that can happen.
struct Paid {
  int tickets = 0, replies = 0, checksums = 0;
  std::map<Handle, int> keys;

  void Add(const GrantUse& use) {
    tickets += use.tickets;
    replies += use.replies;
    checksums += use.checksums;
    if (use.tickets > 0) ++keys[use.ticket_key];
  }
};

class Sequence {
 public:
  explicit Sequence(uint64_t seed) : dice_(seed) {}

  std::map<std::string, Paid> Run(int steps) {
    for (int i = 0; i < steps; ++i) Step();
    party_.engine().FailWrites(absl::OkStatus());
    return paid_;
  }
  const std::string& first() const { return first_; }

 private:
  size_t Below(size_t n) { return dice_() % n; }
  void Step() {
    const size_t server = Below(2);
    const Parts parts = static_cast<Parts>(Below(6));
    const KdcIdentity& kdc = Below(3) == 0 ? kOther : kKdc;
    switch (Below(8)) {
      case 0:
        for (const size_t i : {0u, 1u}) (void)party_.server(i).Prune(party_.now);
        party_.now += absl::Seconds(Below(15));
        break;
      case 1:
        party_.Restart(server);
        std::erase_if(grants_, [&](const auto& grant) { return grant.first == server; });
        break;
      case 2:
        party_.engine().FailWrites(Below(3) > 0 ? absl::OkStatus()
                                                : absl::ResourceExhaustedError("disk full"));
        break;
      case 3:
      case 4:
        UseGrant(parts);
        break;
      default:
        Present(server, kdc, parts);
    }
  }
  void Present(size_t server, const KdcIdentity& kdc, Parts parts) {
    std::shared_ptr<Budget> budget;
    if (!party_.Present(server, kdc, parts, &budget).ok()) return;
    if (first_.empty()) first_ = kdc.name;
    paid_[kdc.name].Add(UseOf(JobOf(parts)));
    grants_.push_back({server, {kdc.name, budget}});
  }
  void UseGrant(Parts parts) {
    if (grants_.empty()) return;
    const auto& [server, grant] = grants_[Below(grants_.size())];
    if (!party_.Granted(server, grant.second, parts).ok()) return;
    paid_[grant.first].Add(UseOf(JobOf(parts)));
  }

  std::mt19937_64 dice_;
  Party party_;
  std::string first_;
  std::map<std::string, Paid> paid_;
  std::vector<std::pair<size_t, std::pair<std::string, std::shared_ptr<Budget>>>> grants_;
};

TEST(Budget, AnySequenceIsWorthOneGrantToOneKdc) {
  int whole = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Sequence sequence(seed);
    const std::map<std::string, Paid> paid = sequence.Run(40);
    if (paid.empty()) continue;
    ASSERT_EQ(paid.size(), 1u) << "seed " << seed;
    const Paid& one = paid.at(sequence.first());
    ASSERT_LE(one.tickets, kGrantTickets) << "seed " << seed;
    ASSERT_LE(one.replies, kGrantReplies) << "seed " << seed;
    ASSERT_LE(one.checksums, kGrantChecksums) << "seed " << seed;
    ASSERT_LE(one.keys.size(), 1u) << "seed " << seed;
    whole += one.tickets == kGrantTickets && one.replies == kGrantReplies;
  }
  EXPECT_GT(whole, 300) << "the sequences reach the end of the budget";
}

TEST(Budget, ClaimsAreForgottenWithTheirGrants) {
  Party party;
  ASSERT_TRUE(party.Present(0, kKdc, Parts::kAll).ok());
  EXPECT_EQ(party.server(0).recent(), 1u);
  ASSERT_TRUE(party.server(0).Prune(party.now + limits::kGrantLife).ok());
  EXPECT_EQ(party.server(0).recent(), 0u);
  EXPECT_EQ(party.Present(0, kKdc, Parts::kNothing).verdict, Verdict::kReplay);
}

}  // namespace
}  // namespace mpckdc
