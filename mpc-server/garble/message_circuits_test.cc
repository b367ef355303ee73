// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/garble/message_circuits.h"

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/key/usage_keys.h"
#include "mpc-server/testing/cts.h"
#include "mpc-server/testing/garbled_parties.h"

namespace mpckdc::garble {
namespace {

constexpr int32_t kNumbers[] = {17, 18, 19, 20};
constexpr uint32_t kUsage = 1, kChecksumUsage = 56;

std::string RandomText(std::mt19937_64& random, size_t count) {
  std::string text(count, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

// Lanes of a plan: inputs and strings, and what three parties make of them.
struct Lanes {
  explicit Lanes(size_t count) : count(count) {}
  // Of every lane, in the order of the plan's inputs.
  void Input(const std::vector<std::string>& texts) {
    std::string all;
    for (const std::string& t : texts) all += t;
    const auto rows = ToRows(AsBytes(all), count);
    inputs.insert(inputs.end(), rows.begin(), rows.end());
  }
  void String(const std::vector<std::string>& texts) { strings.push_back(texts); }
  RunInput Of(const Plan& plan) const {
    RunInput input = {&plan, count, {}};
    for (const auto& texts : strings) input.strings.emplace_back(texts.begin(), texts.end());
    return input;
  }

  const size_t count;
  std::vector<uint8_t> inputs;
  std::vector<std::vector<std::string>> strings;
};

std::vector<std::string> Outputs(const Plan& plan, const Lanes& lanes, int evaluator) {
  GarbledParties parties(lanes.Of(plan), lanes.inputs, 1, evaluator);
  for (const absl::Status& s : parties.Run()) EXPECT_TRUE(s.ok()) << s;
  for (int p = 0; p < kParties; ++p) {
    EXPECT_EQ(parties.cost(p), parties.run(p).DeclaredCost());
  }
  const auto bytes = ToBytes(parties.Outputs(), lanes.count);
  std::vector<std::string> texts;
  for (size_t lane = 0; lane < lanes.count; ++lane) {
    const size_t each = bytes.size() / lanes.count;
    texts.emplace_back(bytes.begin() + static_cast<ptrdiff_t>(lane * each),
                       bytes.begin() + static_cast<ptrdiff_t>((lane + 1) * each));
  }
  return texts;
}

struct Keys {
  Keys(const Enctype& enctype, size_t lanes, std::mt19937_64& random) : enctype(enctype) {
    for (size_t lane = 0; lane < lanes; ++lane) {
      bases.push_back(RandomText(random, enctype.key_bytes));
    }
  }
  std::vector<std::string> Of(uint32_t usage, SecretBytes ExpandedUsage::*which) const {
    std::vector<std::string> all;
    for (const std::string& base : bases) {
      const ExpandedUsage expanded = *ExpandUsage(enctype, AsBytes(base), usage);
      all.emplace_back((expanded.*which).begin(), (expanded.*which).end());
    }
    return all;
  }
  const Enctype& enctype;
  std::vector<std::string> bases;
};

TEST(MessageCircuits, EncryptIsThatOfOpenssl) {
  std::mt19937_64 random(1);
  for (const int32_t number : kNumbers) {
    const Enctype& enctype = *FindEnctype(number);
    for (const size_t bytes : {16, 17, 31, 32, 33, 48, 61}) {
      constexpr size_t kLanes = 2;
      Plan plan;
      MessageCircuits circuits(plan, enctype);
      const auto keys_in = circuits.RoundKeys(), text_in = plan.Input(8 * bytes);
      plan.Output(circuits.Encrypt(keys_in, text_in));
      plan.Finish();
      const Keys keys(enctype, kLanes, random);
      const std::vector<std::string> texts = {RandomText(random, bytes), RandomText(random, bytes)};
      Lanes lanes(kLanes);
      lanes.Input(keys.Of(kUsage, &ExpandedUsage::round_keys));
      lanes.Input(texts);
      const auto out = Outputs(plan, lanes, static_cast<int>(bytes % 3));
      for (size_t lane = 0; lane < kLanes; ++lane) {
        const std::string message = CtsSeal(enctype, AsBytes(keys.bases[lane]), kUsage,
                                            texts[lane].substr(0, 16), texts[lane].substr(16));
        EXPECT_EQ(out[lane], message.substr(0, bytes)) << number << ", " << bytes << " bytes";
      }
    }
  }
}

TEST(MessageCircuits, ChecksumIsThatOfOpenssl) {
  std::mt19937_64 random(2);
  for (const int32_t number : kNumbers) {
    const Enctype& enctype = *FindEnctype(number);
    for (const size_t bytes : {1, 55, 64, 200}) {
      Plan plan;
      MessageCircuits circuits(plan, enctype);
      const auto states = circuits.MacStates();
      plan.Output(circuits.HmacOfPublic(states, plan.AddString(bytes)));
      plan.Finish();
      const Keys keys(enctype, 1, random);
      const std::string data = RandomText(random, bytes);
      Lanes lanes(1);
      lanes.Input(keys.Of(kChecksumUsage, &ExpandedUsage::mac_states));
      lanes.String({data});
      EXPECT_EQ(Outputs(plan, lanes, 0)[0],
                CtsChecksum(enctype, AsBytes(keys.bases[0]), kChecksumUsage, data));
    }
  }
}

// The figures that say how much a login sends: request of 200 bytes, reply of 271 with its
// confounder, a time stamp of 28 with the checksum of 56 over the request.
TEST(MessageCircuits, GatesOfALogin) {
  std::vector<size_t> gates;
  for (const int32_t number : kNumbers) {
    const Enctype& enctype = *FindEnctype(number);
    const bool of_text = enctype.family == EnctypeFamily::kRfc3962;
    Plan plan;
    MessageCircuits circuits(plan, enctype);
    const auto keys = circuits.RoundKeys(), states = circuits.MacStates();
    const auto iv_and_ciphertext = plan.AddString(16 + 44), mac = plan.AddString(enctype.mac_bytes);
    const auto text = circuits.Decrypt(keys, iv_and_ciphertext, 16);
    const auto computed =
        of_text ? circuits.Hmac(states, text) : circuits.HmacOfPublic(states, iv_and_ciphertext);
    circuits.Check(computed, mac, plan.Bytes(text, 16, 28));
    circuits.HmacOfPublic(states, plan.AddString(200));
    const auto reply = plan.Input(8 * 271);
    const auto sealed = circuits.Encrypt(keys, reply);
    const auto iv = plan.Constant(std::vector<uint8_t>(16));
    circuits.Hmac(states, of_text ? reply : plan.Join({iv, sealed}));
    gates.push_back(plan.gates());
  }
  EXPECT_THAT(gates, testing::ElementsAre(238'834, 279'794, 380'439, 614'169));
}

}  // namespace
}  // namespace mpckdc::garble
