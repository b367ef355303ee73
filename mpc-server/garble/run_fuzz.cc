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

GarbledParties Parties(int evaluator) {
  std::vector<uint8_t> bits((8 * kBytes + kGated) * kLanes);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = i % 5 < 2;
  return {{&SmallPlan(), kLanes, {{"ab", "cd", "ef"}}}, bits, 1, evaluator};
}

using Held = std::array<std::vector<uint8_t>, 3>;
Held HeldBy(const GarbledRun& run) {
  const auto bytes = [](const auto& bits) {
    return std::vector<uint8_t>(bits.begin(), bits.end());
  };
  return {bytes(run.shown()), bytes(run.outputs().own), bytes(run.outputs().left)};
}

struct Honest {
  explicit Honest(int evaluator) {
    GarbledParties parties = Parties(evaluator);
    for (const absl::Status& end : parties.Run()) FUZZ_CHECK(end.ok());
    for (int p = 0; p < kParties; ++p) held[p] = HeldBy(parties.run(p));
  }
  std::array<Held, kParties> held;
};

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

// Whoever is lied to says so and names the liar, or nothing has changed for anybody.
MPCKDC_FUZZ(garbled_run, Seeds) {
  static const std::array<Honest, kParties> honest = {Honest(0), Honest(1), Honest(2)};
  ByteReader reader(in);
  const int evaluator = static_cast<int>(reader.Uint(1) % 3),
            liar = static_cast<int>(reader.Uint(1) % 3);
  const int told = reader.Uint(1) % 2 == 0 ? NextParty(liar) : PrevParty(liar);
  const size_t round = reader.Uint(1) % 8, at = reader.Uint(2);
  const absl::Span<const uint8_t> change = reader.Bytes(reader.left());
  bool changed = false;
  GarbledParties parties = Parties(evaluator);
  const auto ends = parties.Run([&](int from, int to, size_t r, std::vector<uint8_t>& bytes) {
    if (from != liar || to != told || r != round || bytes.empty()) return;
    for (size_t i = 0; i < change.size(); ++i) {
      bytes[(at + i) % bytes.size()] ^= change[i];
      changed = changed || change[i] != 0;
    }
  });
  for (int p = 0; p < kParties; ++p) {
    if (!ends[p].ok()) {
      FUZZ_CHECK(changed && p == told);
      const auto suspects = SuspectsOf(ends[p]);
      FUZZ_CHECK(suspects.has_value() && suspects->Has(liar));
    }
    FUZZ_CHECK(!parties.run(p).Done() || HeldBy(parties.run(p)) == honest[evaluator].held[p]);
  }
}

}  // namespace
}  // namespace mpckdc::garble
