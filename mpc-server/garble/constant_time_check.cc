// SPDX-License-Identifier: Apache-2.0
// A run under valgrind memcheck, as circuit/constant_time_check.cc: shares, keys and all that
// arrives are marked undefined, so memcheck reports every branch and every address that depends on
// them. With the argument "leak" it branches on an output's share, to prove that the check sees.
#include <cstdio>
#include <string>
#include <vector>

#include "mpc-server/base/isa.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/garble/message_circuits.h"
#include "mpc-server/testing/garbled_parties.h"

namespace mpckdc::garble {
namespace {

// A message to open, whose time is shown, and its text sealed again. With hashes: an HMAC of the
// text, and one of a request; without, for what is slow, part of the text is compared.
bool RunOne(const Enctype& enctype, size_t lanes, int evaluator, bool hashes, bool leak) {
  constexpr size_t kBytes = 40, kRequest = 70;
  Plan plan;
  MessageCircuits circuits(plan, enctype);
  const auto keys = circuits.RoundKeys(), states = circuits.MacStates();
  const auto message = plan.AddString(16 + kBytes), mac = plan.AddString(enctype.mac_bytes);
  const auto request = plan.AddString(kRequest);
  const auto text = circuits.Decrypt(keys, message, 16);
  const auto computed =
      hashes ? circuits.Hmac(states, text) : plan.Bytes(text, 0, enctype.mac_bytes);
  const auto checked = circuits.Check(computed, mac, plan.Bytes(text, 16, kBytes - 16));
  plan.Show(checked.ok);
  plan.Show(checked.gated);
  if (hashes) plan.Output(circuits.HmacOfPublic(states, request));
  plan.Output(hashes ? circuits.Encrypt(keys, text) : text);
  plan.Finish();

  const std::string a(16 + kBytes, 'a'), b(enctype.mac_bytes, 'b'), c(kRequest, 'c');
  const RunInput input = {
      &plan,
      lanes,
      {std::vector<absl::string_view>(lanes, a), std::vector<absl::string_view>(lanes, b),
       std::vector<absl::string_view>(lanes, c)}};
  GarbledParties parties(input, std::vector<uint8_t>(plan.input_rows() * lanes, 1), 1, evaluator);
  parties.mark = true;
  for (const absl::Status& end : parties.Run()) {
    if (!end.ok()) return std::puts(end.ToString().c_str()), false;
  }
  if (parties.run(0).shown()[0] != 0) return std::puts("a wrong HMAC was good"), false;
  if (leak && parties.run(0).outputs().own[0] != 0) std::puts("a branch on a share");
  return true;
}

}  // namespace
}  // namespace mpckdc::garble

int main(int argc, char** argv) {
  using namespace mpckdc;
  const bool leak = argc > 1 && std::string(argv[1]) == "leak";
  if (BestIsa() == Isa::kPortable) {  // a call of OpenSSL for each hash
    return garble::RunOne(*FindEnctype(17), 2, 1, false, leak) ? 0 : 1;
  }
  bool good = true;
  for (const size_t lanes : {1, 3}) {
    const int evaluator = static_cast<int>(lanes) % kParties;
    good = good && garble::RunOne(*FindEnctype(18), lanes, evaluator, true, leak);
  }
  return good ? 0 : 1;
}
