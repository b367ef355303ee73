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
    {17, "4f32ef8df82e1a7404522cea4409719f91de4e15a47f2887526af3f0e0404e07"},
    {18, "94f31af7f23ec2ee6e2203253684508a591d4b10d7eae7479a7896cbe09e9105"},
    {19, "50253a7a95319c5b0ee30cf2b43a3794bd554b700f7527dce04b443ca48c0db2"},
    {20, "5394fb26dd6a6f44c372bcf75617290156314f76a72c67d1820a692cfe405dc3"},
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
