// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/share/deviation.h"

#include <cassert>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace mpckdc {
namespace {

constexpr char kPayload[] = "mpc-kdc/deviation";  // one byte: Suspects::mask()

}  // namespace

std::string Suspects::Text() const {
  std::string text;
  for (int party = 0; party < kParties; ++party) {
    if (Has(party)) absl::StrAppend(&text, text.empty() ? "P" : " or P", party);
  }
  return text.empty() ? "nobody" : text;
}

absl::Status Deviation(Suspects suspects, absl::string_view text) {
  assert(!suspects.empty() && !(suspects == (Suspects::One(0) | Suspects::Neighbours(0))));
  absl::Status status =
      absl::DataLossError(absl::StrCat(text, " [deviated: ", suspects.Text(), "]"));
  status.SetPayload(kPayload, absl::Cord(std::string(1, static_cast<char>(suspects.mask()))));
  return status;
}

std::optional<Suspects> SuspectsOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  if (!payload.has_value() || payload->size() != 1) return std::nullopt;
  return Suspects::FromMask(static_cast<uint8_t>((*payload)[0]));
}

absl::Status WithText(const absl::Status& status, absl::string_view text) {
  absl::Status other(status.code(), text);
  status.ForEachPayload([&other](absl::string_view type, const absl::Cord& payload) {
    other.SetPayload(type, payload);
  });
  return other;
}

const absl::Status& Weightier(const absl::Status& first, const absl::Status& second) {
  if (IsDeviation(first)) return first;
  if (IsDeviation(second)) return second;
  return first.ok() ? second : first;
}

}  // namespace mpckdc
