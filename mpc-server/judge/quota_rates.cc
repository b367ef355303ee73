// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/judge/quota_rates.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "mpc-server/base/limits.h"

namespace mpckdc {
namespace {

constexpr const char* kNames[kQuotaKinds] = {
    "principal_logins", "principal_failures", "principal_reissues", "kdc_logins",     "kdc_opens",
    "kdc_checksums",    "unproved_failures",  "known_failures",     "source_failures",
    "anonymous_logins"};
constexpr absl::string_view kUnlimited = "unlimited";

bool ReadCount(absl::string_view digits, uint32_t* out) {
  return absl::SimpleAtoi(digits, out) && *out >= 1 && *out <= limits::kMaxQuota;
}

}  // namespace

std::string RateText(const Rate& rate) {
  if (rate.unlimited()) return std::string(kUnlimited);
  return absl::StrCat(rate.per_minute, "/min burst ", rate.burst);
}

absl::StatusOr<Rate> ParseRate(absl::string_view text) {
  if (text == kUnlimited) return Rate{};
  const std::vector<absl::string_view> words = absl::StrSplit(text, ' ', absl::SkipEmpty());
  Rate rate;
  if (words.size() == 3 && words[1] == "burst") {
    absl::string_view number = words[0];
    if (absl::ConsumeSuffix(&number, "/min") && ReadCount(number, &rate.per_minute) &&
        ReadCount(words[2], &rate.burst)) {
      return rate;
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("wants \"unlimited\" or a rate like \"60/min burst 120\", both numbers from 1 "
                   "to ", limits::kMaxQuota));
}

const char* QuotaName(QuotaKind kind) { return kNames[static_cast<size_t>(kind)]; }

std::string QuotaRates::Text() const {
  std::string text;
  for (size_t i = 0; i < kQuotaKinds; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : "; ", kNames[i], " ", RateText(rates_[i]));
  }
  return text;
}

QuotaRates DefaultQuotaRates() {
  QuotaRates rates;
  rates[QuotaKind::kPrincipalLogins] = {limits::kPrincipalLoginsPerMinute,
                                        limits::kPrincipalLoginsBurst};
  rates[QuotaKind::kPrincipalFailures] = {limits::kPrincipalFailuresPerMinute,
                                          limits::kPrincipalFailuresBurst};
  rates[QuotaKind::kPrincipalReissues] = {limits::kPrincipalReissuesPerMinute,
                                          limits::kPrincipalReissuesBurst};
  rates[QuotaKind::kUnprovedFailures] = {limits::kUnprovedFailuresPerMinute,
                                         limits::kUnprovedFailuresBurst};
  rates[QuotaKind::kKnownFailures] = {limits::kKnownFailuresPerMinute, limits::kKnownFailuresBurst};
  rates[QuotaKind::kSourceFailures] = {limits::kSourceFailuresPerMinute,
                                       limits::kSourceFailuresBurst};
  rates[QuotaKind::kAnonymousLogins] = {limits::kAnonymousLoginsPerMinute,
                                        limits::kAnonymousLoginsBurst};
  return rates;
}

}  // namespace mpckdc
