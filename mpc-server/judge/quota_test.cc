// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/judge/quota.h"

#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mpckdc {
namespace {

using ::testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);
constexpr Rate kRate = {60, 5};  // a token a second

PrincipalId Id(uint32_t number) {
  PrincipalId id{};
  for (size_t i = 0; i < 4; ++i) id[i] = static_cast<uint8_t>(number >> (8 * i));
  return id;
}

QuotaUse Login(const PrincipalId& principal) {
  QuotaUse use;
  use.principal = principal;
  use[QuotaKind::kPrincipalLogins] = 1;
  return use;
}

QuotaRates LoginRate(const Rate& rate) {
  QuotaRates rates;
  rates[QuotaKind::kPrincipalLogins] = rate;
  return rates;
}

bool TakeLogin(Quotas& quotas, const PrincipalId& principal) {
  std::optional<QuotaKind> over;
  QuotaUse use = Login(principal);
  return quotas.Take("kdc1", use, "alice", &over).ok();
}

int TakeAll(Quotas& quotas, const PrincipalId& principal, int tries = 1000) {
  int taken = 0;
  for (int i = 0; i < tries; ++i) taken += TakeLogin(quotas, principal);
  return taken;
}

// ---- SteadyTime ----

TEST(SteadyTime, GoesOnWithTheClock) {
  SteadyTime time;
  EXPECT_EQ(time.Advance(kNow), absl::ZeroDuration());
  EXPECT_EQ(time.Advance(kNow + absl::Seconds(1)), absl::Seconds(1));
  EXPECT_EQ(time.Advance(kNow + absl::Milliseconds(3500)), absl::Milliseconds(3500));
}

TEST(SteadyTime, JumpsCountLittle) {
  SteadyTime time;
  time.Advance(kNow);
  const absl::Duration ahead = time.Advance(kNow + absl::Hours(9000));
  EXPECT_EQ(ahead, limits::kMaxQuotaStep);
  const absl::Duration back = time.Advance(kNow - absl::Hours(9000));
  EXPECT_EQ(back, ahead) << "it never goes back";
  EXPECT_EQ(time.Advance(kNow - absl::Hours(9000) + absl::Seconds(2)), ahead + absl::Seconds(2))
      << "and goes on from there";
}

// ---- TokenBucket ----

TEST(TokenBucket, GivesABurstAndThenItsRate) {
  TokenBucket bucket;
  absl::Duration now = absl::Hours(1);
  for (uint32_t i = 0; i < kRate.burst; ++i) {
    ASSERT_EQ(bucket.WaitFor(kRate, 1, now), absl::ZeroDuration());
    bucket.Take(kRate, 1, now);
  }
  EXPECT_EQ(bucket.WaitFor(kRate, 1, now), absl::Seconds(1));
  EXPECT_EQ(bucket.WaitFor(kRate, 3, now), absl::Seconds(3));
  now += absl::Milliseconds(400);
  EXPECT_EQ(bucket.WaitFor(kRate, 1, now), absl::Milliseconds(600));
  now += absl::Milliseconds(600);
  bucket.Take(kRate, 1, now);
  EXPECT_EQ(bucket.WaitFor(kRate, 1, now), absl::Seconds(1));
  EXPECT_FALSE(bucket.Full(now + absl::Milliseconds(4999)));
  EXPECT_TRUE(bucket.Full(now + absl::Seconds(5)));
}

TEST(TokenBucket, WhatIsGivenBackIsThereAndNoMore) {
  TokenBucket bucket;
  bucket.Take(kRate, 5, absl::ZeroDuration());
  bucket.GiveBack(kRate, 2, absl::ZeroDuration());
  EXPECT_EQ(bucket.WaitFor(kRate, 2, absl::ZeroDuration()), absl::ZeroDuration());
  EXPECT_EQ(bucket.WaitFor(kRate, 3, absl::ZeroDuration()), absl::Seconds(1));
  for (int i = 0; i < 100; ++i) bucket.GiveBack(kRate, 5, absl::ZeroDuration());
  EXPECT_GT(bucket.WaitFor(kRate, 1, absl::ZeroDuration()) + absl::Seconds(1),
            absl::ZeroDuration());
  bucket.Take(kRate, 5, absl::ZeroDuration());
  EXPECT_EQ(bucket.WaitFor(kRate, 1, absl::ZeroDuration()), absl::Seconds(1))
      << "a full bucket overflows";
}

