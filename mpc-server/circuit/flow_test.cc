// SPDX-License-Identifier: Apache-2.0
// share/flow.h, with three parties.
#include "mpc-server/share/flow.h"

#include "gtest/gtest.h"
#include "mpc-server/share/reveal.h"
#include "mpc-server/testing/three_parties.h"

namespace mpckdc {
namespace {

// A circuit of one round: three values that the parties have become shares of their sum. As in a
// product, with p_i in place of the sum of products.
class ShareInput : public Circuit {
 public:
  void Reset(absl::Span<const Block> own) {
    values_.clear();
    for (const Block& p : own) values_.push_back({Block{}, p});
    done_ = values_.empty();
  }
  absl::Span<const SharedBlock> values() const { return values_; }

  bool Done() const override { return done_; }
  RoundShape NextRound() const override { return {values_.size() * sizeof(Block), 0, "input"}; }
  void Produce(ZeroShares& zero, RoundOut out) override {
    zero.Fill(out.to_next);
    for (size_t i = 0; i < out.to_next.size(); ++i) {
      values_[i / 16].a[i % 16] = out.to_next[i] ^= values_[i / 16].a[i % 16];
    }
  }
  absl::Status Consume(RoundIn in) override {
    for (size_t i = 0; i < in.from_prev.size(); ++i) {
      values_[i / 16].x[i % 16] = values_[i / 16].a[i % 16] ^ in.from_prev[i];
    }
    done_ = true;
    return absl::OkStatus();
  }
  Cost DeclaredCost() const override {
    return values_.empty() ? Cost{} : Cost{1, values_.size() * sizeof(Block), 0};
  }

 private:
  SecretVector<SharedBlock> values_;
  bool done_ = true;
};

constexpr Block kValue = {1, 2, 3, 4};
constexpr Cost kInput = {1, sizeof(Block), 0}, kOpen = {1, sizeof(Block), sizeof(Block)};

// p_0 is the value, the others are zero.
std::vector<Block> OwnShares(int party) { return {party == 0 ? kValue : Block{}}; }

class TestFlow : public Flow {
 public:
  using Flow::Start;
  Cost DeclaredCost() const override { return kInput + kOpen + kInput + kOpen; }
};

// A value goes in, is opened, goes in again and is opened again, beside a shorter circuit; every
// circuit reads what the one before it gave. One that has nothing to do is passed over.
TEST(FlowTest, CircuitsFollowEachOther) {
  MemoryRing ring;
  const auto statuses = RunThreeParties(ring, 1, [&](PartyContext& party) {
    const int p = party.party();
    ShareInput first, second, beside, none;
    OpenToServers open_first(p, "first"), open_second(p, "second");
    int ended = 0;
    first.Reset(OwnShares(p));
    beside.Reset(OwnShares(p));
    TestFlow flow;
    flow.Start(first, [&] {
      open_first.Reset(first.values());
      flow.Start(open_first, [&] {
        ++ended;
        none.Reset({});
        flow.Start(none, [&] {
          second.Reset({p == 0 ? open_first.values()[0] : Block{}});
          flow.Start(second, [&] {
            open_second.Reset(second.values());
            flow.Start(open_second, [&] { ++ended; });
          });
        });
      });
    });
    party.BeginBatch(1);
    Cost counted;
    const absl::Status s = RunTogether(party, {&flow, &beside}, &counted);
    EXPECT_EQ(counted, Together(flow.DeclaredCost(), kInput));
    EXPECT_EQ(counted.rounds, 4u);
    EXPECT_EQ(ended, 2);
    EXPECT_EQ(open_second.values()[0], kValue);
    return s;
  });
  for (const absl::Status& s : statuses) EXPECT_TRUE(s.ok()) << s;
}

TEST(FlowTest, NothingToDoIsDone) {
  TestFlow flow;
  EXPECT_TRUE(flow.Done());
  int ended = 0;
  ShareInput none;
  flow.Start(none, [&] { flow.Start(none, [&] { ++ended; }); });
  EXPECT_TRUE(flow.Done());
  EXPECT_EQ(ended, 1);
}

// An opening that does not agree ends the flow with its error.
TEST(FlowTest, AnErrorComesThrough) {
  MemoryRing ring;
  ring.SetInterceptor([](MemoryRing::Intercepted& m) {
    if (m.from == 0 && m.step == "value") m.payload[0] ^= 1;
  });
  const auto statuses = RunThreeParties(ring, 1, [&](PartyContext& party) {
    const int p = party.party();
    ShareInput input;
    OpenToServers open(p, "value");
    input.Reset(OwnShares(p));
    TestFlow flow;
    flow.Start(input, [&] {
      open.Reset(input.values());
      flow.Start(open);
    });
    party.BeginBatch(1);
    return RunTogether(party, {&flow});
  });
  EXPECT_FALSE(statuses[1].ok() && statuses[2].ok());
}

}  // namespace
}  // namespace mpckdc
