// SPDX-License-Identifier: Apache-2.0
//
// How much a KDC and a principal may ask of a server: the rates of the section [quota].
// doc/jobs.md ("Quotas") says what each kind counts and why.
#ifndef MPC_SERVER_JUDGE_QUOTA_RATES_H_
#define MPC_SERVER_JUDGE_QUOTA_RATES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mpckdc {

// A bucket of `burst` tokens into which `per_minute` tokens a minute flow.
struct Rate {
  uint32_t per_minute = 0;  // 0: unlimited
  uint32_t burst = 0;

  bool unlimited() const { return per_minute == 0; }
  friend bool operator==(const Rate&, const Rate&) = default;
};

// "60/min burst 120" or "unlimited".
std::string RateText(const Rate& rate);
absl::StatusOr<Rate> ParseRate(absl::string_view text);

// A principal's kinds come first, then a KDC's, then those of one source.
enum class QuotaKind : uint8_t {
  kPrincipalLogins = 0,
  kPrincipalFailures = 1,
  kPrincipalReissues = 2,
  kKdcLogins = 3,
  kKdcOpens = 4,
  kKdcChecksums = 5,
  kUnprovedFailures = 6,
  kKnownFailures = 7,
  kSourceFailures = 8,
  kAnonymousLogins = 9,
};
inline constexpr size_t kQuotaKinds = 10;
inline constexpr size_t kPrincipalQuotas = 3;
inline constexpr size_t kKdcQuotas = 4;
inline constexpr size_t kSourceQuotas = 2;  // beside kKnownFailures, whose buckets are elsewhere

// The key in [quota], which is also the name in texts and metrics.
const char* QuotaName(QuotaKind kind);

// Unlimited where nothing is set.
class QuotaRates {
 public:
  Rate& operator[](QuotaKind kind) { return rates_[static_cast<size_t>(kind)]; }
  const Rate& operator[](QuotaKind kind) const { return rates_[static_cast<size_t>(kind)]; }

  // "principal_logins 60/min burst 120; ...": all of them, for the log and for comparing servers.
  std::string Text() const;
  friend bool operator==(const QuotaRates&, const QuotaRates&) = default;

 private:
  std::array<Rate, kQuotaKinds> rates_;
};

// What a server without a section [quota] has (limits.h).
QuotaRates DefaultQuotaRates();

}  // namespace mpckdc

#endif  // MPC_SERVER_JUDGE_QUOTA_RATES_H_
