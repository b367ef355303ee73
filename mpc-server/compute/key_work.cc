// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/compute/key_work.h"

#include <array>
#include <iterator>
#include <memory>

#include "mpc-server/base/status_macros.h"
#include "mpc-server/circuit/checks.h"
#include "mpc-server/circuit/derive/usage_key.h"
#include "mpc-server/compute/garbled_keys.h"

namespace mpckdc {
namespace {

// The usage keys of many records, those of each enctype together and the enctypes side by side.
class Derivation {
 public:
  Derivation(absl::Span<const KeyRecord* const> records,
             const std::vector<std::vector<uint32_t>>& usages) {
    std::array<std::vector<UsageKeyRequest>, std::size(kEnctypes)> requests;
    for (size_t i = 0; i < records.size(); ++i) {
      std::vector<UsageKeyRequest>& r = requests[IndexOf(*records[i])];
      first_.push_back(r.size());
      for (const uint32_t usage : usages[i]) r.push_back({records[i]->base.data(), usage});
    }
    for (size_t e = 0; e < requests.size(); ++e) {
      if (requests[e].empty()) continue;
      circuits_[e] = std::make_unique<UsageKeys>(kEnctypes[e]);
      circuits_[e]->Reset(requests[e]);
    }
  }

  absl::Status Run(PartyContext& party, Circuit& first, Cost* cost) {
    std::vector<Circuit*> circuits = {&first};
    for (const auto& circuit : circuits_) {
      if (circuit != nullptr) circuits.push_back(circuit.get());
    }
    return RunTogether(party, circuits, cost);
  }

  const UsageKeyShare& Result(const KeyRecord& record, size_t i, size_t usage) const {
    return circuits_[IndexOf(record)]->results()[first_[i] + usage];
  }

 private:
  // In kEnctypes. Records are of one of them (CheckKeyInfo).
  static size_t IndexOf(const KeyRecord& record) {
    return static_cast<size_t>(FindEnctype(record.info.enctype) - kEnctypes);
  }

