// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/storm/threshold.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace mpckdc::storm {
namespace {

struct Unit {
  absl::string_view name;
  MetricKind kind;
  double factor;
};

// "ms" and "us" before "s", which ends them.
constexpr Unit kUnits[] = {{"us", MetricKind::kTime, 1e-6},
                           {"ms", MetricKind::kTime, 1e-3},
                           {"s", MetricKind::kTime, 1},
                           {"%", MetricKind::kShare, 1e-2}};

absl::string_view WantedUnit(MetricKind kind) {
  switch (kind) {
    case MetricKind::kTime: return "a time with its unit: us, ms or s";
    case MetricKind::kShare: return "a share in %";
    case MetricKind::kNumber: return "a number without a unit";
  }
  return "";
}

bool Holds(Threshold::Op op, double measured, double limit) {
  switch (op) {
    case Threshold::Op::kGreater: return measured > limit;
    case Threshold::Op::kLess: return measured < limit;
    case Threshold::Op::kGreaterOrEqual: return measured >= limit;
    case Threshold::Op::kLessOrEqual: return measured <= limit;
  }
  return true;
}

absl::Status Bad(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("--fail-if \"", text, "\": ", why));
}

}  // namespace

absl::StatusOr<Threshold> ParseThreshold(absl::string_view text, const MetricKinds& metrics) {
  const size_t at = text.find_first_of("<>");
  if (at == absl::string_view::npos) return Bad(text, "no < or >; for example p99>250ms");
  Threshold t;
  t.text = std::string(text);
  t.metric = std::string(absl::StripAsciiWhitespace(text.substr(0, at)));
  const auto known = metrics.find(t.metric);
  if (known == metrics.end()) {
    return Bad(text, absl::StrCat("no metric \"", t.metric, "\" in this run; there are: ",
                                  absl::StrJoin(metrics, " ", [](std::string* out, const auto& m) {
                                    absl::StrAppend(out, m.first);
                                  })));
  }
  const bool or_equal = at + 1 < text.size() && text[at + 1] == '=';
  if (text[at] == '>') {
    t.op = or_equal ? Threshold::Op::kGreaterOrEqual : Threshold::Op::kGreater;
  } else {
    t.op = or_equal ? Threshold::Op::kLessOrEqual : Threshold::Op::kLess;
  }
  absl::string_view value = absl::StripAsciiWhitespace(text.substr(at + (or_equal ? 2 : 1)));
  MetricKind given = MetricKind::kNumber;
  double factor = 1;
  for (const Unit& unit : kUnits) {
    if (!absl::ConsumeSuffix(&value, unit.name)) continue;
    given = unit.kind;
    factor = unit.factor;
    break;
  }
  double number = 0;
  if (given != known->second || !absl::SimpleAtod(value, &number) || !std::isfinite(number)) {
    return Bad(text, absl::StrCat(t.metric, " is compared with ", WantedUnit(known->second)));
  }
  t.value = number * factor;
  return t;
}

std::optional<std::string> Exceeded(const Threshold& threshold, const MetricValues& values) {
  const auto value = values.find(threshold.metric);
  if (value == values.end()) {
    return absl::StrCat(threshold.text, ": ", threshold.metric, " was not measured");
  }
  if (!Holds(threshold.op, value->second, threshold.value)) return std::nullopt;
  return absl::StrCat(threshold.text, ": ", threshold.metric, " is ", value->second);
}

}  // namespace mpckdc::storm
