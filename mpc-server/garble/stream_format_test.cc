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
    {17, "3761a7a0a61e237b99c1e07b2362bdb36d6dc6c62dd26b0b9190371b75ffa85e"},
    {18, "cf99d0f23dff21c6c619028e450b2e7736a408680b2bcd1ff8627ffd85e89dc4"},
    {19, "a8c3f5c26ad980ac8b573cb72e4b3e3d350506d456cde3f08aaa313f1a28da4a"},
    {20, "5d8fae40d3ed6db26db364ca48be0fa9988e952ad2f5115dbab9413a4d1a3537"},
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
  std::string stream;
  while (!garbler.Done()) {
    garbler.Step();
    const absl::Span<const Label> labels = garbler.TakeStream();
    stream.append(reinterpret_cast<const char*>(labels.data()), labels.size() * sizeof(Label));
  }
  const Digest digest = Sha256(stream);
  EXPECT_EQ(absl::BytesToHexString(AsText(digest)), GetParam().digest);
}

INSTANTIATE_TEST_SUITE_P(Enctypes, StreamFormatTest, testing::ValuesIn(kPinned),
                         [](const auto& param) { return std::to_string(param.param.enctype); });

}  // namespace
}  // namespace mpckdc::garble
