// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/compute/batch_work.h"

#include <algorithm>

#include "mpc-server/base/bytes.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/circuit/checks.h"
#include "mpc-server/share/reveal.h"

namespace mpckdc {
namespace {

// Calls `use` with each part of the job in its family's form, in an order that is the same at the
// three servers.
template <class Use>
void ForEachPart(JobWork& job, Use use) {
  for (OpenWork& open : job.opens) std::visit(use, open.form);
  for (SealWork& seal : job.seals) std::visit(use, seal);
  for (MakeMacWork& mac : job.make_macs) std::visit(use, mac);
  for (VerifyMacWork& mac : job.verify_macs) std::visit(use, mac.form);
}

// The first round of a circuit by itself.
class FirstRound : public Circuit {
 public:
  explicit FirstRound(Circuit& circuit) : circuit_(circuit) {}
  bool Done() const override { return done_ || circuit_.Done(); }
  RoundShape NextRound() const override { return circuit_.NextRound(); }
  void Produce(ZeroShares& zero, RoundOut out) override { circuit_.Produce(zero, out); }
  absl::Status Consume(RoundIn in) override {
    done_ = true;
    return circuit_.Consume(in);
  }
  Cost DeclaredCost() const override {
    const RoundShape shape = circuit_.NextRound();
    return {1, shape.to_next, shape.to_prev};
  }

 private:
  Circuit& circuit_;
  bool done_ = false;
};

// Shared blocks, some for each item, that are all zero if and only if the item is good.
struct TagChecks {
  SecretVector<SharedBlock> blocks;
  std::vector<size_t> ends;
  std::vector<bool*> results;

