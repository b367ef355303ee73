// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/compute/garbled_keys.h"

#include <algorithm>
#include <map>
#include <utility>

#include "mpc-server/compute/garbled_bits.h"
#include "mpc-server/garble/check_program.h"
#include "mpc-server/garble/key_circuits.h"

namespace mpckdc {
namespace {

using garble::Plan;

constexpr size_t kRowsOfBlock = 128;

// A row: whether all blocks are equal. Bit by bit in each block, then of the blocks.
Plan::Reg Equal(Plan& plan, Plan::Reg a, Plan::Reg b) {
  const size_t blocks = plan.rows(a) / kRowsOfBlock;
  const Plan::Reg each = plan.Run(garble::CheckTape(kRowsOfBlock, 0), {a, b}, blocks);
  const Plan::Reg ones =
      plan.Rows(plan.Constant(std::vector<uint8_t>((blocks + 7) / 8, 0xFF)), 0, blocks);
  return plan.Run(garble::CheckTape(blocks, 0), {each, ones});
}

// Gives the plan's strings.
std::vector<std::string> MakePlan(const Enctype& enctype, absl::Span<const uint32_t> usages,
                                  KeyTask task, Plan& plan) {
  garble::KeyCircuits circuits(plan, enctype);
  std::vector<Plan::Reg> derived;
  for (const uint32_t usage : usages) {
    for (const Plan::Reg part : circuits.Usage(usage)) derived.push_back(part);
  }
  if (task == KeyTask::kDraw) {
    for (const Plan::Reg part : derived) plan.Output(part);
  } else {
    const Plan::Reg all = plan.Join(std::move(derived));
    plan.Show(Equal(plan, all, plan.Input(plan.rows(all))));
  }
  plan.Finish();
  return circuits.strings();
}

void PutUsage(const UsageKey& key, const Enctype& enctype, GarbledInputs& inputs) {
  inputs.Put(key.round_keys);
  enctype.is_gcm() ? inputs.Put({&key.h, 1}) : inputs.Put(key.mac_states);
}

}  // namespace

size_t GarbledKeys::TableBytesOf(const Enctype& enctype, KeyClass key_class, KeyTask task) {
  Plan plan;
  MakePlan(enctype, UsagesOf(key_class), task, plan);
  return plan.Labels(1) * sizeof(garble::Label);
}

void GarbledKeys::Begin(const Digest& agreed) {
  agreed_ = agreed;
  runs_.clear();
  equal_.clear();
}

GarbledKeys::Run& GarbledKeys::NewRun(const Enctype& enctype, absl::Span<const uint32_t> usages,
                                      KeyTask task, std::vector<size_t> lanes) {
  Run& run = *runs_.emplace_back(std::make_unique<Run>());
  run.lanes = std::move(lanes);
  run.strings = MakePlan(enctype, usages, task, run.plan);
  return run;
}

void GarbledKeys::StartRun(Run& run, garble::SharedBits inputs, std::function<void()> then) {
  garble::RunInput input = {&run.plan, run.lanes.size(), {}};
  for (const std::string& text : run.strings) {
    input.strings.emplace_back(run.lanes.size(), text);
  }
  const std::vector<uint64_t> which(run.lanes.begin(), run.lanes.end());
  run.circuit = NextGarbledRun(party_, *this, agreed_, which, input, std::move(inputs));
  Add(*run.circuit, std::move(then));
}

// ---- Drawing ----

void GarbledKeys::BeginDraw(KeyRecord& record, const Digest& agreed) {
  Begin(agreed);
  Run& run = NewRun(*FindEnctype(record.info.enctype), UsagesOf(record.info.key_class),
                    KeyTask::kDraw, {0});
  GarbledInputs inputs(run.plan.input_rows(), 1);
  inputs.Put(record.base);
  StartRun(run, inputs.Take(), [&run, &record] {
    const Enctype& enctype = *FindEnctype(record.info.enctype);
    size_t row = 0;
    const auto next = [&](size_t blocks) {
      const size_t first = std::exchange(row, row + kRowsOfBlock * blocks);
      return BlocksOfOutputs(run.circuit->outputs(), first, kRowsOfBlock * blocks, 0, 1);
    };
    for (const uint32_t usage : UsagesOf(record.info.key_class)) {
      UsageKey key{.usage = usage, .round_keys = next(RoundKeys(enctype.number, usage))};
      if (enctype.is_gcm()) {
        key.h = next(1)[0];
      } else {
        key.mac_states = next(enctype.mac_state_blocks());
      }
      record.usages.push_back(std::move(key));
    }
  });
}

// ---- Verifying ----

void GarbledKeys::BeginVerify(absl::Span<const KeyRecord* const> records, const Digest& agreed) {
  Begin(agreed);
  equal_.assign(records.size(), false);
  std::map<std::pair<int32_t, std::vector<uint32_t>>, std::vector<size_t>> by_shape;
  for (size_t i = 0; i < records.size(); ++i) {
    by_shape[{records[i]->info.enctype, records[i]->UsageNumbers()}].push_back(i);
  }
  for (const auto& [shape, all] : by_shape) {
    const Enctype& enctype = *FindEnctype(shape.first);
    for (size_t at = 0; at < all.size(); at += garble::kMostLanes) {
      const auto begin = all.begin() + static_cast<ptrdiff_t>(at);
      const size_t lanes = std::min(garble::kMostLanes, all.size() - at);
      Run& run = NewRun(enctype, shape.second, KeyTask::kVerify,
                        {begin, begin + static_cast<ptrdiff_t>(lanes)});
      GarbledInputs inputs(run.plan.input_rows(), lanes);
      for (const size_t i : run.lanes) {
        inputs.Put(records[i]->base);
        for (const UsageKey& key : records[i]->usages) PutUsage(key, enctype, inputs);
        inputs.NextLane();
      }
      StartRun(run, inputs.Take(), [this, &run] {
        for (size_t lane = 0; lane < run.lanes.size(); ++lane) {
          equal_[run.lanes[lane]] = run.circuit->shown()[lane] != 0;
        }
      });
    }
  }
}

}  // namespace mpckdc
