// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/different_records.h"

#include "absl/strings/str_cat.h"
#include "mpc-server/base/limits.h"

namespace mpckdc {

std::string DifferentRecords::Note(const KeyInfo& key, const std::optional<Difference>& found) {
  if (!found.has_value()) {
    if (!texts_.empty() && texts_.erase(key.handle) > 0) {
      observer_->OnRecord(key, "");
      Tell();
    }
    return "";
  }
  const std::string text =
      absl::StrCat("the three servers hold different records of key ", HandleText(key.handle), " (",
                   key.principal, ", version ", key.kvno, "): ", found->text);
  const auto [it, first] = texts_.try_emplace(key.handle, text);
  if (!first && it->second == text) return text;
  it->second = text;
  observer_->OnRecord(key, text);
  if (texts_.size() > limits::kMaxDifferentRecords) texts_.erase(key.handle);
  Tell();
  return text;
}

void DifferentRecords::Tell() {
  status_->Update([&](EngineStatus& status) {
    status.different_records = texts_.size();
    status.different_record = texts_.empty() ? "" : texts_.begin()->second;
  });
}

}  // namespace mpckdc
