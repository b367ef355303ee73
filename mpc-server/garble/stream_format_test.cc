// SPDX-License-Identifier: Apache-2.0
// What G1 sends, byte for byte. Two servers that garble, and a third one of another version, must
// never meet: gates in another order have another MAC, and an honest server would be accused of it.
// Whoever changes a digest here makes the servers speak another version (kPeerProtocolMin,
// share/session.h).
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/sha256.h"
#include "mpc-server/garble/garbler_side.h"
#include "mpc-server/garble/message_circuits.h"

namespace mpckdc::garble {
namespace {

struct Pinned {
  int32_t enctype;
  const char* digest;
};
const Pinned kPinned[] = {
    {17, "4ccfc3214ac6ea3aca98176d8f22716c3b01ba51cbfd113ac9bfd52edbd4f2f8"},
    {18, "338c22e9d9f869a33560a4d462235fd842d634a6242ce1f91ff65cafe9d3711b"},
    {19, "a838d8da4949d4295421c069dcdd7d76bd20ccdec2c64e50c440b186a6e65743"},
    {20, "ef233318a1fa9463ae4bd418081a64ee2d7ecc676db2cbafeb03faed937575f4"},
};

class StreamFormatTest : public testing::TestWithParam<Pinned> {};

// A message that is opened, one that is sealed, and a checksum.
TEST_P(StreamFormatTest, IsTheOneOfThisVersion) {
  constexpr size_t kText = 20;
  const Enctype& enctype = *FindEnctype(GetParam().enctype);
  Plan plan;
  MessageCircuits circuits(plan, enctype);
  const auto keys = circuits.RoundKeys(), states = circuits.MacStates();
  const auto message = plan.AddString(16 + 16 + kText), mac = plan.AddString(enctype.mac_bytes);
  const auto text = circuits.Decrypt(keys, message, 16);
  const auto checked = circuits.Check(circuits.Hmac(states, text), mac, text);
  plan.Show(checked.ok);
  plan.Show(checked.gated);
  plan.Output(circuits.Encrypt(keys, plan.Input(8 * (16 + kText))));
  plan.Output(circuits.HmacOfPublic(states, message));
  plan.Finish();

  const std::string of_message(16 + 16 + kText, 'm'), of_mac(enctype.mac_bytes, 'c');
  const RunInput input = {&plan, 2, {{of_message, of_message}, {of_mac, of_mac}}};
  const std::vector<uint8_t> zeros(2 * plan.input_rows());
  GarblerSide garbler(GarblerNumber::kG1, {1, 2, 3}, input, {zeros, zeros});
  std::vector<Label> stream(plan.Labels(2));
  garbler.Give(absl::MakeSpan(stream));
  while (!garbler.Done()) garbler.RunUnit();
  const Digest digest =
      Sha256({reinterpret_cast<const char*>(stream.data()), stream.size() * sizeof(Label)});
  EXPECT_EQ(absl::BytesToHexString(AsText(digest)), GetParam().digest);
}

INSTANTIATE_TEST_SUITE_P(Enctypes, StreamFormatTest, testing::ValuesIn(kPinned),
                         [](const auto& param) { return std::to_string(param.param.enctype); });

}  // namespace
}  // namespace mpckdc::garble
