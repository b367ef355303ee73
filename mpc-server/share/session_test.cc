// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/share/session.h"

#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/share/circuit.h"
#include "mpc-server/share/deviation.h"
#include "mpc-server/testing/memory_channel.h"

namespace mpckdc {
namespace {

using testing::HasSubstr;

struct Opened {
  std::array<std::unique_ptr<PartyContext>, 3> parties;
  std::array<absl::Status, 3> statuses;
};

Opened Open(MemoryRing& ring, const std::function<void(SessionOptions&)>& change) {
  Opened result;
  std::vector<std::thread> threads;
  for (int p = 0; p < kParties; ++p) {
    threads.emplace_back([&, p] {
      SessionOptions o;
      o.party = p;
      o.realm = "R";
      o.cluster = 3;
      o.greeting = std::string(1, static_cast<char>('a' + p));
      change(o);
      auto opened = OpenSession(o, ring.channel(p), SystemClock(), SystemRandom(),
                                SystemClock().Now() + absl::Seconds(5));
      result.statuses[p] = opened.status();
      if (opened.ok()) result.parties[p] = *std::move(opened);
    });
  }
  for (std::thread& t : threads) t.join();
  return result;
}

TEST(SessionTest, OpensWithGreetingsAndOneNumber) {
  MemoryRing ring;
  const Opened o = Open(ring, [](SessionOptions&) {});
  for (int p = 0; p < kParties; ++p) {
    ASSERT_TRUE(o.statuses[p].ok()) << o.statuses[p];
    EXPECT_EQ(o.parties[p]->session(), o.parties[0]->session());
    EXPECT_EQ(o.parties[p]->version(), kPeerProtocolMax);
    EXPECT_EQ(o.parties[p]->greeting(Neighbour::kNext)[0], 'a' + NextParty(p));
    EXPECT_EQ(o.parties[p]->greeting(Neighbour::kPrev)[0], 'a' + PrevParty(p));
  }
  MemoryRing again;
  EXPECT_NE(Open(again, [](SessionOptions&) {}).parties[0]->session(), o.parties[0]->session());
}

TEST(SessionTest, MismatchesAreNamed) {
  struct Case {
    std::function<void(SessionOptions&)> change;
    std::string text;
  };
  const Case cases[] = {
      {[](SessionOptions& o) { o.realm = o.party == 1 ? "X" : "R"; }, "has realm X"},
      {[](SessionOptions& o) { o.cluster = o.party == 1 ? 9 : 3; }, "has cluster 9"},
      {[](SessionOptions& o) { o.rings = o.party == 1 ? 4 : 2; }, "has number of workers 4"},
      {[](SessionOptions& o) { o.ring = o.party == 1 ? 1 : 0; }, "has ring 1"},
      {[](SessionOptions& o) {
         if (o.party == 1) o.randomness = Randomness::kExchanged;
       },
       "has randomness exchanged, this server has keyed"},
      {[](SessionOptions& o) {
         if (o.party == 1) o.security = Security::kSemiHonest;
       },
       "has security semi-honest, this server has active: all three servers need the same [engine] "
       "security"},
      {[](SessionOptions& o) {
         if (o.party == 1) o.min_version = o.max_version = kPeerProtocolMax + 1;
       },
       absl::StrCat("P1 speaks ", kPeerProtocolMax + 1, " to ", kPeerProtocolMax + 1)},
  };
  for (const Case& c : cases) {
    MemoryRing ring;
    const Opened o = Open(ring, c.change);
    EXPECT_TRUE(absl::IsFailedPrecondition(o.statuses[0])) << o.statuses[0];
    EXPECT_THAT(o.statuses[0].ToString(), HasSubstr(c.text));
    for (const absl::Status& s : o.statuses) EXPECT_FALSE(s.ok());
  }
}

TEST(SessionTest, VersionsNegotiateTheHighestCommon) {
  MemoryRing ring;
  const Opened o = Open(ring, [](SessionOptions& s) { 
    s.max_version = s.party == 2 ? kPeerProtocolMax : kPeerProtocolMax + 1;
  });
  for (const auto& p : o.parties) EXPECT_EQ(p->version(), kPeerProtocolMax);
}

// A server that tells its neighbours different things at the start.
TEST(SessionTest, DifferentHellosAreDetected) {
  MemoryRing ring;
  ring.SetInterceptor([](MemoryRing::Intercepted& m) {
    if (m.from == 2 && m.to == 0 && m.type == FrameType::kHello) m.payload.back() ^= 1;
  });
  const Opened o = Open(ring, [](SessionOptions&) {});
  for (const absl::Status& s : o.statuses) EXPECT_FALSE(s.ok());
}

TEST(SessionTest, AlteredSeedIsDetected) {
  MemoryRing ring;
  ring.SetInterceptor([](MemoryRing::Intercepted& m) {
    if (m.from == 1 && m.type == FrameType::kSeed) m.payload[31] ^= 1;
  });
  const Opened o = Open(ring, [](SessionOptions&) {});
  EXPECT_THAT(o.statuses[0].ToString(), HasSubstr("it has another seed"));
  EXPECT_EQ(SuspectsOf(o.statuses[0]), Suspects::One(1));
  EXPECT_EQ(SuspectsOf(o.statuses[1]), Suspects::One(0));
  EXPECT_FALSE(IsDeviation(o.statuses[2])) << o.statuses[2];
}

// What cuts and slow attempts to connect can leave behind: P2 hears a hello of P1's last attempt.
TEST(SessionTest, AHelloOfAnOlderConnectionAccusesNobody) {
  std::string older;
  MemoryRing first;
  first.SetInterceptor([&](MemoryRing::Intercepted& m) {
    if (m.from == 1 && m.to == 2 && m.type == FrameType::kHello) {
      older = std::string(AsText(m.payload));
    }
  });
  Open(first, [](SessionOptions&) {});
  MemoryRing second;
  second.SetInterceptor([&](MemoryRing::Intercepted& m) {
    if (m.from == 1 && m.to == 2 && m.type == FrameType::kHello) {
      std::copy(older.begin(), older.end(), m.payload.begin());
    }
  });
  const Opened o = Open(second, [](SessionOptions&) {});
  for (const absl::Status& s : o.statuses) {
    EXPECT_FALSE(s.ok());
    EXPECT_FALSE(IsDeviation(s)) << s;
  }
}

// Of what follows the hellos only confirmations and seeds are left to lie in: each byte accuses the
// sender, or nobody where it is the hellos' own.
TEST(SessionTest, AnAlteredConfirmationAccusesItsSender) {
  for (const size_t at : {size_t{0}, size_t{31}, size_t{32}, size_t{63}}) {
    MemoryRing ring;
    ring.SetInterceptor([at](MemoryRing::Intercepted& m) {
      if (m.from == 2 && m.to == 1 && m.type == FrameType::kConfirm) m.payload[at] ^= 1;
    });
    const Opened o = Open(ring, [](SessionOptions&) {});
    EXPECT_EQ(IsDeviation(o.statuses[1]), at >= 32) << at;
    if (at >= 32) {
      EXPECT_EQ(SuspectsOf(o.statuses[1]), Suspects::One(2));
    }
  }
}

TEST(SessionTest, AnAbortWithTheWordsOfADeviationAccusesNobody) {
  MemoryRing ring;
  ring.SetInterceptor([](MemoryRing::Intercepted& m) {
    if (m.from == 0 && m.type == FrameType::kSeed) m.payload[0] ^= 1;  // P2 sees the lie
  });
  const Opened o = Open(ring, [](SessionOptions&) {});
  ASSERT_TRUE(IsDeviation(o.statuses[2])) << o.statuses[2];
  EXPECT_FALSE(IsDeviation(o.statuses[1])) << o.statuses[1];
}

TEST(SessionDeathTest, ABatchNumberIsUsedOnce) {
  MemoryRing ring;
  Opened o = Open(ring, [](SessionOptions&) {});
  o.parties[0]->BeginBatch(5);
  EXPECT_DEATH(o.parties[0]->BeginBatch(5), "begun after");
  EXPECT_DEATH(o.parties[0]->BeginBatch(4), "begun after");
}

// Who forgets the verifier of an active session gets no result that nobody checked.
TEST(SessionTest, AnActiveSessionRunsNothingThatNobodyVerifies) {
  for (const bool run : {true, false}) {
    MemoryRing ring;
    Opened o = Open(ring, [](SessionOptions&) {});
    o.parties[0]->BeginBatch(1);
    const absl::Status s = run ? RunTogether(*o.parties[0], {}) : o.parties[0]->Verify();
    EXPECT_TRUE(absl::IsInternal(s)) << s;
    EXPECT_THAT(s.ToString(), HasSubstr("has nothing that verifies"));
  }
}

TEST(SessionTest, NothingRunsWithoutABatchOrAfterAnAbort) {
  MemoryRing ring;
  Opened o = Open(ring, [](SessionOptions& s) { s.security = Security::kSemiHonest; });
  EXPECT_TRUE(absl::IsFailedPrecondition(RunTogether(*o.parties[0], {})));
  o.parties[0]->BeginBatch(1);
  EXPECT_TRUE(RunTogether(*o.parties[0], {}).ok());
  o.parties[0]->Abort("because");
  EXPECT_THAT(RunTogether(*o.parties[0], {}).ToString(), HasSubstr("because"));
  EXPECT_THAT(o.parties[1]
                  ->channel()
                  .Receive(Neighbour::kPrev, SystemClock().Now() + absl::Seconds(5))
                  .status()
                  .ToString(),
              HasSubstr("because"));
}

}  // namespace
}  // namespace mpckdc
