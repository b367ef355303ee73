// SPDX-License-Identifier: Apache-2.0
// That a liar lies as it was told to, and that its cancelling errors cancel.
#include "mpc-server/testing/deviating_channel.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/testing/three_parties.h"

namespace mpckdc {
namespace {

// The error of a message as a check with known weights sees it.
uint64_t WeightOf(const std::vector<Flip>& flips, size_t which, size_t row_bytes) {
  uint64_t sum = 0;
  for (const Flip& flip : flips) {
    for (size_t bit = 0; bit < 8; ++bit) {
      if ((flip.mask >> bit & 1) == 0) continue;
      sum ^= KnownWeight(which, flip.byte / row_bytes, 8 * (flip.byte % row_bytes) + bit);
    }
  }
  return sum;
}

TEST(CancellingErrors, HaveNoWeight) {
  SeededRandomForTest random(1);
  for (size_t which = 0; which < kKnownWeights; ++which) {
    for (const size_t row_bytes : {1u, 9u, 64u}) {
      for (int i = 0; i < 20; ++i) {
        const auto flips = CancellingFlips(
            [which](size_t row, size_t lane) { return KnownWeight(which, row, lane); },
            16 * row_bytes, row_bytes, random);
        ASSERT_FALSE(flips.empty());
        std::vector<uint8_t> message(16 * row_bytes);
        ApplyFlips(flips, absl::MakeSpan(message));
        EXPECT_NE(message, std::vector<uint8_t>(message.size()));
        EXPECT_EQ(WeightOf(flips, which, row_bytes), 0u);
        EXPECT_NE(WeightOf({flips[0]}, which, row_bytes), 0u);
      }
    }
  }
}

// w of GF(16) is where the four bits of an S-box's norm would be put.
TEST(CancellingErrors, TheFieldOf64BitsHasOneOf16) {
  const uint64_t one = KnownWeight(3, 0, 0), w = KnownWeight(3, 1, 0);
  EXPECT_EQ(one, 1u);
  const uint64_t w2 = Multiply64(w, w);
  EXPECT_EQ(w2, KnownWeight(3, 2, 0));
  EXPECT_EQ(Multiply64(w2, w2), w ^ 1);
  EXPECT_EQ(Multiply64(uint64_t{1} << 63, 2), 0x1Bu);
}

// ---- Two rounds of three parties, in which everybody sends its number ----

class Counting : public Circuit {
 public:
  explicit Counting(int party) : party_(static_cast<uint8_t>(party)) {}
  bool Done() const override { return round_ == 2; }
  RoundShape NextRound() const override { return {4, 2, round_ == 0 ? "first" : "second"}; }
  void Produce(ZeroShares&, RoundOut out) override {
    sent = out.to_next;
    std::fill(out.to_next.begin(), out.to_next.end(), Text());
    std::fill(out.to_prev.begin(), out.to_prev.end(), Text());
  }
  absl::Status Consume(RoundIn in) override {
    from_prev.emplace_back(in.from_prev.begin(), in.from_prev.end());
    from_next.emplace_back(in.from_next.begin(), in.from_next.end());
    own.emplace_back(sent.begin(), sent.end());
    ++round_;
    return absl::OkStatus();
  }
  Cost DeclaredCost() const override { return {2, 8, 4}; }

  std::vector<std::string> from_prev, from_next, own;
  absl::Span<const uint8_t> sent;