// A job of four checksums and a burst of three: it waits for a full bucket, not for ever.
TEST(TokenBucket, MoreThanTheBurstCountsAsTheBurst) {
  TokenBucket bucket;
  EXPECT_EQ(bucket.WaitFor({60, 3}, 4, absl::ZeroDuration()), absl::ZeroDuration());
  bucket.Take({60, 3}, 4, absl::ZeroDuration());
  EXPECT_EQ(bucket.WaitFor({60, 3}, 4, absl::ZeroDuration()), absl::Seconds(3));
}

TEST(TokenBucket, AChangedRateKeepsWhatWasTaken) {
  TokenBucket bucket;
  const absl::Duration now = absl::Hours(1);
  bucket.Take({2, 4}, 4, now);  // full again in two minutes
  bucket.Change({2, 4}, {600, 50}, now);
  EXPECT_EQ(bucket.WaitFor({600, 50}, 46, now), absl::ZeroDuration());
  EXPECT_EQ(bucket.WaitFor({600, 50}, 50, now), absl::Milliseconds(400));
  bucket.Take({600, 50}, 46, now);
  bucket.Change({600, 50}, {60, 5}, now);
  EXPECT_EQ(bucket.WaitFor({60, 5}, 1, now), absl::Seconds(1)) << "no more than its burst";
  EXPECT_EQ(bucket.WaitFor({60, 5}, 1, now + absl::Seconds(1)), absl::ZeroDuration());
  bucket.Change({60, 5}, Rate{}, now);
  EXPECT_TRUE(bucket.Full(now));
}

// Whatever is asked and given back, in any span no more is taken than a burst and the span's rate.
TEST(TokenBucket, NeverMoreThanBurstAndRate) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 dice(seed);
    TokenBucket bucket;
    absl::Duration now;
    int64_t taken = 0;
    for (int i = 0; i < 2000; ++i) {
      now += absl::Milliseconds(dice() % 700);
      const uint32_t tokens = 1 + dice() % 3;
      if (bucket.WaitFor(kRate, tokens, now) == absl::ZeroDuration()) {
        bucket.Take(kRate, tokens, now);
        taken += tokens;
        if (dice() % 8 == 0) {
          bucket.GiveBack(kRate, tokens, now);
          taken -= tokens;
        }
      }
      ASSERT_LE(taken, 5 + absl::ToInt64Seconds(now)) << "seed " << seed << ", step " << i;
    }
    EXPECT_GT(taken, absl::ToInt64Seconds(now) / 2) << "the bucket gives, seed " << seed;
  }
}

// ---- Quotas ----

TEST(Quotas, EachPrincipalHasItsOwn) {
  Quotas quotas(LoginRate(kRate));
  quotas.Advance(kNow);
  EXPECT_EQ(TakeAll(quotas, Id(1)), 5);
  EXPECT_EQ(TakeAll(quotas, Id(2)), 5);
  quotas.Advance(kNow + absl::Seconds(2));
  EXPECT_EQ(TakeAll(quotas, Id(1)), 2);
}

TEST(Quotas, NothingSetIsUnlimitedAndKeepsNothing) {
  Quotas quotas{QuotaRates()};
  quotas.Advance(kNow);
  EXPECT_EQ(TakeAll(quotas, Id(1), 10000), 10000);
  EXPECT_EQ(quotas.size(), 0u);
}

TEST(Quotas, ARefusalNamesTheQuotaAndWhenItIsOver) {
  Quotas quotas(LoginRate({30, 1}));
  quotas.Advance(kNow);
  std::optional<QuotaKind> over;
  QuotaUse use = Login(Id(1));
  ASSERT_TRUE(quotas.Take("kdc1", use, "alice@EXAMPLE.COM", &over).ok());
  EXPECT_FALSE(over.has_value());
  const Judgement refused = quotas.Take("kdc1", use, "alice@EXAMPLE.COM", &over);
  EXPECT_EQ(refused.verdict, Verdict::kQuota);
  EXPECT_EQ(over, QuotaKind::kPrincipalLogins);
  EXPECT_EQ(refused.detail,
            "quota principal_logins (30/min burst 1) of alice@EXAMPLE.COM is used up, free again "
            "in 2s");
}

// ---- Users of another realm ----

