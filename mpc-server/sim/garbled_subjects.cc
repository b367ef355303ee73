// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/sim/garbled_subjects.h"

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/compute/garbled_bits.h"
#include "mpc-server/garble/aes_circuit.h"
#include "mpc-server/garble/check_program.h"
#include "mpc-server/testing/fault_analysis.h"
#include "mpc-server/testing/three_parties.h"
#include "mpc-server/testing/usage_key_oracle.h"

namespace mpckdc::sim {
namespace {

constexpr size_t kLanes = 2, kBits = 8 * sizeof(Block);
constexpr size_t kRoundKeys = 11;
constexpr size_t kGated = 21;  // rows, so that bits of the last byte are of none

class GarbledOpen : public Subject {
 public:
  GarbledOpen(int evaluator, double share, RandomSource& random)
      : Subject(absl::StrCat("garbled, P", evaluator, " evaluates"), sizeof(garble::Label), share),
        evaluator_(evaluator) {
    for (size_t lane = 0; lane < kLanes; ++lane) AddLane(random);
    MakePlan();
  }

  bool has_roles() const override { return true; }
  // What each receives it has checked: nothing is left to verify.
  absl::Status Run(PartyContext& party, const Verify&, Results* results) override {
    const int p = party.party();
    GarbledInputs inputs(plan_.input_rows(), kLanes);
    for (size_t lane = 0; lane < kLanes; ++lane) {
      inputs.Put(absl::MakeSpan(keys_[p]).subspan(lane * kRoundKeys, kRoundKeys));
      inputs.NextLane();
    }
    garble::RunInput input = {&plan_, kLanes, {}};
    for (const auto& texts : strings_) input.strings.emplace_back(texts.begin(), texts.end());
    garble::GarbledRun run(p, evaluator_,
                           garble::DrawNeighbourKeys(party, party.NextGarbling(), Digest{}), input,
                           inputs.Take());
    RETURN_IF_ERROR(RunTogether(party, {&run}));
    results->opened.assign(run.shown().begin(), run.shown().end());
    for (size_t lane = 0; lane < kLanes; ++lane) {
      for (const SharedBlock& block : BlocksOfOutputs(run.outputs(), 0, kBits, lane, kLanes)) {
        results->shares.push_back(block);
      }
    }
    return absl::OkStatus();
  }

 private:
  // The first block fits, the second one does not.
  void AddLane(RandomSource& random) {
    std::vector<uint8_t> key(sizeof(Block));
    Block text;
    random.Fill(absl::MakeSpan(key));
    random.Fill(absl::MakeSpan(text));
    const Block sent = PlainAes(key, text, /*encrypt=*/true);
    if (!strings_[0].empty()) text[7] ^= 1;
    strings_[0].emplace_back(sent.begin(), sent.end());
    strings_[1].emplace_back(text.begin(), text.end());
    for (const Block& round_key : PlainKeySchedule(key)) {
      const auto split = SplitForTest(round_key, random);
      for (int p = 0; p < kParties; ++p) keys_[p].push_back(split[p]);
    }
  }
  void MakePlan() {
    garble::AesCircuit aes(plan_, kRoundKeys);
    const auto keys = aes.KeyInput();
    const auto sent = plan_.AddString(sizeof(Block)), wanted = plan_.AddString(sizeof(Block));
    const auto text = aes.Block(keys, plan_.Public(sent, 0, sizeof(Block)), /*encrypt=*/false);
    const auto checked =
        plan_.Run(garble::CheckTape(kBits, kGated),
                  {text, plan_.Public(wanted, 0, sizeof(Block)), plan_.Rows(text, 0, kGated)});
    plan_.Show(checked);
    plan_.Output(text);
    plan_.Finish();
  }

  const int evaluator_;
  garble::Plan plan_;
  std::array<std::vector<std::string>, 2> strings_;  // as they came, and as they should open
  std::array<std::vector<SharedBlock>, kParties> keys_;
};

}  // namespace

std::unique_ptr<Subject> GarbledSubject(int evaluator, double share, RandomSource& random) {
  return std::make_unique<GarbledOpen>(evaluator, share, random);
}

}  // namespace mpckdc::sim
