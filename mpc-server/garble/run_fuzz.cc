// SPDX-License-Identifier: Apache-2.0
//
// What a party of a garbled run is sent instead of what it should be: lengths are right, frames see
// to them (any_bytes_test.cc has others).
#include <array>
#include <string>
#include <vector>

#include "mpc-server/base/bytes.h"
#include "mpc-server/garble/check_program.h"
#include "mpc-server/share/deviation.h"
#include "mpc-server/testing/fuzz.h"
#include "mpc-server/testing/garbled_parties.h"

namespace mpckdc::garble {
namespace {

constexpr size_t kLanes = 3, kBytes = 2, kGated = 5;

const Plan& SmallPlan() {
  static const auto* const plan = [] {
    auto* const made = new Plan;
    const Plan::Reg secret = made->Input(8 * kBytes), more = made->Input(kGated);
    const Plan::String given = made->AddString(kBytes);
    made->Show(
        made->Run(CheckTape(8 * kBytes, kGated), {secret, made->Public(given, 0, kBytes), more}));
    made->Output(made->Rows(secret, 3, 7));
    made->Finish();
    return made;
  }();
  return *plan;
}

GarbledParties Parties(int evaluator, int alone = -1) {
  std::vector<uint8_t> bits((8 * kBytes + kGated) * kLanes);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = i % 5 < 2;
  return {{&SmallPlan(), kLanes, {{"ab", "cd", "ef"}}}, bits, 1, evaluator, nullptr, {}, alone};
}

using Held = std::array<std::vector<uint8_t>, 3>;
Held HeldBy(const GarbledRun& run) {
  const auto bytes = [](const auto& bits) {
    return std::vector<uint8_t>(bits.begin(), bits.end());
  };
  return {bytes(run.shown()), bytes(run.outputs().own), bytes(run.outputs().left)};
}

// What each says in a round.
struct Round {
  std::array<std::vector<uint8_t>, kParties> to_next, to_prev;
};

struct Honest {
  explicit Honest(int evaluator) {
    GarbledParties parties = Parties(evaluator);
    const auto note = [&](int from, int to, size_t round, const std::vector<uint8_t>& bytes) {
      rounds.resize(round + 1);
      (to == NextParty(from) ? rounds[round].to_next : rounds[round].to_prev)[from] = bytes;
    };
    for (const absl::Status& end : parties.Run(note)) FUZZ_CHECK(end.ok());
    for (int p = 0; p < kParties; ++p) held[p] = HeldBy(parties.run(p));
  }
  std::vector<Round> rounds;
  std::array<Held, kParties> held;
};
const Honest& HonestRun(int evaluator) {
  static const std::array<Honest, kParties> all = {Honest(0), Honest(1), Honest(2)};
  return all[evaluator];
}

// who evaluates (1) | who sends (1) | to its next or previous (1) | round (1) | from which byte on
// (2) | what is added to the bytes there
FuzzSeeds Seeds() {
  FuzzSeeds seeds;
  for (char evaluator = 0; evaluator < 3; ++evaluator) {
    for (char from = 0; from < 3; ++from) {
      for (char way = 0; way < 2; ++way) {
        for (char round = 0; round < 3; ++round) {
          seeds.push_back(std::string{evaluator, from, way, round, '\0', '\3', '\1'});
        }
      }
    }
  }
  return seeds;
}

struct Lie {
  int evaluator, liar, told;
  size_t round, at;
  absl::Span<const uint8_t> change;

  // Whether anything is another then.
  bool Tell(std::vector<uint8_t>& bytes) const {
    bool changed = false;
    for (size_t i = 0; i < change.size() && !bytes.empty(); ++i) {
      bytes[(at + i) % bytes.size()] ^= change[i];
      changed = changed || change[i] != 0;
    }
    return changed;
  }
};

void CheckNamed(const absl::Status& end, const Lie& lie, bool changed) {
  FUZZ_CHECK(changed);
  const auto suspects = SuspectsOf(end);
  FUZZ_CHECK(suspects.has_value() && suspects->Has(lie.liar));
}

// Who is lied to, alone: the others say what they say when nobody lies. False: he says something
// else himself, and what they make of that is to be seen.
bool TryAlone(const Lie& lie) {
  const Honest& honest = HonestRun(lie.evaluator);
  GarbledParties parties = Parties(lie.evaluator, lie.told);
  GarbledRun& run = parties.run(lie.told);
  bool changed = false;
  for (size_t round = 0; round < honest.rounds.size(); ++round) {
    const Round& said = honest.rounds[round];
    const RoundShape shape = run.NextRound();
    std::vector<uint8_t> to_next(shape.to_next), to_prev(shape.to_prev);
    ZeroShares none = GarbledParties::NoZeros();
    run.Produce(none, {absl::MakeSpan(to_next), absl::MakeSpan(to_prev)});
    if (to_next != said.to_next[lie.told] || to_prev != said.to_prev[lie.told]) return false;
    std::vector<uint8_t> from_prev = said.to_next[PrevParty(lie.told)],
                         from_next = said.to_prev[NextParty(lie.told)];
    if (round == lie.round) {
      changed = lie.Tell(lie.liar == PrevParty(lie.told) ? from_prev : from_next);
    }
    const absl::Status end = run.Consume({from_prev, from_next});
    if (!end.ok()) {
      CheckNamed(end, lie, changed);
      return true;
    }
  }
  FUZZ_CHECK(run.Done() && HeldBy(run) == honest.held[lie.told]);
  return true;
}

void TryAll(const Lie& lie) {
  bool changed = false;
  GarbledParties parties = Parties(lie.evaluator);
  const auto ends = parties.Run([&](int from, int to, size_t r, std::vector<uint8_t>& bytes) {
    if (from == lie.liar && to == lie.told && r == lie.round) changed = lie.Tell(bytes);
  });
  for (int p = 0; p < kParties; ++p) {
    if (!ends[p].ok()) {
      FUZZ_CHECK(p == lie.told);
      CheckNamed(ends[p], lie, changed);
    }
    FUZZ_CHECK(!parties.run(p).Done() ||
               HeldBy(parties.run(p)) == HonestRun(lie.evaluator).held[p]);
  }
}

// Whoever is lied to says so and names the liar, or nothing has changed for anybody.
MPCKDC_FUZZ(garbled_run, Seeds) {
  ByteReader reader(in);
  Lie lie;
  lie.evaluator = static_cast<int>(reader.Uint(1) % 3);
  lie.liar = static_cast<int>(reader.Uint(1) % 3);
  lie.told = reader.Uint(1) % 2 == 0 ? NextParty(lie.liar) : PrevParty(lie.liar);
  lie.round = reader.Uint(1) % 8;
  lie.at = reader.Uint(2);
  lie.change = reader.Bytes(reader.left());
  if (!TryAlone(lie)) TryAll(lie);
}

}  // namespace
}  // namespace mpckdc::garble
