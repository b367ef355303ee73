// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/garble/key_circuits.h"

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/key/key_info.h"
#include "mpc-server/key/usage_keys.h"
#include "mpc-server/testing/garbled_parties.h"

namespace mpckdc::garble {
namespace {

class KeyCircuitsTest : public testing::TestWithParam<int32_t> {
 protected:
  const Enctype& enctype() const { return *FindEnctype(GetParam()); }
};

// Lanes are keys of their own; every usage, against the derivation in the clear.
TEST_P(KeyCircuitsTest, EqualThePlainDerivation) {
  constexpr size_t kLanes = 3;
  const uint32_t usages[] = {1, 2, 3, 17, 56};
  std::mt19937_64 random(static_cast<uint64_t>(enctype().number));
  std::string bases(kLanes * enctype().key_bytes, '\0');
  for (char& c : bases) c = static_cast<char>(random());

  Plan plan;
  KeyCircuits circuits(plan, enctype());
  for (const uint32_t usage : usages) {
    for (const Plan::Reg part : circuits.Usage(usage)) plan.Output(part);
  }
  plan.Finish();
  RunInput input = {&plan, kLanes, {}};
  for (const std::string& text : circuits.strings()) input.strings.emplace_back(kLanes, text);
  GarbledParties parties(input, ToRows(AsBytes(bases), kLanes), 1, /*evaluator=*/2);
  for (const absl::Status& s : parties.Run()) ASSERT_TRUE(s.ok()) << s;

  std::vector<uint8_t> want;
  for (size_t lane = 0; lane < kLanes; ++lane) {
    const auto base = AsBytes(bases).subspan(lane * enctype().key_bytes, enctype().key_bytes);
    for (const uint32_t usage : usages) {
      const ExpandedUsage expanded = *ExpandUsage(enctype(), base, usage);
      for (const SecretBytes* part : {&expanded.round_keys, &expanded.h, &expanded.mac_states}) {
        want.insert(want.end(), part->begin(), part->end());
      }
    }
  }
  EXPECT_EQ(ToBytes(parties.Outputs(), kLanes), want);
}

// doc/garbled.md, "Keys": of a user's key.
TEST(KeyCircuits, HaveAsManyGatesAsTheTableSays) {
  const std::pair<int32_t, size_t> table[] = {
      {kEnctypeAes128Gcm, 36'000},     {kEnctypeAes256Gcm, 71'000},
      {kEnctypeAes128Sha1, 97'000},    {kEnctypeAes256Sha1, 144'000},
      {kEnctypeAes128Sha256, 377'000}, {kEnctypeAes256Sha384, 961'000}};
  for (const auto& [number, gates] : table) {
    Plan plan;
    KeyCircuits circuits(plan, *FindEnctype(number));
    for (const uint32_t usage : UsagesOf(KeyClass::kUser)) circuits.Usage(usage);
    EXPECT_NEAR(static_cast<double>(plan.gates()), static_cast<double>(gates), 600) << number;
  }
}

INSTANTIATE_TEST_SUITE_P(Enctypes, KeyCircuitsTest,
                         testing::Values(kEnctypeAes128Gcm, kEnctypeAes256Gcm, 17, 18, 19, 20));

}  // namespace
}  // namespace mpckdc::garble
