// SPDX-License-Identifier: Apache-2.0
// Whatever a party of a garbled run is sent: it ends with an error that names who can have sent it,
// or with what it would have ended with. Thousands of messages, altered by a seed.
#include <array>
#include <cstdio>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "mpc-server/garble/check_program.h"
#include "mpc-server/share/deviation.h"
#include "mpc-server/testing/garbled_login.h"
#include "mpc-server/testing/long_tests.h"
#include "mpc-server/testing/mutations.h"
#include "mpc-server/testing/three_parties.h"

namespace mpckdc::garble {
namespace {

const char* const kRoles[] = {"E", "G1", "G2"};
std::string Way(int evaluator, int from, int to) {
  const auto role = [&](int p) { return kRoles[(p - evaluator + kParties) % kParties]; };
  return std::string(role(from)) + " to " + role(to);
}

// What one party has in the end.
struct Held {
  std::vector<uint8_t> shown, own, left;
  friend bool operator==(const Held&, const Held&) = default;
};
Held HeldBy(const GarbledRun& run) {
  const auto bytes = [](const auto& bits) {
    return std::vector<uint8_t>(bits.begin(), bits.end());
  };
  return {bytes(run.shown()), bytes(run.outputs().own), bytes(run.outputs().left)};
}

// How many altered messages of each way were named, and had no effect.
class Counts {
 public:
  void Add(const std::string& way, bool named) { ++(named ? ways_[way].first : ways_[way].second); }
  void Expect(size_t named) const {
    for (const char* way : {"G1 to E", "G2 to E", "E to G1", "E to G2", "G2 to G1"}) {
      const auto found = ways_.find(way);
      ASSERT_NE(found, ways_.end()) << way;
      std::printf("%s: %zu named, %zu without effect\n", way, found->second.first,
                  found->second.second);
      EXPECT_GE(found->second.first, named) << way;
    }
  }

 private:
  std::map<std::string, std::pair<size_t, size_t>> ways_;
};

// ---- Bytes of the length that they should have: frames see to lengths ----

// A small circuit of few lanes, whose bits fill no byte.
class Small {
 public:
  static constexpr size_t kLanes = 3, kBytes = 2, kGated = 5;

  Small() {
    const Plan::Reg secret = plan_.Input(8 * kBytes), more = plan_.Input(kGated);
    const Plan::String given = plan_.AddString(kBytes);
    const Plan::Reg checked =
        plan_.Run(CheckTape(8 * kBytes, kGated), {secret, plan_.Public(given, 0, kBytes), more});
    plan_.Show(checked);
    plan_.Output(plan_.Rows(secret, 3, 7));
    plan_.Finish();
  }
  GarbledParties Parties(int evaluator) const {
    std::vector<uint8_t> bits((8 * kBytes + kGated) * kLanes);
    for (size_t i = 0; i < bits.size(); ++i) bits[i] = i % 5 < 2;
    return {{&plan_, kLanes, {{"ab", "cd", "ef"}}}, bits, 1, evaluator};
  }
  RunInput input() const { return {&plan_, kLanes, {{"ab", "cd", "ef"}}}; }

 private:
  Plan plan_;
};

// The party alters one message, or all that it sends to another one.
template <class Circuit>
class Liar {
 public:
  Liar(const Circuit& circuit, int evaluator) : circuit_(circuit), evaluator_(evaluator) {
    GarbledParties parties = circuit_.Parties(evaluator_);
    for (const absl::Status& s : parties.Run([&](int from, int to, size_t round, auto&bytes) {
           if (!bytes.empty()) rounds_[{from, to}].push_back(round);
         })) {
      EXPECT_TRUE(s.ok()) << s;
    }
    for (int p = 0; p < kParties; ++p) honest_[p] = HeldBy(parties.run(p));
  }

  void Lie(Mutations& mutations, Counts& counts) const {
    const auto way =
        std::next(rounds_.begin(), static_cast<ptrdiff_t>(mutations.Below(rounds_.size())));
    const auto [liar, told] = way->first;
    const size_t round = way->second[mutations.Below(way->second.size())];
    const bool all = mutations.Chance(4);
    GarbledParties parties = circuit_.Parties(evaluator_);
    const auto ends = parties.Run(
        [&, liar = liar, told = told](int from, int to, size_t r, std::vector<uint8_t>& bytes) {
          if (from != liar || to != told || bytes.empty() || (r != round && !all)) return;
          mutations.Alter(absl::MakeSpan(bytes));
        });
    counts.Add(Way(evaluator_, liar, told), !ends[told].ok());
    bool done = true;
    for (int p = 0; p < kParties; ++p) {
      done = done && ends[p].ok();
      if (ends[p].ok()) continue;
      EXPECT_EQ(p, told) << ends[p];
      const auto suspects = SuspectsOf(ends[p]);
      ASSERT_TRUE(suspects.has_value()) << ends[p];
      EXPECT_TRUE(suspects->Has(liar)) << ends[p];
    }
    for (int p = 0; p < kParties; ++p) {
      if (parties.run(p).Done()) {
        EXPECT_EQ(HeldBy(parties.run(p)), honest_[p]) << p;
      }
      EXPECT_TRUE(parties.run(p).Done() || !done);
    }
  }

