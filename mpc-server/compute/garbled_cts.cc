// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/compute/garbled_cts.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/compute/garbled_bits.h"
#include "mpc-server/garble/message_circuits.h"

namespace mpckdc {
namespace {

using garble::Plan;

}  // namespace

// ---- Which parts, when ----

void GarbledCts::Begin(absl::Span<CtsPartWork> parts, const SecretVector<SharedBlock>& texts,
                       const Digest& agreed, garble::RunQueue& queue) {
  agreed_ = agreed;
  queue_ = &queue;
  parts_ = parts;
  texts_ = &texts;
  runs_.clear();
  absl::flat_hash_set<size_t> opening;
  for (const CtsPartWork& part : parts_) {
    if (part.kind == CtsPartKind::kOpen) opening.insert(part.job);
  }
  std::vector<CtsPartWork*> opens, others;
  for (CtsPartWork& part : parts_) {
    if (part.kind == CtsPartKind::kOpen) {
      opens.push_back(&part);
    } else if (!opening.contains(part.job)) {
      others.push_back(&part);
    }
  }
  left_ = 0;
  AddRuns(opens, [this] {
    if (--left_ == 0) AddSecond();
  });
  AddRuns(others);
}

void GarbledCts::AddSecond() {
  absl::flat_hash_set<size_t> opening, bad;
  for (const CtsPartWork& part : parts_) {
    if (part.kind != CtsPartKind::kOpen) continue;
    opening.insert(part.job);
    const bool late = part.opened.has_value() && !window_.Holds(AsText(*part.opened));
    if (!part.good || late) bad.insert(part.job);
  }
  std::vector<CtsPartWork*> second;
  for (CtsPartWork& part : parts_) {
    if (part.kind == CtsPartKind::kOpen || !opening.contains(part.job)) continue;
    if (!bad.contains(part.job)) second.push_back(&part);
  }
  AddRuns(second);
}

// By shape, in an order that is the same at the three.
void GarbledCts::AddRuns(const std::vector<CtsPartWork*>& parts,
                         const std::function<void()>& then) {
  std::map<std::tuple<CtsPartKind, int32_t, size_t, bool, bool>, std::vector<CtsPartWork*>>
      by_shape;
  for (CtsPartWork* part : parts) {
    by_shape[{part->kind, part->enctype->number, part->bytes(), part->preauth(), part->judged()}]
        .push_back(part);
  }
  for (const auto& [shape, lanes] : by_shape) {
    for (size_t at = 0; at < lanes.size(); at += garble::kMostLanes) {
      const size_t end = std::min(lanes.size(), at + garble::kMostLanes);
      AddRun(
          {lanes.begin() + static_cast<ptrdiff_t>(at), lanes.begin() + static_cast<ptrdiff_t>(end)},
          then);
    }
  }
}

void GarbledCts::AddRun(std::vector<CtsPartWork*> lanes, const std::function<void()>& then) {
  Run& run = *runs_.emplace_back(std::make_unique<Run>());
  run.lanes = std::move(lanes);
  run.plan = PlanOf(*run.lanes[0]);
  std::vector<uint64_t> which;
  for (const CtsPartWork* part : run.lanes) {
    which.push_back(static_cast<uint64_t>(part - parts_.data()));
  }
  run.circuit = NextGarbledRun(party_, *queue_, agreed_, which, InputOf(run), SharesOf(run));
  if (then) ++left_;
  queue_->Add(*run.circuit, [this, &run, then] {
    Keep(run);
    if (then) then();
  });
}

// ---- A run ----

std::unique_ptr<Plan> GarbledCts::PlanOf(const CtsPartWork& part) {
  auto plan = std::make_unique<Plan>();
  garble::MessageCircuits circuits(*plan, *part.enctype);
  if (part.kind == CtsPartKind::kMac) {
    const Plan::Reg states = circuits.MacStates();
    const Plan::Reg mac = circuits.HmacOfPublic(states, plan->AddString(part.bytes()));
    if (part.judged()) {
      const Plan::String given = plan->AddString(part.enctype->mac_bytes);
      plan->Show(circuits.Check(mac, given, plan->Rows(mac, 0, 0)).ok);
    } else {
      plan->Output(mac);
    }
    plan->Finish();
    return plan;
  }
  const Plan::Reg keys = circuits.RoundKeys(), states = circuits.MacStates();
  if (part.kind == CtsPartKind::kSeal) {
    const Plan::Reg text = plan->Input(8 * part.bytes());
    const Plan::Reg sealed = circuits.Encrypt(keys, text);
    plan->Output(sealed);
    const Plan::Reg hashed =
        part.mac_of_text()
            ? text
            : plan->Join({plan->Constant(std::vector<uint8_t>(sizeof(Block))), sealed});
    plan->Output(circuits.Hmac(states, hashed));
    plan->Finish();
    return plan;
  }
  const Plan::String message = plan->AddString(sizeof(Block) + part.bytes());
  const Plan::String mac = plan->AddString(part.enctype->mac_bytes);
  const Plan::Reg text = circuits.Decrypt(keys, message, sizeof(Block));
  const Plan::Reg computed =
      part.mac_of_text() ? circuits.Hmac(states, text) : circuits.HmacOfPublic(states, message);
  const Plan::Reg gated =
      plan->Bytes(text, kConfounderBytes, part.preauth() ? part.text_bytes() : 0);
  const auto checked = circuits.Check(computed, mac, gated);
  plan->Show(checked.ok);
  plan->Show(checked.gated);
  plan->Output(text);
  plan->Finish();
  return plan;
}

size_t GarbledCts::TableBytesOf(const CtsPartWork& part) {
  return PlanOf(part)->Labels(1) * sizeof(garble::Label);
}

garble::RunInput GarbledCts::InputOf(Run& run) const {
  garble::RunInput input = {run.plan.get(), run.lanes.size(), {}};
  const CtsPartKind kind = run.lanes[0]->kind;
  if (kind == CtsPartKind::kSeal) return input;
  auto& first = input.strings.emplace_back();
  for (const CtsPartWork* part : run.lanes) {
    if (kind == CtsPartKind::kMac) {
      first.push_back(part->public_bytes);
      continue;
    }
    std::string& message = run.iv_and_ciphertext.emplace_back(sizeof(Block), '\0');
    message.append(part->public_bytes.data(), part->public_bytes.size());
  }
  if (kind == CtsPartKind::kOpen) {
    first.assign(run.iv_and_ciphertext.begin(), run.iv_and_ciphertext.end());
  }
  if (!run.lanes[0]->judged()) return input;
  auto& macs = input.strings.emplace_back();
  for (const CtsPartWork* part : run.lanes) macs.push_back(part->given_mac);
  return input;
}

garble::SharedBits GarbledCts::SharesOf(const Run& run) const {
  GarbledInputs inputs(run.plan->input_rows(), run.lanes.size());
  for (const CtsPartWork* part : run.lanes) {
    if (part->kind != CtsPartKind::kMac) inputs.Put(part->key->round_keys);
    inputs.Put(part->key->mac_states);
    if (part->kind == CtsPartKind::kSeal) {
      inputs.Put(absl::MakeConstSpan(*texts_).subspan(part->first_block), 8 * part->bytes());
    }
    inputs.NextLane();
  }
  return inputs.Take();
}

void GarbledCts::KeepShown(const Run& run) {
  const size_t lanes = run.lanes.size();
  const SecretVector<uint8_t>& shown = run.circuit->shown();
  for (size_t lane = 0; lane < lanes; ++lane) {
    CtsPartWork& part = *run.lanes[lane];
    part.good = shown[lane] != 0;
    if (!part.good || !part.preauth()) continue;
    SecretBytes& text = part.opened.emplace(part.text_bytes());
    for (size_t i = 0; i < 8 * text.size(); ++i) {
      text[i / 8] |= static_cast<uint8_t>(shown[(1 + i) * lanes + lane] << i % 8);
    }
  }
}

void GarbledCts::Keep(const Run& run) {
  const size_t lanes = run.lanes.size();
  if (run.lanes[0]->judged()) KeepShown(run);
  for (size_t lane = 0; lane < lanes; ++lane) {
    CtsPartWork& part = *run.lanes[lane];
    const size_t text_rows = part.kind == CtsPartKind::kMac ? 0 : 8 * part.bytes();
    const auto& outputs = run.circuit->outputs();
    part.garbled_text = BlocksOfOutputs(outputs, 0, text_rows, lane, lanes);
    if (part.judged()) continue;
    part.garbled_mac =
        BlocksOfOutputs(outputs, text_rows, 8 * part.enctype->mac_bytes, lane, lanes);
  }
}

}  // namespace mpckdc