 private:
  uint8_t Text() const { return static_cast<uint8_t>('0' + 3 * round_ + party_); }
  const uint8_t party_;
  int round_ = 0;
};

// What the three saw when P0 lied, and whether P1 came to the end.
std::array<std::unique_ptr<Counting>, kParties> Saw(Liar& liar, bool good_end = true) {
  MemoryRing ring;
  std::array<std::unique_ptr<Counting>, kParties> circuits;
  // A channel that passes everything on to the ring's.
  struct Passing : PeerChannel {
    explicit Passing(PeerChannel& to) : to(to) {}
    absl::Status Post(const RoundId& id, absl::Span<const uint8_t> next,
                      absl::Span<const uint8_t> prev) override {
      return to.Post(id, next, prev);
    }
    absl::Status Collect(const RoundId& id, absl::Span<uint8_t> prev, absl::Span<uint8_t> next,
                         absl::Time deadline) override {
      return to.Collect(id, prev, next, deadline);
    }
    absl::Status Send(Neighbour n, FrameType type, absl::Span<const uint8_t> payload) override {
      return to.Send(n, type, payload);
    }
    absl::StatusOr<Frame> Receive(Neighbour from, absl::Time deadline) override {
      return to.Receive(from, deadline);
    }
    void BindSession(uint32_t session) override { to.BindSession(session); }
    ChannelCounters Counters() const override { return to.Counters(); }
    PeerChannel& to;
  };
  const auto lying = liar.Wrap(std::make_unique<Passing>(ring.channel(0)));
  const auto statuses = RunOverChannels(
      {lying.get(), &ring.channel(1), &ring.channel(2)}, 1,
      [&](PartyContext& party) {
        auto& circuit = circuits[party.party()];
        circuit = std::make_unique<Counting>(party.party());
        party.BeginBatch(1);
        return RunTogether(party, {circuit.get()});
      },
      absl::Seconds(2));
  EXPECT_EQ(statuses[1].ok(), good_end) << statuses[1];
  return circuits;
}

TEST(DeviatingChannel, TellsTheTruthUnlessTold) {
  Liar liar(1);
  const auto saw = Saw(liar);
  EXPECT_THAT(saw[1]->from_prev, testing::ElementsAre("0000", "3333"));
  EXPECT_THAT(saw[2]->from_next, testing::ElementsAre("00", "33"));
  EXPECT_EQ(liar.struck(), 0u);
}

TEST(DeviatingChannel, FlipsOneBitForTheReceiverAlone) {
  Liar liar(1);
  liar.Arm({.where = AtStep("second")});
  const auto saw = Saw(liar);
  EXPECT_EQ(saw[1]->from_prev[0], "0000");
  EXPECT_NE(saw[1]->from_prev[1], "3333");
  EXPECT_THAT(saw[0]->own, testing::ElementsAre("0000", "3333"));
  EXPECT_THAT(saw[2]->from_next, testing::ElementsAre("00", "33"));
  EXPECT_THAT(liar.counts(), testing::ElementsAre(testing::Pair("one bit", 1)));
  Liar again(1);
  again.Arm({.where = AtStep("second")});
  EXPECT_EQ(Saw(again)[1]->from_prev, saw[1]->from_prev) << "the same seed, another lie";
}

TEST(DeviatingChannel, ComputesOnWithAConstant) {
  Liar liar(1);
  liar.Arm({.kind = LieKind::kConstant, .own_state = true, .flips = {{1, 0x08}, {3, 0x01}}});
  const auto saw = Saw(liar);
  EXPECT_THAT(saw[1]->from_prev, testing::ElementsAre("0801", "3;32"));
  EXPECT_EQ(saw[0]->own, saw[1]->from_prev);
}

TEST(DeviatingChannel, RepeatsWhatItAndOthersSaid) {
  Liar repeats(1);
  repeats.KeepHistory();
  repeats.Arm({.kind = LieKind::kOtherRound, .where = AtRound(1)});
  EXPECT_THAT(Saw(repeats)[1]->from_prev, testing::ElementsAre("0000", "0000"));
  Liar echoes(1);
  echoes.Arm({.kind = LieKind::kEcho, .where = AtRound(1), .own_state = true});
  const auto saw = Saw(echoes);
  EXPECT_THAT(saw[1]->from_prev, testing::ElementsAre("0000", "5555"));
  EXPECT_THAT(saw[0]->own, testing::ElementsAre("0000", "5555"));
}

TEST(DeviatingChannel, IsLateAndSaysThingsTwice) {
  Liar late(1);
  late.Arm({.kind = LieKind::kLate, .where = AtRound(0)});
  EXPECT_THAT(Saw(late)[1]->from_prev, testing::ElementsAre("0000", "3333"));
  EXPECT_EQ(late.struck(), 1u);
  Liar twice(1);
  twice.Arm({.kind = LieKind::kTwice, .where = AtRound(0)});
  Saw(twice, /*good_end=*/false);
  Liar swaps(1);
  swaps.Arm({.kind = LieKind::kSwap, .where = AtStep("hello"), .control = true});
  EXPECT_THAT(Saw(swaps)[1]->from_prev, testing::ElementsAre("0000", "3333"))
      << "hellos to two neighbours have no order";
}

}  // namespace
}  // namespace mpckdc
