// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/compute/garbled_gcm.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "mpc-server/base/bytes.h"
#include "mpc-server/circuit/gcm/gf128.h"
#include "mpc-server/compute/garbled_bits.h"
#include "mpc-server/garble/aes_circuit.h"
#include "mpc-server/garble/check_program.h"
#include "mpc-server/garble/gf128_tape.h"

namespace mpckdc {
namespace {

using garble::Plan;

constexpr size_t kRowsOfBlock = 128;

// Runs of powers are numbered from here.
constexpr uint64_t kPowers = uint64_t{1} << 32;

// What the plan of a part depends on.
using Shape = std::tuple<size_t, size_t, bool, size_t, bool, bool, size_t>;
Shape ShapeOf(const GarbledGcmPart& p) {
  return {p.key->key->round_keys.size(),
          p.lanes,
          p.judged,
          p.ghash_blocks.size(),
          p.ghash.has_value(),
          p.zero_block.has_value(),
          p.ciphertext.size()};
}

// b_1 H^n + ... + b_n H, from the front (SP 800-38D, 6.4).
Plan::Reg Ghash(Plan& plan, Plan::Reg h, Plan::String blocks, size_t count) {
  Plan::Reg sum = plan.Public(blocks, 0, sizeof(Block));
  for (size_t i = 0;; ++i) {
    sum = plan.Run(garble::Gf128MultiplyTape(), {sum, h});
    if (i + 1 == count) return sum;
    sum = plan.Xor(sum, plan.Public(blocks, sizeof(Block) * (i + 1), sizeof(Block)));
  }
}

// Strings, in this order: counters; of a judged message: tag | zero block; GHASH's blocks, if it is
// computed here; ciphertext, if the text is shown.
std::unique_ptr<Plan> PlanOf(const GarbledGcmPart& part) {
  auto plan = std::make_unique<Plan>();
  garble::AesCircuit aes(*plan, part.key->key->round_keys.size());
  const Plan::Reg keys = aes.KeyInput();
  const Plan::String counters = plan->AddString(sizeof(Block) * part.lanes);
  std::vector<Plan::Reg> blocks;
  for (size_t i = 0; i < part.lanes; ++i) {
    const Plan::Reg counter = plan->Public(counters, sizeof(Block) * i, sizeof(Block));
    blocks.push_back(aes.Block(keys, counter, true));
  }
  if (part.judged) {
    const bool zero = part.zero_block.has_value();
    const size_t compared = sizeof(Block) * (zero ? 2 : 1);
    const Plan::String given = plan->AddString(compared);
    Plan::Reg ghash;
    if (part.ghash.has_value()) {
      ghash = plan->Input(kRowsOfBlock);
    } else {
      const Plan::Reg h = plan->Input(kRowsOfBlock);
      const size_t count = part.ghash_blocks.size();
      ghash = Ghash(*plan, h, plan->AddString(sizeof(Block) * count), count);
    }
    std::vector<Plan::Reg> found = {plan->Xor(ghash, blocks[0])};
    if (zero) found.push_back(blocks[1]);
    std::vector<Plan::Reg> inputs = {plan->Join(found), plan->Public(given, 0, compared)};
    const size_t text = part.ciphertext.size();
    if (text != 0) {
      const Plan::String ciphertext = plan->AddString(text);
      const Plan::Reg stream = plan->Join(std::vector<Plan::Reg>(blocks.begin() + 2, blocks.end()));
      inputs.push_back(plan->Xor(plan->Bytes(stream, 0, text), plan->Public(ciphertext, 0, text)));
    }
    plan->Show(plan->Run(garble::CheckTape(8 * compared, 8 * text), std::move(inputs)));
  }
  for (const Plan::Reg block : blocks) plan->Output(block);
  plan->Finish();
  return plan;
}

// Squaring is local.
bool NeedsRun(const GarbledPowers& powers) { return powers.count >= 3; }

std::string Text(absl::Span<const uint8_t> bytes) { return {bytes.begin(), bytes.end()}; }

// Of one lane, in the order of PlanOf().
std::vector<std::string> StringsOf(const GarbledGcmPart& part) {
  std::vector<std::string> strings(1);
  for (size_t i = 0; i < part.lanes; ++i) {
    strings[0] += Text(CounterBlock(part.nonce, static_cast<uint32_t>(1 + i)));
  }
  if (!part.judged) return strings;
  strings.push_back(Text(part.tag));
  if (part.zero_block.has_value()) strings.back() += Text(*part.zero_block);
  if (!part.ghash.has_value()) {
    std::string& all = strings.emplace_back();
    for (const Block& block : part.ghash_blocks) all += Text(block);
  }
  if (!part.ciphertext.empty()) strings.push_back(part.ciphertext);
  return strings;
}

// Odd powers above the first, one product each, by the highest bit: H^(2^k + j) = H^(2^k) * H^j.
std::unique_ptr<Plan> PlanOfPowers(size_t count) {
  auto plan = std::make_unique<Plan>();
  std::vector<Plan::Reg> powers(count + 1);
  powers[1] = plan->Input(kRowsOfBlock);
  for (size_t n = 2; n <= count; ++n) {
    if (n % 2 == 0) {
      powers[n] = plan->Run(garble::Gf128SquareTape(), {powers[n / 2]});
      continue;
    }
    size_t high = 1;
    while (2 * high < n) high *= 2;
    powers[n] = plan->Run(garble::Gf128MultiplyTape(), {powers[high], powers[n - high]});
    plan->Output(powers[n]);
  }
  plan->Finish();
  return plan;
}

}  // namespace

void GarbledGcm::Begin(absl::Span<GarbledGcmPart> parts, absl::Span<GarbledPowers> powers,
                       const Digest& agreed, garble::RunQueue& queue) {
  agreed_ = agreed;
  queue_ = &queue;
  parts_ = parts;
  powers_ = powers;
  runs_.clear();
  std::map<Shape, std::vector<GarbledGcmPart*>> by_shape;
  for (GarbledGcmPart& part : parts) by_shape[ShapeOf(part)].push_back(&part);
  // The largest first, so that the queue deals them evenly.
  for (auto shape = by_shape.rbegin(); shape != by_shape.rend(); ++shape) {
    const std::vector<GarbledGcmPart*>& all = shape->second;
    for (size_t at = 0; at < all.size(); at += garble::kMostLanes) {
      const size_t end = std::min(all.size(), at + garble::kMostLanes);
      AddParts(
          {all.begin() + static_cast<ptrdiff_t>(at), all.begin() + static_cast<ptrdiff_t>(end)});
    }
  }
  for (GarbledPowers& p : powers) AddPowers(p);
}

void GarbledGcm::AddParts(std::vector<GarbledGcmPart*> lanes) {
  Run& run = *runs_.emplace_back(std::make_unique<Run>());
  run.lanes = std::move(lanes);
  run.plan = PlanOf(*run.lanes[0]);
  run.strings.resize(run.plan->strings().size());
  GarbledInputs inputs(run.plan->input_rows(), run.lanes.size());
  std::vector<uint64_t> which;
  for (const GarbledGcmPart* part : run.lanes) {
    which.push_back(static_cast<uint64_t>(part - parts_.data()));
    std::vector<std::string> strings = StringsOf(*part);
    for (size_t i = 0; i < strings.size(); ++i) run.strings[i].push_back(std::move(strings[i]));
    inputs.Put(part->key->key->round_keys);
    if (part->judged) inputs.Put({part->ghash.has_value() ? &*part->ghash : &part->key->key->h, 1});
    inputs.NextLane();
  }
  garble::RunInput input = {run.plan.get(), run.lanes.size(), {}};
  for (const auto& strings : run.strings)
    input.strings.emplace_back(strings.begin(), strings.end());
  run.circuit = NextGarbledRun(party_, *queue_, agreed_, which, input, inputs.Take());
  queue_->Add(*run.circuit, [this, &run] { Keep(run); });
}

void GarbledGcm::AddPowers(GarbledPowers& powers) {
  if (!NeedsRun(powers)) return KeepPowers({}, powers);
  Run& run = *runs_.emplace_back(std::make_unique<Run>());
  run.plan = PlanOfPowers(powers.count);
  GarbledInputs inputs(run.plan->input_rows(), 1);
  inputs.Put({&powers.h, 1});
  const uint64_t which = kPowers + static_cast<uint64_t>(&powers - powers_.data());
  run.circuit = NextGarbledRun(party_, *queue_, agreed_, absl::MakeConstSpan(&which, 1),
                               {run.plan.get(), 1, {}}, inputs.Take());
  queue_->Add(*run.circuit, [&run, &powers] {
    const size_t odd = (powers.count - 1) / 2;  // above the first
    KeepPowers(BlocksOfOutputs(run.circuit->outputs(), 0, kRowsOfBlock * odd, 0, 1), powers);
  });
}

void GarbledGcm::Keep(const Run& run) {
  const size_t lanes = run.lanes.size();
  const SecretVector<uint8_t>& shown = run.circuit->shown();
  for (size_t lane = 0; lane < lanes; ++lane) {
    GarbledGcmPart& part = *run.lanes[lane];
    part.blocks =
        BlocksOfOutputs(run.circuit->outputs(), 0, kRowsOfBlock * part.lanes, lane, lanes);
    if (!part.judged) continue;
    part.good = shown[lane] != 0;
    if (!part.good) continue;
    part.text.resize(part.ciphertext.size());
    for (size_t i = 0; i < 8 * part.text.size(); ++i) {
      part.text[i / 8] |= static_cast<uint8_t>(shown[(1 + i) * lanes + lane] << i % 8);
    }
  }
}

void GarbledGcm::KeepPowers(const SecretVector<SharedBlock>& odd, GarbledPowers& powers) {
  powers.powers.resize(powers.count);
  powers.powers[0] = powers.h;
  for (size_t n = 2; n <= powers.count; ++n) {
    const SharedBlock& half = powers.powers[n / 2 - 1];
    powers.powers[n - 1] =
        n % 2 != 0 ? odd[(n - 3) / 2] : SharedBlock{GfSquare(half.x), GfSquare(half.a)};
  }
}

}  // namespace mpckdc