 private:
  const Circuit& circuit_;
  const int evaluator_;
  std::map<std::pair<int, int>, std::vector<size_t>> rounds_;  // of messages, from one to another
  std::array<Held, kParties> honest_;
};

TEST(AnyBytesTest, OfASmallCircuit) {
  const Small circuit;
  Counts counts;
  for (int evaluator = 0; evaluator < kParties; ++evaluator) {
    const Liar liar(circuit, evaluator);
    Mutations mutations(static_cast<uint64_t>(evaluator) + 1);
    for (int i = 0; i < 4000 && !testing::Test::HasFailure(); ++i) liar.Lie(mutations, counts);
  }
  counts.Expect(1000);
}

TEST(AnyBytesTest, OfALogin) {
  Counts counts;
  for (const int32_t enctype : {17, 20}) {
    const GarbledLogin login(enctype, 2, 1);
    const int evaluator = enctype % kParties;
    const Liar liar(login, evaluator);
    Mutations mutations(static_cast<uint64_t>(enctype));
    const int lies = ShortOrLong(60, 150);
    for (int i = 0; i < lies && !testing::Test::HasFailure(); ++i) liar.Lie(mutations, counts);
  }
  counts.Expect(ShortOrLong(8, 20));
}

// ---- Of any length, through frames ----

// A run over channels, of which the n-th message from one to another is any bytes.
class OverChannels {
 public:
  OverChannels(const Small& circuit, int evaluator) : circuit_(circuit), evaluator_(evaluator) {
    Run([&](MemoryRing::Intercepted& m) { messages_.push_back({m.from, m.to, m.round}); });
    for (int p = 0; p < kParties; ++p) {
      EXPECT_TRUE(ends_[p].ok()) << ends_[p];
      honest_[p] = *held_[p];
    }
  }

  void Lie(Mutations& mutations) {
    const auto [liar, told, round] = messages_[mutations.Below(messages_.size())];
    Run([&, liar = liar, told = told, round = round](MemoryRing::Intercepted& m) {
      if (m.from != liar || m.to != told || m.round != round) return;
      std::vector<uint8_t> bytes(m.payload.begin(), m.payload.end());
      mutations.AlterLength(bytes);
      m.instead.emplace(bytes.begin(), bytes.end());
    });
    EXPECT_FALSE(ends_[told].ok()) << "a message of another length is taken";
    for (int p = 0; p < kParties; ++p) {
      if (ends_[p].ok()) {
        EXPECT_EQ(*held_[p], honest_[p]);
      }
      const auto suspects = SuspectsOf(ends_[p]);
      if (suspects.has_value()) {
        EXPECT_TRUE(suspects->Has(liar)) << ends_[p];
      }
    }
  }

 private:
  void Run(const MemoryRing::Interceptor& see) {
    MemoryRing ring;
    ring.SetInterceptor([&](MemoryRing::Intercepted& m) {
      if (m.type == FrameType::kRound && !m.payload.empty()) see(m);
    });
    held_ = {};
    ends_ = RunThreeParties(ring, 1, [&](PartyContext& party) -> absl::Status {
      party.BeginBatch(1);
      const size_t bits = circuit_.input().plan->input_rows() * Small::kLanes;
      SharedBits inputs = {SecretVector<uint8_t>(bits), SecretVector<uint8_t>(bits)};
      GarbledRun run(party.party(), evaluator_,
                     DrawNeighbourKeys(party, party.NextGarbling(), Digest{}), circuit_.input(),
                     std::move(inputs));
      const absl::Status end = RunTogether(party, {&run});
      if (end.ok()) held_[party.party()] = HeldBy(run);
      return end;
    });
  }

  const Small& circuit_;
  const int evaluator_;
  std::vector<std::tuple<int, int, uint16_t>> messages_;
  std::array<absl::Status, kParties> ends_;
  std::array<std::optional<Held>, kParties> held_;
  std::array<Held, kParties> honest_;
};

TEST(AnyBytesTest, OfAnyLength) {
  const Small circuit;
  for (int evaluator = 0; evaluator < kParties; ++evaluator) {
    OverChannels run(circuit, evaluator);
    Mutations mutations(static_cast<uint64_t>(evaluator) + 10);
    for (int i = 0; i < 700 && !testing::Test::HasFailure(); ++i) run.Lie(mutations);
  }
}

}  // namespace
}  // namespace mpckdc::garble
