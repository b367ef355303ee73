// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/store/key_record.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc {
namespace {

bool SameBlocks(absl::Span<const SharedBlock> a, absl::Span<const SharedBlock> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const SharedBlock& s, const SharedBlock& t) {
                      return s.x == t.x && s.a == t.a;
                    });
}

bool SameUsage(const UsageKey& a, const UsageKey& b) {
  return a.usage == b.usage && a.h.x == b.h.x && a.h.a == b.h.a &&
         SameBlocks(a.round_keys, b.round_keys) && SameBlocks(a.mac_states, b.mac_states);
}

}  // namespace

const UsageKey* KeyRecord::FindUsage(uint32_t usage) const {
  for (const UsageKey& key : usages) {
    if (key.usage == usage) return &key;
  }
  return nullptr;
}

std::vector<uint32_t> KeyRecord::UsageNumbers() const {
  std::vector<uint32_t> numbers;
  for (const UsageKey& key : usages) numbers.push_back(key.usage);
  return numbers;
}

absl::Status CheckKeyRecord(const KeyRecord& record) {
  RETURN_IF_ERROR(CheckKeyInfo(record.info));
  if (record.base.size() != BaseBlocks(record.info.enctype)) {
    return absl::InvalidArgumentError("the base key has not the size of its enctype");
  }
  const std::vector<uint32_t> usages = record.UsageNumbers();
  if (!MayCarry(record.info.key_class, usages)) {
    return absl::InvalidArgumentError("the usages are not those of the key class, ascending");
  }
  for (size_t i = 0; i < usages.size(); ++i) {
    if (record.usages[i].round_keys.size() != RoundKeys(record.info.enctype, usages[i])) {
      return absl::InvalidArgumentError(
          absl::StrCat("usage ", usages[i], " has not the round keys of its enctype"));
    }
    if (record.usages[i].mac_states.size() != MacStateBlocks(record.info.enctype)) {
      return absl::InvalidArgumentError(
          absl::StrCat("usage ", usages[i], " has not the HMAC states of its enctype"));
    }
  }
  return absl::OkStatus();
}

bool SameRecord(const KeyRecord& a, const KeyRecord& b) {
  return a.info == b.info && a.copied == b.copied && SameBlocks(a.base, b.base) &&
         std::equal(a.usages.begin(), a.usages.end(), b.usages.begin(), b.usages.end(), SameUsage);
}

}  // namespace mpckdc
