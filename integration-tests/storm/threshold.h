// SPDX-License-Identifier: Apache-2.0
//
// --fail-if 'p99>250ms': what makes a run a failure.
//
//     threshold ::= metric op value        op ::= > | < | >= | <=
//     value     ::= number [ us | ms | s | % ]
//
// Each metric has a kind, and a value of another kind is an error: 'p99>250' is nobody's wish.
#ifndef INTEGRATION_TESTS_STORM_THRESHOLD_H_
#define INTEGRATION_TESTS_STORM_THRESHOLD_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mpckdc::storm {

enum class MetricKind {
  kTime,    // seconds; the unit is required
  kNumber,  // no unit
  kShare,   // 0 to 1; '%' is required
};

// Names that may be used in this run, with their kinds.
using MetricKinds = std::map<std::string, MetricKind>;
// What was measured; a metric without a value (no login, no percentile) is missing.
using MetricValues = std::map<std::string, double>;

struct Threshold {
  std::string text;
  std::string metric;
  enum class Op { kGreater, kLess, kGreaterOrEqual, kLessOrEqual } op = Op::kGreater;
  double value = 0;
};

absl::StatusOr<Threshold> ParseThreshold(absl::string_view text, const MetricKinds& metrics);

// Why the run fails by this threshold: a sentence; nullopt when it does not. A metric that was not
// measured fails: a run without logins must not pass a limit on their latency.
std::optional<std::string> Exceeded(const Threshold& threshold, const MetricValues& values);

}  // namespace mpckdc::storm

#endif  // INTEGRATION_TESTS_STORM_THRESHOLD_H_
