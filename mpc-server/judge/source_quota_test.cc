// SPDX-License-Identifier: Apache-2.0
//
// Failures by where they come from: whom a stranger cannot keep out, what a KDC that lies about
// sources gains, what garbage costs whom.
#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/judge/quota.h"

namespace mpckdc {
namespace {

using ::testing::HasSubstr;

constexpr Source kHome = {100, true}, kHomeDatagram = {100, false};
constexpr Source kNew = {200, true};

PrincipalId Id(uint32_t number) {
  PrincipalId id{};
  for (size_t i = 0; i < 4; ++i) id[i] = static_cast<uint8_t>(number >> (8 * i));
  return id;
}
const PrincipalId kAlice = Id(1);

// The quotas of one server, on a clock that the test sets.
class Server {
 public:
  explicit Server(const QuotaRates& rates = DefaultQuotaRates()) : quotas_(rates) {
    quotas_.Advance(now_);
  }

  void Sleep(absl::Duration time) {
    for (const absl::Time until = now_ + time; now_ < until;) {
      now_ = std::min(until, now_ + limits::kMaxQuotaStep);
      quotas_.Advance(now_);
    }
    quotas_.Prune();
  }

  Judgement TryGuess(const Source& from, bool good, const PrincipalId& who = kAlice) {
    QuotaUse use;
    use.principal = who;
    use.source = from;
    use[QuotaKind::kPrincipalFailures] = 1;
    std::optional<QuotaKind> over;
    Judgement judgement = quotas_.Take("kdc1", use, "alice", &over);
    if (judgement.ok() && good) {
      quotas_.GiveBack("kdc1", use);
      quotas_.Succeeded(use);
    }
    return judgement;
  }
  Verdict Guess(const Source& from) { return TryGuess(from, false).verdict; }
  Verdict LogIn(const Source& from, const PrincipalId& who = kAlice) {
    return TryGuess(from, true, who).verdict;
  }
  void SpendTheCommonShare() {
    while (Guess({999, true}) == Verdict::kOk) continue;
  }

  // Tickets of one batch: all are judged before the first is opened. Returns how many were opened.
  int OpenTickets(const Source& from, int count, bool good, Verdict refusal = Verdict::kQuota,
                  const std::string& kdc = "kdc1") {
    std::vector<QuotaUse> taken;
    for (int i = 0; i < count; ++i) {
      QuotaUse use;
      use.source = from;
      use[QuotaKind::kSourceFailures] = 1;
      use[QuotaKind::kUnprovedFailures] = from.proved ? 0 : 1;
      std::optional<QuotaKind> over;
      const Judgement judgement = quotas_.Take(kdc, use, "", &over);
      EXPECT_EQ(judgement.verdict, judgement.ok() ? Verdict::kOk : refusal) << judgement.detail;
      if (judgement.ok()) taken.push_back(use);
    }
    for (const QuotaUse& use : taken) good ? quotas_.GiveBack(kdc, use) : quotas_.Failed(kdc, use);
    return static_cast<int>(taken.size());
  }

  Quotas& quotas() { return quotas_; }

