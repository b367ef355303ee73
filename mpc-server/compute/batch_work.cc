// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/compute/batch_work.h"

#include "mpc-server/circuit/checks.h"
#include "mpc-server/share/reveal.h"

namespace mpckdc {

BatchWork::BatchWork(Rings& rings, AesBatch& blocks, PowersCache& cache, CtsCircuits& circuits,
                     std::vector<JobWork>& work, const FixedChoices& fixed)
    : rings_(rings),
      party_(rings.first()),
      gcm_(blocks, cache),
      cts_(party_, circuits),
      work_(work),
      fixed_(fixed) {
  const auto add = [this](auto& form) {
    std::visit([this](auto& part) { FamilyOf(part).Add(part); }, form);
  };
  for (JobWork& job : work_) {
    for (OpenWork& open : job.opens) add(open.form);
    for (SealWork& seal : job.seals) add(seal);
    for (MakeMacWork& mac : job.make_macs) add(mac);
    for (VerifyMacWork& mac : job.verify_macs) add(mac.form);
  }
}

// Below it the number of messages is a batch's time, above it their length.
Sbox BatchWork::SboxOf(size_t blocks) {
  return blocks < limits::kLatencySboxBlocks ? Sbox::kLatency : Sbox::kThroughput;
}

absl::Status BatchWork::ComputeBlocks(Circuit& first) {
  const auto sbox = [this](size_t blocks) { return fixed_.sbox.value_or(SboxOf(blocks)); };
  cts_.Begin(sbox(cts_.parts()), fixed_.adder);  // one block of a part at a time
  return gcm_.Run(rings_, first, cts_, sbox(aes_blocks()), &cost_);
}

absl::Status BatchWork::CheckTags() {
  SecretVector<SharedBlock> blocks;
  std::vector<size_t> ends;
  std::vector<bool*> results;
  const auto check = [&](const auto& form, bool* good) {
    std::visit([&](const auto& part) { FamilyOf(part).AppendCheck(part, &blocks); }, form);
    ends.push_back(blocks.size());
    results.push_back(good);
  };
  for (JobWork& job : work_) {
    for (OpenWork& open : job.opens) check(open.form, &open.good);
    for (VerifyMacWork& mac : job.verify_macs) check(mac.form, &mac.good);
  }
  if (ends.empty()) return absl::OkStatus();
  std::vector<absl::Span<const SharedBlock>> items;
  size_t at = 0;
  for (const size_t end : ends) {
    items.push_back(absl::MakeConstSpan(blocks).subspan(at, end - at));
    at = end;
  }
  ZeroCheck circuit(party_, "tag check");
  circuit.Reset(items);
  Circuit* const circuits[] = {&circuit};
  const absl::Status status = RunTogether(party_, circuits, &cost_);
  if (!status.ok()) return status;
  for (size_t i = 0; i < results.size(); ++i) *results[i] = circuit.zero()[i] != 0;
  return status;
}

absl::Status BatchWork::OpenTimestamps() {
  SecretVector<SharedBlock> shares;
  std::vector<OpenWork*> opened;
  for (JobWork& job : work_) {
    for (OpenWork& open : job.opens) {
      if (!open.is_preauth || !open.good) continue;
      std::visit([&](const auto& part) { FamilyOf(part).AppendText(part, &shares); }, open.form);
      opened.push_back(&open);
    }
  }
  if (opened.empty()) return absl::OkStatus();
  OpenToServers reveal(party_.party(), "pre-auth timestamp");
  reveal.Reset(shares);
  Circuit* const circuits[] = {&reveal};
  const absl::Status status = RunTogether(party_, circuits, &cost_);
  if (!status.ok()) return status;
  absl::Span<const Block> values = reveal.values();
  for (OpenWork* open : opened) {
    std::visit([&](const auto& part) { open->plaintext = FamilyOf(part).TextOf(part, values); },
               open->form);
    values.remove_prefix(BlocksOf(open->PlaintextBytes()));
  }
  return status;
}

}  // namespace mpckdc