  // `append` appends an item's blocks.
  template <class Append>
  void Add(Append append, bool* good) {
    append(&blocks);
    ends.push_back(blocks.size());
    results.push_back(good);
  }
  absl::Status Run(Rings& rings, Cost* cost);
};

// The products first, so that one proof on each ring covers them and all that they rest on.
absl::Status TagChecks::Run(Rings& rings, Cost* cost) {
  if (ends.empty()) return absl::OkStatus();
  std::vector<absl::Span<const SharedBlock>> items;
  size_t at = 0;
  for (const size_t end : ends) {
    items.push_back(absl::MakeConstSpan(blocks).subspan(at, end - at));
    at = end;
  }
  ZeroCheck circuit(rings.first(), "tag check");
  circuit.Reset(items);
  FirstRound multiply(circuit);
  Circuit* const products[] = {&multiply};
  RETURN_IF_ERROR(RunTogether(rings.first(), products, cost));
  RETURN_IF_ERROR(rings.Verify(cost));
  Circuit* const circuits[] = {&circuit};
  RETURN_IF_ERROR(RunTogether(rings.first(), circuits, cost));
  for (size_t i = 0; i < results.size(); ++i) *results[i] = circuit.zero()[i] != 0;
  return absl::OkStatus();
}

}  // namespace

BatchWork::BatchWork(Rings& rings, AesBatch& blocks, PowersCache& cache, CtsCircuits& circuits,
                     std::vector<JobWork>& work, const PreauthWindow& window,
                     const FixedChoices& fixed)
    : rings_(rings),
      party_(rings.first()),
      gcm_(blocks, cache),
      cts_(party_, circuits, window),
      work_(work),
      window_(window),
      fixed_(fixed) {
  for (JobWork& job : work_) {
    for (OpenWork& open : job.opens) {
      if (auto* gcm = std::get_if<GcmOpen>(&open.form)) gcm->is_preauth = open.is_preauth;
    }
    ForEachPart(job, [this](auto& part) {
      if constexpr (std::is_base_of_v<GcmPart, std::decay_t<decltype(part)>>) gcm_.Add(part);
    });
  }
}

// Below it the number of messages is a batch's time, above it their length.
Sbox BatchWork::SboxOf(size_t blocks) {
  return blocks < limits::kLatencySboxBlocks ? Sbox::kLatency : Sbox::kThroughput;
}
Sbox BatchWork::ChosenSbox(size_t blocks) const { return fixed_.sbox.value_or(SboxOf(blocks)); }

absl::Status BatchWork::ComputeBlocks(Circuit& first) {
  const bool waits = std::any_of(work_.begin(), work_.end(),
                                 [](JobWork& job) { return job.HasCtsPart() && job.HasGcmOpen(); });
  if (!waits) BeginCts();
  RETURN_IF_ERROR(RunCircuits(first));
  if (!waits) return absl::OkStatus();
  RETURN_IF_ERROR(JudgeGcmOpens());
  RETURN_IF_ERROR(OpenTimestamps());
  BeginCts();
  Circuit* const circuits[] = {&runs_, &cts_};
  return RunTogether(party_, circuits, &cost_);
}

// Not beside rounds that wait for each other: whoever garbles would stand still while another one
// evaluates.
absl::Status BatchWork::RunTables() {
  Circuit* const circuits[] = {&runs_};
  return RunTogether(party_, circuits, &cost_);
}

absl::Status BatchWork::RunCircuits(Circuit& first) {
  const bool rounds = aes_blocks() != 0 && !fixed_.garbled_gcm;
  if (!rounds && aes_blocks() != 0) gcm_.BeginGarbled(party_, rings_.context(), runs_);
  const bool all_garbled = !rounds && !runs_.Done() && cts_.Done();
  if (all_garbled) {
    runs_.Beside(first);
    RETURN_IF_ERROR(RunTables());
  } else if (rounds || runs_.Done()) {
    Circuit* const last[] = {&cts_};
    RETURN_IF_ERROR(gcm_.Run(rings_, first, last, ChosenSbox(aes_blocks()), &cost_));
    return RunTables();
  } else {
    Circuit* const circuits[] = {&first, &runs_, &cts_};
    RETURN_IF_ERROR(RunTogether(party_, circuits, &cost_));
  }
  if (!gcm_.judged()) return absl::OkStatus();
  gcm_.EndGarbled();
  TakeGarbledVerdicts();
  return absl::OkStatus();
}

void BatchWork::TakeGarbledVerdicts() {
  for (JobWork& job : work_) {
    for (OpenWork& open : job.opens) {
      const auto* gcm = std::get_if<GcmOpen>(&open.form);
      if (gcm == nullptr) continue;
      open.judged = true;
      open.good = gcm_.good(*gcm);
      if (open.good && open.is_preauth) open.plaintext = gcm_.opened_text(*gcm);
    }
    for (VerifyMacWork& mac : job.verify_macs) {
      const auto* gcm = std::get_if<GcmVerify>(&mac.form);
      if (gcm == nullptr) continue;
      mac.judged = true;
      mac.good = gcm_.good(*gcm);
    }
  }
}

absl::Status BatchWork::JudgeGcmOpens() {
  TagChecks checks;
  for (JobWork& job : work_) {
    for (OpenWork& open : job.opens) {
      const auto* gcm = std::get_if<GcmOpen>(&open.form);
      if (gcm == nullptr || open.judged) continue;
      checks.Add([&](auto* blocks) { gcm_.AppendCheck(*gcm, blocks); }, &open.good);
      open.judged = true;
    }
  }
  return checks.Run(rings_, &cost_);
}

void BatchWork::BeginCts() {
  for (JobWork& job : work_) {
    if (job.Abandoned()) continue;
    cts_.NextJob();
    ForEachPart(job, [this](auto& part) {
      if constexpr (std::is_base_of_v<CtsPart, std::decay_t<decltype(part)>>) cts_.Add(part);
    });
  }
  if (fixed_.protocol.value_or(ChosenProtocol()) == CtsProtocol::kGarbled) {
    return cts_.BeginGarbled(rings_.context(), runs_);
  }
  cts_.Begin(ChosenSbox(cts_.parts()), fixed_.adder);  // one block of a part at a time
}

// Where nobody has said it: as between servers on one machine.
CtsProtocol BatchWork::ChosenProtocol() const {
  const FarthestLine loopback = {absl::Microseconds(13)};
  const CtsLoad load = cts_.Load();
  const bool may = MayBeGarbled(load) && party_.randomness() == Randomness::kKeyed;
  return may ? ChooseProtocol(load, loopback, ProtocolSetting::kAuto) : CtsProtocol::kReplicated;
}

absl::Status BatchWork::CheckTags() {
  TagChecks checks;
  for (JobWork& job : work_) {
    if (job.Abandoned()) continue;
    for (OpenWork& open : job.opens) {
      if (const auto* cts = std::get_if<CtsOpen>(&open.form)) {
        open.good = cts_.good(*cts);
      } else if (!open.judged) {
        checks.Add([&](auto* out) { gcm_.AppendCheck(std::get<GcmOpen>(open.form), out); },
                   &open.good);
      }
    }
    for (VerifyMacWork& mac : job.verify_macs) {
      if (const auto* cts = std::get_if<CtsVerify>(&mac.form);
          cts != nullptr && cts_.judges_macs()) {
        mac.judged = true;
        mac.good = cts_.good(*cts);
      }
      if (mac.judged) continue;
      const auto append = [&](auto* out) {
        std::visit([&](const auto& part) { FamilyOf(part).AppendCheck(part, out); }, mac.form);
      };
      checks.Add(append, &mac.good);
    }
  }
  return checks.Run(rings_, &cost_);
}

// Of a job with parts of 17 to 20, or of which only the messages are opened, the rest is left out
// if the time is not the batch's.
absl::Status BatchWork::OpenTimestamps() {
  std::vector<OpenWork*> opens;
  for (JobWork& job : work_) {
    for (OpenWork& open : job.opens) {
      if (!open.is_preauth || !open.good || open.plaintext.has_value()) continue;
      if (const auto* cts = std::get_if<CtsOpen>(&open.form)) {
        open.plaintext = cts_.opened_text(*cts);
      } else {
        opens.push_back(&open);
      }
    }
  }
  RETURN_IF_ERROR(OpenGcmTimestamps(opens));
  for (JobWork& job : work_) {
    for (OpenWork& open : job.opens) {
      if (!open.plaintext.has_value() || !(job.HasCtsPart() || job.opens_only)) continue;
      open.late = !window_.Holds(AsText(*open.plaintext));
    }
  }
  return absl::OkStatus();
}

absl::Status BatchWork::OpenGcmTimestamps(const std::vector<OpenWork*>& opens) {
  if (opens.empty()) return absl::OkStatus();
  SecretVector<SharedBlock> shares;
  for (OpenWork* open : opens) gcm_.AppendText(std::get<GcmOpen>(open->form), &shares);
  OpenToServers reveal(party_.party(), "pre-auth timestamp");
  reveal.Reset(shares);
  Circuit* const circuits[] = {&reveal};
  RETURN_IF_ERROR(RunTogether(party_, circuits, &cost_));
  absl::Span<const Block> values = reveal.values();
  for (OpenWork* open : opens) {
    open->plaintext = GcmWork::TextOf(std::get<GcmOpen>(open->form), values);
    values.remove_prefix(BlocksOf(open->PlaintextBytes()));
  }
  return absl::OkStatus();
}

}  // namespace mpckdc
