// SPDX-License-Identifier: Apache-2.0
// A pre-authentication and a checksum by three parties, one of which deviates: every deviation of
// the table in doc/protocol.md, and the check that stops it.
#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "mpc-server/garble/table_mac.h"
#include "mpc-server/share/deviation.h"
#include "mpc-server/testing/garbled_login.h"

namespace mpckdc::garble {
namespace {

using Login = GarbledLogin;

// Enctype, and who evaluates.
class LoginTest : public testing::TestWithParam<std::tuple<int32_t, int>> {
 protected:
  int32_t enctype() const { return std::get<0>(GetParam()); }
  int e() const { return std::get<1>(GetParam()); }
  int g1() const { return NextParty(e()); }
  int g2() const { return PrevParty(e()); }

  // With one message changed: `at` of its bytes, from the end if negative. What the parties say.
  std::array<absl::Status, kParties> Changed(const Login& login, int from, int to, size_t round,
                                             ptrdiff_t at, uint8_t by = 1) const {
    GarbledParties parties = login.Parties(e());
    bool done = false;
    const auto ends = parties.Run([&](int f, int t, size_t r, std::vector<uint8_t>& bytes) {
      if (f != from || t != to || r != round) return;
      bytes[at >= 0 ? static_cast<size_t>(at) : bytes.size() + static_cast<size_t>(at)] ^= by;
      done = true;
    });
    EXPECT_TRUE(done);
    return ends;
  }
  static void ExpectNamed(const absl::Status& status, Suspects suspects) {
    ASSERT_TRUE(SuspectsOf(status).has_value()) << status;
    EXPECT_EQ(*SuspectsOf(status), suspects) << status;
  }
  size_t LastRound(const Login& login) const {
    GarbledParties parties = login.Parties(e());
    parties.Run();
    return parties.cost(0).rounds - 1;
  }
};

TEST_P(LoginTest, IsAsOpensslHasIt) {
  for (const size_t lanes : {1, 3, 16}) {
    const Login login(enctype(), lanes, 1);
    GarbledParties parties = login.Parties(e());
    for (const absl::Status& s : parties.Run()) EXPECT_TRUE(s.ok()) << s;
    EXPECT_EQ(parties.Shown(), login.Shown());
    const auto bytes = ToBytes(parties.Outputs(), lanes);
    EXPECT_EQ(std::string(bytes.begin(), bytes.end()), login.checksums());
    for (int p = 0; p < kParties; ++p) {
      EXPECT_EQ(parties.cost(p), parties.run(p).DeclaredCost());
    }
  }
}

TEST_P(LoginTest, ABadMessageShowsNothing) {
  Login login(enctype(), 2, 2);
  login.SpoilMac();
  GarbledParties parties = login.Parties(e());
  for (const absl::Status& s : parties.Run()) EXPECT_TRUE(s.ok()) << s;
  EXPECT_EQ(parties.Shown(), login.Shown(false));
}

TEST_P(LoginTest, AnAlteredStreamIsFound) {
  const Login login(enctype(), 1, 3);
  const size_t last = LastRound(login);
  std::mt19937_64 random(3);
  const auto expect = [&](size_t round, ptrdiff_t at) {
    const auto ends = Changed(login, g1(), e(), round, at, static_cast<uint8_t>(1 << at % 8));
    ExpectNamed(ends[e()], Suspects::Neighbours(e()));
  };
  for (ptrdiff_t at = 0; at < 40; at += 3) expect(0, at);  // the start, the first commitments
  // Rounds behind those of the inputs: all of it is stream.
  for (size_t i = 0; i < 20; ++i) {
    expect(last - 1 - random() % (last / 2), static_cast<ptrdiff_t>(random() % 1000));
  }
}

TEST_P(LoginTest, AWrongMacIsFound) {
  const Login login(enctype(), 1, 3);
  const auto ends = Changed(login, g2(), e(), LastRound(login) - 1, -1);
  ExpectNamed(ends[e()], Suspects::Neighbours(e()));
}

TEST_P(LoginTest, OtherSharesAtAGarblerAreFound) {
  const Login login(enctype(), 1, 4);
  for (const int who : {g1(), g2()}) {
    // m, which no label tells: the two garble different circuits.
    GarbledParties other_m = login.Parties(e(), [&](int p, SharedBits& share) {
      if (p == who) (p == g1() ? share.own : share.left)[77] ^= 1;
    });
    ExpectNamed(other_m.Run()[e()], Suspects::Neighbours(e()));
    // u or w: the label of the other bit, which is a good one of this wire.
    GarbledParties other = login.Parties(e(), [&](int p, SharedBits& share) {
      if (p == who) (p == g1() ? share.left : share.own)[77] ^= 1;
    });
    ExpectNamed(other.Run()[e()], Suspects::One(who));
  }
}

TEST_P(LoginTest, ALabelOfNoBitIsFound) {
  const Login login(enctype(), 1, 5);
  // The first round ends with labels.
  ExpectNamed(Changed(login, g1(), e(), 0, -1)[e()], Suspects::One(g1()));
  ExpectNamed(Changed(login, g2(), e(), 0, -1)[e()], Suspects::One(g2()));
}

// Bytes that G1 sends E from one word of E's to G2 to the next one, before the first one, and
// behind the last one: the most of them.
size_t LongestSilence(GarbledParties& parties, int e, size_t* most_in_a_round) {
  std::vector<size_t> pieces, words;
  const auto ends = parties.Run([&](int from, int to, size_t, std::vector<uint8_t>& bytes) {
    if (from == e && to == PrevParty(e)) words.push_back(bytes.size());
    if (from == NextParty(e) && to == e) pieces.push_back(bytes.size());
  });
  for (const absl::Status& s : ends) EXPECT_TRUE(s.ok()) << s;
  size_t most = 0, since = 0;
  for (size_t round = 0; round < pieces.size(); ++round) {
    if (words[round] != 0) since = 0;  // it leaves before the round's piece is there
    since += pieces[round];
    most = std::max(most, since);
  }
  *most_in_a_round = *std::max_element(pieces.begin(), pieces.end());
  return most;
}

TEST_P(LoginTest, OnAFastLineG2HearsNothingOfTheEnd) {
  const Login login(enctype(), 16, 8);
  GarbledParties parties = login.Parties(e());
  size_t in_a_round;
  EXPECT_GT(LongestSilence(parties, e(), &in_a_round), size_t{4} << 20);
}

// Cut in other places, and with words among the inputs, it computes the same. A unit of the plan is
// not cut, which sixteen lanes make long.
TEST_P(LoginTest, OnASlowLineG2HearsOften) {
  struct {
    size_t lanes, unit;
  } const cases[] = {{16, size_t{160} << 10}, {1, 0}};
  for (const auto& c : cases) {
    const Login login(enctype(), c.lanes, 8);
    for (const size_t quick : {size_t{128} << 10, size_t{512} << 10, size_t{2} << 20}) {
      GarbledParties parties = login.Parties(e(), nullptr, PaceOf(quick));
      size_t in_a_round;
      EXPECT_LE(LongestSilence(parties, e(), &in_a_round), 2 * quick + c.unit);
      EXPECT_LE(in_a_round, quick * 5 / 4 + c.unit);
      EXPECT_EQ(parties.Shown(), login.Shown());
      const auto bytes = ToBytes(parties.Outputs(), login.lanes());
      EXPECT_EQ(std::string(bytes.begin(), bytes.end()), login.checksums());
      for (int p = 0; p < kParties; ++p) {
        EXPECT_EQ(parties.cost(p), parties.run(p).DeclaredCost());
      }
    }
  }
}

// What was shown, then the hash of its labels.
TEST_P(LoginTest, AnotherVerdictOrTimeIsNotBelieved) {
  const Login login(enctype(), 1, 6);
  const size_t last = LastRound(login);
  for (const int to : {g1(), g2()}) {
    for (const ptrdiff_t at : {0, 5, 25}) {
      const auto ends = Changed(login, e(), to, last, at);
      ExpectNamed(ends[to], Suspects::One(e()));
      EXPECT_TRUE(ends[to == g1() ? g2() : g1()].ok());
    }
  }
}

TEST_P(LoginTest, AlteredOutputsAreFound) {
  const Login login(enctype(), 2, 7);
  const size_t last = LastRound(login);
  // From the end: T + rho, then a_e.
  for (const ptrdiff_t at : {-1, -16, -17, -25}) {
    ExpectNamed(Changed(login, e(), g1(), last, at)[g1()], Suspects::Neighbours(g1()));
  }
  ExpectNamed(Changed(login, g2(), g1(), last, 3)[g1()], Suspects::Neighbours(g1()));
}

INSTANTIATE_TEST_SUITE_P(Enctypes, LoginTest,
                         testing::Combine(testing::Values(17, 18, 19, 20),
                                          testing::Values(0, 1, 2)));

TEST(TableMacTest, ChunksDoNotMatterAndEveryBitDoes) {
  std::vector<uint8_t> bytes(4096);
  std::mt19937_64 random(8);
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(random());
  const auto of = [&](size_t chunk) {
    TableMac mac({9});
    for (size_t at = 0; at < bytes.size(); at += chunk) {
      mac.Add(absl::MakeConstSpan(bytes).subspan(at, chunk));
    }
    return mac.Finish();
  };
  const MacTag whole = of(4096);
  EXPECT_EQ(of(16), whole);
  EXPECT_EQ(of(1024), whole);
  for (const size_t bit : {size_t{0}, size_t{127}, size_t{128}, 8 * bytes.size() - 1}) {
    bytes[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    EXPECT_NE(of(4096), whole);
    bytes[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
  }
  bytes.resize(4080);
  EXPECT_NE(of(4080), whole);
}

}  // namespace
}  // namespace mpckdc::garble
