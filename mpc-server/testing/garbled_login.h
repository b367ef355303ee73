// SPDX-License-Identifier: Apache-2.0
// A pre-authentication and a checksum under a key of 17 to 20, of some users side by side, as a
// garbled run of three parties in one thread.
#ifndef MPC_SERVER_TESTING_GARBLED_LOGIN_H_
#define MPC_SERVER_TESTING_GARBLED_LOGIN_H_

#include <random>
#include <string>
#include <vector>

#include "mpc-server/base/bytes.h"
#include "mpc-server/garble/message_circuits.h"
#include "mpc-server/key/usage_keys.h"
#include "mpc-server/testing/cts.h"
#include "mpc-server/testing/garbled_parties.h"

namespace mpckdc::garble {

class GarbledLogin {
 public:
  static constexpr size_t kTimeBytes = 20, kRequestBytes = 100;

  GarbledLogin(int32_t number, size_t lanes, uint64_t seed)
      : enctype_(*FindEnctype(number)), lanes_(lanes), random_(seed), strings_(3) {
    std::vector<uint8_t> all[3];
    for (size_t lane = 0; lane < lanes; ++lane) {
      const std::string base = Random(enctype_.key_bytes);
      times_ += Random(kTimeBytes);
      const std::string message = CtsSeal(enctype_, AsBytes(base), 1, Random(16),
                                          times_.substr(times_.size() - kTimeBytes));
      const size_t bytes = message.size() - enctype_.mac_bytes;
      strings_[0].push_back(std::string(16, '\0') + message.substr(0, bytes));
      strings_[1].push_back(message.substr(bytes));
      strings_[2].push_back(Random(kRequestBytes));
      checksums_ += CtsChecksum(enctype_, AsBytes(base), 56, strings_[2].back());
      const ExpandedUsage usage = *ExpandUsage(enctype_, AsBytes(base), 1);
      Append(usage.round_keys, all[0]);
      Append(usage.mac_states, all[1]);
      Append(ExpandUsage(enctype_, AsBytes(base), 56)->mac_states, all[2]);
    }
    for (const auto& bytes : all) Append(ToRows(bytes, lanes), inputs_);
    MakePlan();
  }
  void SpoilMac() { strings_[1][0][0] = static_cast<char>(strings_[1][0][0] ^ 1); }

  GarbledParties Parties(int evaluator, const GarbledParties::Hold& hold = nullptr,
                         const Pace& pace = {}) const {
    RunInput input = {&plan_, lanes_, {}};
    for (const auto& texts : strings_) input.strings.emplace_back(texts.begin(), texts.end());
    return GarbledParties(input, inputs_, 1, evaluator, hold, pace);
  }
  // Row 0 says whether the message is good, the others are its text.
  std::vector<uint8_t> Shown(bool good_first_lane = true) const {
    std::vector<uint8_t> shown(lanes_, 1);
    Append(ToRows(AsBytes(times_), lanes_), shown);
    for (size_t i = 0; !good_first_lane && i < shown.size(); i += lanes_) shown[i] = 0;
    return shown;
  }
  const std::string& checksums() const { return checksums_; }
  size_t lanes() const { return lanes_; }
  const Plan& plan() const { return plan_; }

 private:
  std::string Random(size_t count) {
    std::string text(count, '\0');
    for (char& c : text) c = static_cast<char>(random_());
    return text;
  }
  template <class T>
  static void Append(const T& bytes, std::vector<uint8_t>& to) {
    to.insert(to.end(), bytes.begin(), bytes.end());
  }
  void MakePlan() {
    MessageCircuits circuits(plan_, enctype_);
    const auto keys = circuits.RoundKeys(), states = circuits.MacStates();
    const auto checksum_states = circuits.MacStates();
    const auto message = plan_.AddString(16 + 16 + kTimeBytes);
    const auto mac = plan_.AddString(enctype_.mac_bytes), request = plan_.AddString(kRequestBytes);
    const auto text = circuits.Decrypt(keys, message, 16);
    const auto computed = enctype_.family == EnctypeFamily::kRfc3962
                              ? circuits.Hmac(states, text)
                              : circuits.HmacOfPublic(states, message);
    const auto checked = circuits.Check(computed, mac, plan_.Bytes(text, 16, kTimeBytes));
    plan_.Show(checked.ok);
    plan_.Show(checked.gated);
    plan_.Output(circuits.HmacOfPublic(checksum_states, request));
    plan_.Finish();
  }

  const Enctype& enctype_;
  const size_t lanes_;
  std::mt19937_64 random_;
  std::vector<std::vector<std::string>> strings_;
  std::string times_, checksums_;
  std::vector<uint8_t> inputs_;
  Plan plan_;
};

}  // namespace mpckdc::garble

#endif  // MPC_SERVER_TESTING_GARBLED_LOGIN_H_
