// SPDX-License-Identifier: Apache-2.0
//
// No two garblings have the same keys: not of one run, and not of two circuits.
//
// Built twice: as the servers are, and as a control whose defence can be dropped (MPCKDC_CONTROL,
// the mutant GarbledAgreed.patch).
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "mpc-server/agree/agreement.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/share/pairwise_streams.h"
#ifdef MPCKDC_CONTROL
#include "mpc-server/testing/control.h"
#endif
#include "mpc-server/testing/garbled_attack.h"

namespace mpckdc::garbled_attack {
namespace {

// Two evaluations of one garbling on different inputs would be two labels of a wire.
TEST(OneGarblingDeathTest, KeysAreDrawnOnce) {
  PairwiseStreams streams(1, PairwiseSeeds());
  std::array<uint8_t, 32> own, next;
  const auto draw = [&](uint32_t batch, uint32_t number) {
    streams.FillGarbling({batch, number, 0}, absl::MakeSpan(own), absl::MakeSpan(next));
  };
  draw(1, 0);
  draw(1, 1);
  draw(2, 0);
  EXPECT_DEATH(draw(2, 0), "used twice");
  EXPECT_DEATH(draw(1, 2), "used twice");
}

EngineOptions Together() {
  EngineOptions options;
  options.mode = BatchMode::kFixed;
  options.batch_window = absl::Milliseconds(50);
  return options;
}

// A follower that evaluates tells one garbler that it refuses the first of two jobs, and the other
// that it takes it. The two then garble different circuits, in the batch's first round, before they
// compare what they believe in. Were their draws the same, labels of the one would be labels of the
// other under another bit, and their difference the Delta that an evaluator must never have.
class TwoStoriesTest : public ::testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  TwoStoriesTest() : realm_(kEnctypeAes256Sha1, Together()) {
    realm_.hub().SetInterceptor([this](MemoryRing::Intercepted& m) { See(m); });
    realm_.RestartAll();
  }
  ~TwoStoriesTest() override { realm_.StopAll(); }  // which calls See()

  int liar() const { return std::get<0>(GetParam()); }
  // Who is told that the job is refused.
  int fooled() const { return std::get<1>(GetParam()) ? NextParty(liar()) : PrevParty(liar()); }

  void Lie() {
    for (int tries = 0; tries < 20 && lied_in_ == 0; ++tries) {
      // Garbage is enough: anybody may send it.
      realm_.RunAll({realm_.OpenPreauth(realm_.alice, realm_.AlteredPreauth(realm_.alice)),
                     realm_.OpenPreauth(realm_.bob, realm_.AlteredPreauth(realm_.bob))});
    }
    ASSERT_NE(lied_in_, 0u);
    for (const int garbler : {NextParty(liar()), PrevParty(liar())}) {
      ASSERT_GT(labels_[garbler].size(), 1000u);
    }
  }
  // Where the same draws stand at two places, labels are equal or differ by Delta: how often they
  // do by the most frequent difference.
  size_t Deltas() {
    const std::vector<Label>& first = labels_[NextParty(liar())];
    const std::vector<Label>& second = labels_[PrevParty(liar())];
    std::map<std::pair<uint64_t, uint64_t>, size_t> places, differences;
    for (size_t i = 0; i < first.size(); ++i) places[{first[i].low, first[i].high}] = i;
    std::optional<size_t> shift;
    for (size_t j = 0; j < second.size() && !shift.has_value(); ++j) {
      const auto place = places.find({second[j].low, second[j].high});
      if (place != places.end()) shift = place->second - j;
    }
    if (!shift.has_value()) return 0;
    size_t most = 1;  // there is an equal one
    for (size_t j = 0; j < second.size() && j + *shift < first.size(); ++j) {
      const Label &a = first[j + *shift], &b = second[j];
      if (((a.low ^ b.low) & 1) == 0) continue;
      most = std::max(most, ++differences[{a.low ^ b.low, a.high ^ b.high}]);
    }
    std::printf("P%d has Delta: %zu labels of the two garblers differ by it\n", liar(), most);
    return most;
  }

  void See(MemoryRing::Intercepted& m) {
    if (m.type == FrameType::kAgreement && m.from == liar() && m.payload[0] == 2) {
      auto vote = DecodeVote(AsText(m.payload));
      if (!vote.ok() || vote->codes.size() != 2) return;
      if (vote->number % kParties != static_cast<uint32_t>(liar())) return;
      lied_in_ = vote->number;
      if (m.to != fooled()) return;
      vote->codes[0] = CodeOf(Verdict::kRefused);
      m.instead = EncodeVote(*vote);
    }
    if (m.type != FrameType::kRound || m.to != liar() || BatchOf(m) != lied_in_) return;
    auto& labels = labels_[m.from];
    for (size_t at = kConfirmBytes; at + sizeof(Label) <= m.payload.size(); at += sizeof(Label)) {
      std::memcpy(&labels.emplace_back(), &m.payload[at], sizeof(Label));
    }
  }

  Realm realm_;
  std::atomic<uint32_t> lied_in_{0};
  std::map<int, std::vector<Label>> labels_;  // by sender
};

TEST_P(TwoStoriesTest, GiveTheEvaluatorNoDelta) {
  Lie();
  EXPECT_EQ(Deltas(), 0u);
}

#ifdef MPCKDC_CONTROL
// One lane more at one garbler than at the other one.
TEST_P(TwoStoriesTest, GiveItDeltaWhereKeysDoNotFollowFromThem) {
  DropForTest("GarbledAgreed");
  Lie();
  UpholdForTest("GarbledAgreed");
  EXPECT_GT(Deltas(), 300u);
}
#endif

INSTANTIATE_TEST_SUITE_P(Liars, TwoStoriesTest,
                         ::testing::Combine(::testing::Values(1, 2), ::testing::Bool()));

}  // namespace
}  // namespace mpckdc::garbled_attack