class RealmQuotaTest : public ::testing::Test {
 protected:
  RealmQuotaTest() : quotas_(Rates()) { quotas_.Advance(now_); }
  static QuotaRates Rates() {
    QuotaRates rates;
    rates[QuotaKind::kPrincipalReissues] = kRate;
    return rates;
  }
  static QuotaUse Reissue(uint32_t user, uint32_t realm) {
    QuotaUse use;
    use.principal = Id(user);
    use.realm = Id(1 << 30 | realm);
    use[QuotaKind::kPrincipalReissues] = 1;
    return use;
  }
  bool Take(uint32_t user, uint32_t realm = 0) {
    std::optional<QuotaKind> over;
    QuotaUse use = Reissue(user, realm);
    last_ = quotas_.Take("kdc1", use, "somebody", &over);
    return last_.ok();
  }
  void Wait(absl::Duration time) {
    for (; time > absl::ZeroDuration(); time -= absl::Seconds(1)) {
      quotas_.Advance(now_ += absl::Seconds(1));
    }
  }

  static constexpr uint32_t kBurst = kRate.burst * limits::kForeignUsersTogether;
  absl::Time now_ = kNow;
  Quotas quotas_;
  Judgement last_;
};

TEST_F(RealmQuotaTest, EachUserHasItsOwn) {
  int taken = 0;
  for (int i = 0; i < 100; ++i) taken += Take(1);
  EXPECT_EQ(taken, 5);
  EXPECT_TRUE(Take(2));
}

