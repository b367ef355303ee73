// SPDX-License-Identifier: Apache-2.0
// Where a run's keys are: who reads a garbler's in its memory, and what its evaluator was sent, has
// Delta and so the users' keys. They lie in secret memory (base/secret.h) and nowhere else, while
// the run lives and after it.
#include <algorithm>
#include <array>
#include <new>
#include <vector>

#include "gtest/gtest.h"
#include "mpc-server/garble/garbled_run.h"

namespace mpckdc::garble {
namespace {

RunKey KeyOf(uint8_t first) {
  RunKey key;
  for (size_t i = 0; i < key.size(); ++i) key[i] = static_cast<uint8_t>(first + i);
  return key;
}

bool Holds(const std::vector<uint8_t>& memory, const RunKey& key) {
  return std::search(memory.begin(), memory.end(), key.begin(), key.end()) != memory.end();
}

TEST(KeyMemoryTest, ARunHoldsItsKeysInSecretMemoryAlone) {
  Plan plan;
  plan.Output(plan.Input(8));
  plan.Finish();
  const RunInput input = {&plan, 1, {}};
  const NeighbourKeys keys = {{KeyOf(0x11), KeyOf(0x31)}, {KeyOf(0x51), KeyOf(0x71)}};
  for (int party = 0; party < 3; ++party) {
    alignas(GarbledRun) std::array<uint8_t, sizeof(GarbledRun)> place{};
    SharedBits inputs = {SecretVector<uint8_t>(8), SecretVector<uint8_t>(8)};
    auto* const run =
        new (place.data()) GarbledRun(party, 0, Secret<NeighbourKeys>(keys), input, std::move(inputs));
    const std::vector<uint8_t> during(place.begin(), place.end());
    run->~GarbledRun();
    const std::vector<uint8_t> after(place.begin(), place.end());
    for (const auto& pair : {keys.own, keys.next}) {
      for (const RunKey& key : pair) {
        EXPECT_FALSE(Holds(during, key)) << "P" << party;
        EXPECT_FALSE(Holds(after, key)) << "P" << party;
      }
    }
  }
}

}  // namespace
}  // namespace mpckdc::garble