 private:
  Quotas quotas_;
  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
};

// ---- Guesses ----

TEST(KnownSources, StrangersWhoGuessKeepNobodyOutFromWhereHeWasBefore) {
  Server server;
  ASSERT_EQ(server.LogIn(kHome), Verdict::kOk);
  server.SpendTheCommonShare();
  int tried = 0, stranger_refused = 0;
  for (int second = 0; second < 3600; ++second) {
    for (uint64_t i = 0; i < 20; ++i) {
      server.Guess({1000 + i, i % 2 == 0});
      server.Guess({kHome.id, false});  // a datagram that says alice's address
    }
    if (second % 7 == 0) {
      ++tried;
      EXPECT_EQ(server.LogIn(kHome), Verdict::kOk) << "in second " << second;
      stranger_refused += server.LogIn(kNew) != Verdict::kOk;
      server.quotas().Prune();
    }
    server.Sleep(absl::Seconds(1));
  }
  EXPECT_EQ(stranger_refused, tried) << "the attack is strong enough to keep others out";
}

// Who owns a /48 of IPv6 has 65,536 sources, and guesses as often as who has one.
TEST(KnownSources, ManyNetworksGuessNoMoreThanOne) {
  Server server;
  ASSERT_EQ(server.LogIn(kHome), Verdict::kOk);
  uint32_t guesses = 0;
  for (uint64_t i = 0; i < 5000; ++i) guesses += server.Guess({1000 + i, true}) == Verdict::kOk;
  EXPECT_EQ(guesses, limits::kPrincipalFailuresBurst);
  EXPECT_EQ(server.LogIn(kHome), Verdict::kOk);
}

TEST(KnownSources, ADatagramLearnsAndDoesNotUse) {
  Server server;
  ASSERT_EQ(server.LogIn(kHomeDatagram), Verdict::kOk);
  server.SpendTheCommonShare();
  const Judgement refused = server.TryGuess(kHomeDatagram, true);
  EXPECT_EQ(refused.verdict, Verdict::kUnproved) << "so that the client comes by TCP";
  EXPECT_THAT(refused.detail, HasSubstr("by TCP"));
  EXPECT_EQ(server.LogIn(kHome), Verdict::kOk);
  EXPECT_EQ(server.LogIn({200, false}), Verdict::kQuota) << "TCP would not help a stranger";
}

TEST(KnownSources, AShareIsOnePlacesAndHasAnEnd) {
  Server server;
  const Source cafe = {300, true};
  ASSERT_EQ(server.LogIn(kHome), Verdict::kOk);
  ASSERT_EQ(server.LogIn(cafe), Verdict::kOk);
  server.SpendTheCommonShare();
  // Somebody else in the cafe.
  for (uint32_t i = 0; i < limits::kKnownFailuresBurst; ++i) {
    EXPECT_EQ(server.Guess(cafe), Verdict::kOk);
  }
  const Judgement refused = server.TryGuess(cafe, true);
  EXPECT_EQ(refused.verdict, Verdict::kQuota);
  EXPECT_THAT(refused.detail, HasSubstr("known_failures (1/min burst 3) of alice at one of"));
  EXPECT_EQ(server.TryGuess({300, false}, true).verdict, Verdict::kQuota) << "nor would TCP help";
  EXPECT_EQ(server.LogIn(kHome), Verdict::kOk);
}

TEST(KnownSources, OnlyAGoodPreauthTeachesThem) {
  Server server;
  ASSERT_EQ(server.Guess(kHome), Verdict::kOk);
  server.SpendTheCommonShare();
  EXPECT_EQ(server.LogIn(kHome), Verdict::kQuota);
  EXPECT_EQ(server.quotas().known(), 0u);
  EXPECT_EQ(server.LogIn(kHome, Id(2)), Verdict::kOk);
  EXPECT_EQ(server.LogIn(kHome), Verdict::kQuota) << "bob's place is not alice's";
}

// Whatever a KDC says about sources, and however often alice logs in through it.
TEST(KnownSources, ALyingKdcGuessesNoMoreThanTheSumOfTheShares) {
  Server server;
  int guesses = 0;
  uint64_t made_up = 1000;
  for (int second = 0; second < 1200; ++second) {
    for (int i = 0; i < 40; ++i) {
      server.LogIn({++made_up, true});
      for (uint64_t back = 0; back < limits::kKnownSources; ++back) {
        guesses += server.Guess({made_up - back, true}) == Verdict::kOk;
      }
    }
    ASSERT_LE(guesses, 60 + second / 2 + 1) << "30 a minute and a burst of 60, second " << second;
    server.Sleep(absl::Seconds(1));
  }
  EXPECT_GT(guesses, 590) << "the attack uses what there is";
}

TEST(KnownSources, TheLastEightAreKnownForThirtyDays) {
  Server server;
  for (uint64_t place = 1; place <= limits::kKnownSources; ++place) {
    server.LogIn({place, true});
    server.Sleep(absl::Hours(1));
  }
  server.LogIn({1, true});
  server.LogIn({50, true});  // takes the place of the second
  server.SpendTheCommonShare();
  EXPECT_EQ(server.LogIn({1, true}), Verdict::kOk);
  EXPECT_EQ(server.LogIn({2, true}), Verdict::kQuota);
  EXPECT_EQ(server.LogIn({3, true}), Verdict::kOk);
  EXPECT_EQ(server.LogIn({50, true}), Verdict::kOk);
  server.Sleep(limits::kKnownSourceLife - absl::Hours(1));
  server.SpendTheCommonShare();
  EXPECT_EQ(server.LogIn({3, true}), Verdict::kOk);
  server.Sleep(absl::Hours(2));
  server.SpendTheCommonShare();
  EXPECT_EQ(server.LogIn({1, true}), Verdict::kQuota);
  EXPECT_EQ(server.LogIn({3, true}), Verdict::kOk) << "used two hours ago";
  server.Sleep(limits::kKnownSourceLife + absl::Hours(2));
  EXPECT_EQ(server.quotas().known(), 0u);
}

TEST(KnownSources, MemoryIsBoundedAndTheLatestAreKept) {
  KnownSources known(800);
  for (uint32_t i = 0; i < 10'000; ++i) {
    known.Learn(Id(i), kHome.id, absl::Seconds(i));
    ASSERT_LE(known.size(), 800u);
    ASSERT_NE(known.Find(Id(i), kHome.id, absl::Seconds(i)), nullptr);
  }
  EXPECT_NE(known.Find(Id(9'500), kHome.id, absl::Seconds(10'000)), nullptr);
  EXPECT_EQ(known.Find(Id(0), kHome.id, absl::Seconds(10'000)), nullptr);
}

TEST(KnownSources, NothingIsLearntWithoutAQuota) {
  Server server{QuotaRates()};
  for (int i = 0; i < 100; ++i) EXPECT_EQ(server.LogIn(kHome), Verdict::kOk);
  EXPECT_EQ(server.quotas().known(), 0u);
}

// ---- Tickets ----

TEST(SourceQuota, GarbageOfOneAddressIsRefusedThereAndNowhereElse) {
  Server server;
  int opened = 0;
  for (int second = 0; second < 600; ++second) {
    opened += server.OpenTickets(kHome, 50, /*good=*/false);
    EXPECT_EQ(server.OpenTickets(kNew, 50, /*good=*/true), 50);
    server.Sleep(absl::Seconds(1));
  }
  EXPECT_LE(opened, 120 + 600 + 50) << "60 a minute and a burst of 120, and a batch";
  EXPECT_EQ(server.OpenTickets(kHome, 1, /*good=*/true), 1) << "a token is back every second";
}

TEST(SourceQuota, ManyGoodTicketsAtOnceNeedNoTokens) {
  Server server;
  EXPECT_EQ(server.OpenTickets(kHome, 5000, /*good=*/true), 5000);
  EXPECT_EQ(server.OpenTickets({100, false}, 5000, /*good=*/true), 5000);
  EXPECT_EQ(server.quotas().size(), 0u);
}

// A spoofer neither fills a proved source's bucket nor hides behind many addresses.
TEST(SourceQuota, GarbageInDatagramsIsBoundedTogetherAndSendsOthersToTcp) {
  Server server;
  int opened = 0;
  uint64_t made_up = 1000;
  for (int second = 0; second < 600; ++second) {
    for (int batch = 0; batch < 10; ++batch) {
      opened += server.OpenTickets({made_up++, false}, 30, /*good=*/false, Verdict::kUnproved);
    }
    server.Sleep(absl::Seconds(1));
  }
  EXPECT_LE(opened, 600 + 6000 + 30) << "600 a minute and a burst of 600, and a batch";
  EXPECT_GT(opened, 6000);
  EXPECT_EQ(server.OpenTickets(kHomeDatagram, 1, /*good=*/true, Verdict::kUnproved), 0);
  EXPECT_EQ(server.OpenTickets(kHome, 1000, /*good=*/true), 1000) << "by TCP";
  EXPECT_EQ(server.OpenTickets(kHomeDatagram, 9, /*good=*/true, Verdict::kQuota, "kdc2"), 9)
      << "another KDC has its own";
}

TEST(SourceQuota, DatagramsThatSayAnAddressDoNotTouchItsProvedBucket) {
  Server server;
  server.OpenTickets(kHomeDatagram, 200, /*good=*/false);
  EXPECT_EQ(server.OpenTickets(kHomeDatagram, 1, /*good=*/true, Verdict::kUnproved), 0);
  EXPECT_EQ(server.OpenTickets(kHome, 1000, /*good=*/true), 1000);
}

// The limit of it: by TCP each network has a bucket, and the sum of them bounds little.
TEST(SourceQuota, WhoHasManyNetworksHasAsManyBuckets) {
  Server server;
  constexpr int kNetworks = 300, kEach = limits::kSourceFailuresBurst;
  int opened = 0;
  for (int round = 0; round < 2 * kEach; ++round) {
    for (uint64_t i = 0; i < kNetworks; ++i) {
      opened += server.OpenTickets({1000 + i, true}, 1, /*good=*/false);
    }
  }
  EXPECT_GE(opened, kNetworks * kEach);
  EXPECT_LE(opened, kNetworks * (kEach + 1));
  EXPECT_EQ(server.OpenTickets(kHome, 1000, /*good=*/true), 1000) << "nobody else is kept out";
}

// What a batch computed too much is owed, not forgiven.
TEST(SourceQuota, ABatchOfGarbageIsPaidForLater) {
  Server server;
  for (uint64_t i = 0; i < 600; ++i) {
    ASSERT_EQ(server.OpenTickets({2000 + i, false}, 1, /*good=*/false), 1);
  }
  EXPECT_EQ(server.OpenTickets({1, false}, 4096, /*good=*/false, Verdict::kUnproved), 0);
  Server burst;
  EXPECT_EQ(burst.OpenTickets({1, false}, 4096, /*good=*/false), 4096) << "one batch";
  burst.Sleep(absl::Minutes(5));
  EXPECT_EQ(burst.OpenTickets({2, false}, 1, /*good=*/true, Verdict::kUnproved), 0);
  burst.Sleep(absl::Minutes(1));
  EXPECT_EQ(burst.OpenTickets({2, false}, 1, /*good=*/true), 1) << "(4096 - 600) / 600 minutes";
}

TEST(SourceQuota, MemoryIsBounded) {
  Server server;
  for (uint64_t i = 0; i < limits::kMaxQuotaSources + 1000; ++i) {
    server.OpenTickets({1 + i, true}, 1, /*good=*/false);
  }
  EXPECT_LE(server.quotas().size(), limits::kMaxQuotaSources);
  server.Sleep(absl::Minutes(3));
  EXPECT_EQ(server.quotas().size(), 0u);
}

}  // namespace
}  // namespace mpckdc