  std::array<std::unique_ptr<UsageKeys>, std::size(kEnctypes)> circuits_;
  std::vector<size_t> first_;
};

// All that a usage has; a part that its enctype does not have is zero in both.
void AppendDifference(const UsageKeyShare& derived, const UsageKey& stored,
                      SecretVector<SharedBlock>* out) {
  for (size_t i = 0; i < derived.round_keys.size(); ++i) {
    out->push_back(derived.round_keys[i] ^ stored.round_keys[i]);
  }
  for (size_t i = 0; i < derived.mac_states.size(); ++i) {
    out->push_back(derived.mac_states[i] ^ stored.mac_states[i]);
  }
  if (derived.mac_states.empty()) out->push_back(derived.h ^ stored.h);
}

absl::Status DeriveInRounds(PartyContext& party, KeyRecord& record, Circuit& first, Cost* cost) {
  const absl::Span<const uint32_t> usages = UsagesOf(record.info.key_class);
  const KeyRecord* const records[] = {&record};
  Derivation derivation(records, {{usages.begin(), usages.end()}});
  RETURN_IF_ERROR(derivation.Run(party, first, cost));
  for (size_t i = 0; i < usages.size(); ++i) {
    const UsageKeyShare& derived = derivation.Result(record, 0, i);
    record.usages.push_back({usages[i], derived.round_keys, derived.h, derived.mac_states});
  }
  return absl::OkStatus();
}

absl::Status DeriveGarbled(PartyContext& party, KeyRecord& record, const Digest& agreed,
                           Circuit& first, Cost* cost) {
  GarbledKeys keys(party);
  keys.BeginDraw(record, agreed);
  Circuit* const circuits[] = {&first, &keys};
  return RunTogether(party, circuits, cost);
}

absl::StatusOr<std::vector<bool>> VerifyInRounds(PartyContext& party,
                                                 absl::Span<const KeyRecord* const> records,
                                                 Circuit& first, Cost* cost) {
  std::vector<std::vector<uint32_t>> usages;
  for (const KeyRecord* record : records) usages.push_back(record->UsageNumbers());
  Derivation derivation(records, usages);
  absl::Status run = derivation.Run(party, first, cost);
  if (!run.ok()) return run;

  SecretVector<SharedBlock> blocks;
  std::vector<size_t> ends;
  for (size_t i = 0; i < records.size(); ++i) {
    for (size_t u = 0; u < usages[i].size(); ++u) {
      AppendDifference(derivation.Result(*records[i], i, u), records[i]->usages[u], &blocks);
    }
    ends.push_back(blocks.size());
  }
  std::vector<absl::Span<const SharedBlock>> items;
  for (size_t i = 0; i < ends.size(); ++i) {
    const size_t begin = i == 0 ? 0 : ends[i - 1];
    items.push_back(absl::MakeConstSpan(blocks).subspan(begin, ends[i] - begin));
  }
  ZeroCheck check(party, "key records check");
  check.Reset(items);
  Circuit* const circuits[] = {&check};
  run = RunTogether(party, circuits, cost);
  if (!run.ok()) return run;
  return std::vector<bool>(check.zero().begin(), check.zero().end());
}

absl::StatusOr<std::vector<bool>> VerifyGarbled(PartyContext& party,
                                                absl::Span<const KeyRecord* const> records,
                                                const Digest& agreed, Circuit& first, Cost* cost) {
  GarbledKeys keys(party);
  keys.BeginVerify(records, agreed);
  Circuit* const circuits[] = {&first, &keys};
  RETURN_IF_ERROR(RunTogether(party, circuits, cost));
  return keys.equal();
}

}  // namespace

absl::StatusOr<KeyRecord> DrawRecord(PartyContext& party, const KeyInfo& info,
                                     const KeyProtocol& by, Circuit& first, Cost* cost) {
  RETURN_IF_ERROR(CheckNewKeyInfo(info));
  KeyRecord record;
  record.info = info;
  record.base.resize(BaseBlocks(info.enctype));
  party.DrawRandom(absl::MakeSpan(record.base));
  RETURN_IF_ERROR(by.protocol == CtsProtocol::kGarbled
                      ? DeriveGarbled(party, record, by.agreed, first, cost)
                      : DeriveInRounds(party, record, first, cost));
  RETURN_IF_ERROR(party.Verify(cost));
  RETURN_IF_ERROR(CheckKeyRecord(record));
  return record;
}

absl::StatusOr<std::vector<bool>> VerifyRecords(PartyContext& party,
                                                absl::Span<const KeyRecord* const> records,
                                                const KeyProtocol& by, Circuit& first, Cost* cost) {
  // A record of a base key alone has nothing that could not belong to it.
  std::vector<const KeyRecord*> derived;
  for (const KeyRecord* record : records) {
    if (!record->usages.empty()) derived.push_back(record);
  }
  if (derived.empty()) {  // what is said of the keys that were left out is confirmed all the same
    Circuit* const confirmation[] = {&first};
    RETURN_IF_ERROR(RunTogether(party, confirmation, cost));
    return std::vector<bool>(records.size(), true);
  }
  ASSIGN_OR_RETURN(const std::vector<bool> found,
                   by.protocol == CtsProtocol::kGarbled
                       ? VerifyGarbled(party, derived, by.agreed, first, cost)
                       : VerifyInRounds(party, derived, first, cost));
  std::vector<bool> equal;
  size_t next = 0;
  for (const KeyRecord* record : records) {
    equal.push_back(record->usages.empty() || found[next++]);
  }
  return equal;
}

// The view is confirmed before anything of the keys leaves a server.
absl::StatusOr<std::vector<bool>> CompareBases(PartyContext& party, absl::Span<const KeyPair> pairs,
                                               Circuit& first, Cost* cost) {
  Circuit* const confirmation[] = {&first};
  RETURN_IF_ERROR(RunTogether(party, confirmation, cost));
  if (pairs.empty()) return std::vector<bool>();
  SecretVector<SharedBlock> blocks;
  std::vector<size_t> ends;
  for (const KeyPair& pair : pairs) {
    if (pair.one->info.enctype != pair.other->info.enctype ||
        pair.one->base.size() != pair.other->base.size() || pair.one->base.empty()) {
      return absl::InternalError("a comparison of keys of two enctypes");
    }
    for (size_t b = 0; b < pair.one->base.size(); ++b) {
      blocks.push_back(pair.one->base[b] ^ pair.other->base[b]);
    }
    ends.push_back(blocks.size());
  }
  std::vector<absl::Span<const SharedBlock>> items;
  for (size_t i = 0; i < ends.size(); ++i) {
    const size_t begin = i == 0 ? 0 : ends[i - 1];
    items.push_back(absl::MakeConstSpan(blocks).subspan(begin, ends[i] - begin));
  }
  ZeroCheck check(party, "key comparison");
  check.Reset(items);
  Circuit* const circuits[] = {&check};
  RETURN_IF_ERROR(RunTogether(party, circuits, cost));
  return std::vector<bool>(check.zero().begin(), check.zero().end());
}

}  // namespace mpckdc