// A realm makes up as many users as it likes: that gives it so much and no more, in so many buckets,
// and takes nothing from other realms or from us.
TEST_F(RealmQuotaTest, InventedUsersShareWhatIsTheRealms) {
  uint32_t taken = 0;
  for (uint32_t user = 0; user < 10'000; ++user) taken += Take(user);
  EXPECT_EQ(taken, kBurst);
  EXPECT_EQ(last_.verdict, Verdict::kQuota);
  EXPECT_THAT(last_.detail, HasSubstr("beside all others of that realm"));
  EXPECT_LE(quotas_.size(), kBurst + 1) << "who is refused takes no room";
  EXPECT_TRUE(Take(1, 1));
  Wait(absl::Seconds(2));
  taken = 0;
  for (uint32_t user = 0; user < 10'000; ++user) taken += Take(20'000 + user);
  EXPECT_EQ(taken, 2 * limits::kForeignUsersTogether);
  Wait(absl::Seconds(10));
  quotas_.Prune();
  EXPECT_EQ(quotas_.size(), 0u);
}

// Many users who take all they get leave room for one who takes little.
TEST_F(RealmQuotaTest, WhoTakesLittleIsNotKeptOutByThoseWhoTakeMuch) {
  const auto greedy = [this] {
    for (uint32_t user = 1; user <= 2 * limits::kForeignUsersTogether; ++user) {
      while (Take(user)) {
      }
    }
  };
  greedy();
  int refused = 0;
  for (int second = 0; second < 60; ++second) {
    Wait(absl::Seconds(1));
    for (uint32_t user = 1; user <= limits::kForeignUsersTogether / 2; ++user) Take(user);
    refused += !Take(0);
    greedy();
  }
  EXPECT_EQ(refused, 0);
}

TEST_F(RealmQuotaTest, WhatIsGivenBackIsTheRealmsAgain) {
  for (uint32_t user = 0; user < 3 * kBurst; ++user) {
    std::optional<QuotaKind> over;
    QuotaUse use = Reissue(user, 0);
    ASSERT_TRUE(quotas_.Take("kdc1", use, "somebody", &over).ok()) << user;
    quotas_.GiveBack("kdc1", use);
  }
}

// ---- Copies of a key ----

// Guesses at a copy are its first owner's, under whatever names they come; logins each one's own.
TEST(Quotas, GuessesAtCopiesOfAKeyCountTogether) {
  QuotaRates rates = LoginRate({60, 1000});
  rates[QuotaKind::kPrincipalFailures] = kRate;
  Quotas quotas(rates);
  quotas.Advance(kNow);
  std::optional<QuotaKind> over;
  int guesses = 0;
  for (uint32_t name = 1; name <= 20; ++name) {
    QuotaUse use = Login(Id(name));
    use[QuotaKind::kPrincipalFailures] = 1;
    if (name > 1) use.first_owner = Id(1);
    guesses += quotas.Take("kdc1", use, "alice", &over).ok();
  }
  EXPECT_EQ(guesses, 5);
  EXPECT_EQ(over, QuotaKind::kPrincipalFailures);
  EXPECT_EQ(TakeAll(quotas, Id(9)), 1000);
}

TEST(Quotas, AKdcIsCountedByItsNameAndRefusedWithoutCharge) {
  QuotaRates rates = LoginRate(kRate);
  rates[QuotaKind::kKdcLogins] = {60, 2};
  Quotas quotas(rates);
  quotas.Advance(kNow);
  QuotaUse use = Login(Id(1));
  use[QuotaKind::kKdcLogins] = 1;
  std::optional<QuotaKind> over;
  EXPECT_TRUE(quotas.Take("kdc1", use, "alice", &over).ok());
  EXPECT_TRUE(quotas.Take("kdc1", use, "alice", &over).ok());
  const Judgement refused = quotas.Take("kdc1", use, "alice", &over);
  EXPECT_EQ(over, QuotaKind::kKdcLogins);
  EXPECT_THAT(refused.detail, HasSubstr("of KDC kdc1"));
  // All or nothing: alice's bucket has lost two tokens, not three.
  EXPECT_EQ(TakeAll(quotas, Id(1)), 3);
  use.principal = Id(2);
  EXPECT_TRUE(quotas.Take("kdc2", use, "bob", &over).ok());
}

TEST(Quotas, AClockThatJumpsNeitherFreezesNorFills) {
  Quotas quotas(LoginRate({60, 1000}));
  quotas.Advance(kNow);
  EXPECT_EQ(TakeAll(quotas, Id(1), 2000), 1000);
  quotas.Advance(kNow + absl::Hours(24 * 365));
  EXPECT_EQ(TakeAll(quotas, Id(1)), absl::ToInt64Seconds(limits::kMaxQuotaStep));
  quotas.Advance(kNow - absl::Hours(24 * 365));
  EXPECT_EQ(TakeAll(quotas, Id(1)), 0);
  quotas.Advance(kNow - absl::Hours(24 * 365) + absl::Seconds(3));
  EXPECT_EQ(TakeAll(quotas, Id(1)), 3);
}

TEST(Quotas, FullBucketsAreForgotten) {
  Quotas quotas(LoginRate(kRate));
  quotas.Advance(kNow);
  for (uint32_t i = 0; i < 1000; ++i) TakeLogin(quotas, Id(i));
  EXPECT_EQ(TakeAll(quotas, Id(0)), 4);
  quotas.Prune();
  EXPECT_EQ(quotas.size(), 1000u);
  quotas.Advance(kNow + absl::Seconds(2));
  quotas.Prune();
  EXPECT_EQ(quotas.size(), 1u);
  EXPECT_EQ(TakeAll(quotas, Id(0)), 2) << "the others were as good as new, this one is not";
  EXPECT_EQ(TakeAll(quotas, Id(7)), 5);
}

TEST(Quotas, MemoryIsBoundedAndTheEmptiestAreKept) {
  constexpr size_t kMost = 800;
  Quotas quotas(LoginRate({1, 100}), kMost);  // a token a minute: nothing flows back here
  quotas.Advance(kNow);
  ASSERT_EQ(TakeAll(quotas, Id(0)), 100);
  for (uint32_t i = 1; i < 100'000; ++i) {
    ASSERT_TRUE(TakeLogin(quotas, Id(i)));
    ASSERT_LE(quotas.size(), kMost);
  }
  EXPECT_EQ(TakeAll(quotas, Id(0)), 0) << "a crowd of others must not refill a bucket";
  EXPECT_GT(quotas.size(), kMost / 2) << "nor are all forgotten at once";
}

TEST(Quotas, RatesMayChange) {
  Quotas quotas(LoginRate({60, 2}));
  quotas.Advance(kNow);
  EXPECT_EQ(TakeAll(quotas, Id(1)), 2);
  quotas.SetRates(LoginRate({60, 10}));
  EXPECT_EQ(TakeAll(quotas, Id(1)), 8) << "what was taken stays taken";
  quotas.SetRates(LoginRate({600, 3}));
  EXPECT_EQ(TakeAll(quotas, Id(1)), 0);
  quotas.Advance(kNow + absl::Milliseconds(100));
  EXPECT_EQ(TakeAll(quotas, Id(1)), 1) << "the new rate runs at once";
  quotas.SetRates(QuotaRates());
  EXPECT_EQ(TakeAll(quotas, Id(1), 50), 50);
}

}  // namespace
}  // namespace mpckdc
