// SPDX-License-Identifier: Apache-2.0
// share/circuit_chain.h, with three parties.
#include "mpc-server/share/circuit_chain.h"

#include "gtest/gtest.h"
#include "mpc-server/share/input.h"
#include "mpc-server/share/reveal.h"
#include "mpc-server/testing/three_parties.h"

namespace mpckdc {
namespace {

constexpr Block kValue = {1, 2, 3, 4};

// p_0 is the value, the others are zero.
std::vector<Block> OwnShares(int party) { return {party == 0 ? kValue : Block{}}; }

// A value goes in, is opened, goes in again and is opened again, beside a shorter circuit; every
// step reads what the one before it gave.
TEST(CircuitChainTest, StepsFollowEachOther) {
  MemoryRing ring;
  const auto statuses = RunThreeParties(ring, 1, [&](PartyContext& party) {
    const int p = party.party();
    ShareInput first, second, beside, none;
    OpenToServers open_first(p, "first"), open_second(p, "second");
    int local = 0;
    const Cost input = {1, sizeof(Block), 0}, open = {1, sizeof(Block), sizeof(Block)};
    first.Reset(OwnShares(p));
    beside.Reset(OwnShares(p));
    CircuitChain chain;
    chain.Reset({{&first, nullptr, input},
                 {&open_first, [&] { open_first.Reset(first.values()); }, open},
                 {nullptr, [&] { ++local; }, {}},
                 {&none, [&] { none.Reset({}); }, {}},  // nothing to do: passed over
                 {&second,
                  [&] { second.Reset({p == 0 ? open_first.values()[0] : Block{}}); }, input},
                 {&open_second, [&] { open_second.Reset(second.values()); }, open},
                 {nullptr, [&] { ++local; }, {}}});
    party.BeginBatch(1);
    Cost counted;
    const absl::Status s = RunTogether(party, {&chain, &beside}, &counted);
    EXPECT_EQ(counted, Together(chain.DeclaredCost(), beside.DeclaredCost()));
    EXPECT_EQ(counted.rounds, 4u);
    EXPECT_EQ(local, 2);
    EXPECT_EQ(open_second.values()[0], kValue);
    return s;
  });
  for (const absl::Status& s : statuses) EXPECT_TRUE(s.ok()) << s;
}

TEST(CircuitChainTest, NothingToDoIsDone) {
  CircuitChain chain;
  EXPECT_TRUE(chain.Done());
  int begun = 0;
  ShareInput none;
  chain.Reset({{&none, [&] { ++begun; }, {}}, {nullptr, [&] { ++begun; }, {}}});
  EXPECT_TRUE(chain.Done());
  EXPECT_EQ(begun, 2);
  EXPECT_EQ(chain.DeclaredCost(), Cost{});
}

// An opening that does not agree ends the chain with its error.
TEST(CircuitChainTest, AnErrorComesThrough) {
  MemoryRing ring;
  ring.SetInterceptor([](MemoryRing::Intercepted& m) {
    if (m.from == 0 && m.step == "value") m.payload[0] ^= 1;
  });
  const auto statuses = RunThreeParties(ring, 1, [&](PartyContext& party) {
    const int p = party.party();
    ShareInput input;
    OpenToServers open(p, "value");
    input.Reset(OwnShares(p));
    CircuitChain chain;
    chain.Reset({{&input, nullptr, input.DeclaredCost()},
                 {&open, [&] { open.Reset(input.values()); }, {1, sizeof(Block), sizeof(Block)}}});
    party.BeginBatch(1);
    return RunTogether(party, {&chain});
  });
  EXPECT_FALSE(statuses[1].ok() && statuses[2].ok());
}

}  // namespace
}  // namespace mpckdc
