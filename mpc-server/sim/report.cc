// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/sim/report.h"

#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "mpc-server/sim/faults.h"

namespace mpckdc::sim {
namespace {

using Json = nlohmann::json;

constexpr std::pair<const char*, Counts Tallies::*> kTallies[] = {{"steps", &Tallies::steps},
                                                                  {"faults", &Tallies::faults},
                                                                  {"verdicts", &Tallies::verdicts},
                                                                  {"events", &Tallies::events}};

void AddTallies(const Tallies& from, Tallies* to) {
  for (const auto& [title, field] : kTallies) {
    for (const auto& [name, count] : from.*field) (to->*field)[name] += count;
  }
}

uint64_t CountOf(const Counts& counts, const std::string& name) {
  const auto it = counts.find(name);
  return it == counts.end() ? 0 : it->second;
}

void AppendCounts(const char* title, const Counts& counts, std::string* out) {
  absl::StrAppend(out, title, "\n");
  for (const auto& [name, count] : counts) {
    absl::StrAppendFormat(out, "  %12d  %s\n", count, name);
  }
}

// One row per step, one column per kind of fault; the columns' names are above, by letter.
void AppendTable(const Counts& steps, const Counts& faults, std::string* out) {
  absl::StrAppend(out, "faults by step (columns are the kinds of faults, in this order:");
  for (int kind = 0; kind < kFaultKinds; ++kind) {
    absl::StrAppend(out, kind % 6 == 0 ? "\n    " : ", ", kind + 1, " ",
                    FaultName(static_cast<FaultKind>(kind)));
  }
  absl::StrAppend(out, ")\n");
  absl::StrAppendFormat(out, "  %-24s %11s", "step", "reached");
  for (int kind = 0; kind < kFaultKinds; ++kind) absl::StrAppendFormat(out, " %6d", kind + 1);
  absl::StrAppend(out, "\n");
  Counts rows = steps;
  rows["any moment"] = 0;
  for (const auto& [step, reached] : rows) {
    absl::StrAppendFormat(out, "  %-24s %11d", step, reached);
    for (int kind = 0; kind < kFaultKinds; ++kind) {
      const std::string name =
          absl::StrCat(FaultName(static_cast<FaultKind>(kind)), " at ", step);
      absl::StrAppendFormat(out, " %6d", CountOf(faults, name));
    }
    absl::StrAppend(out, "\n");
  }
}

}  // namespace

void Report::Add(uint64_t seed, const Outcome& outcome) {
  ++seeds;
  if (!outcome.violations.empty()) failures[seed] = outcome.violations[0];
  AddTallies(outcome, this);
}

void Report::Add(const Report& other) {
  seeds += other.seeds;
  failures.insert(other.failures.begin(), other.failures.end());
  AddTallies(other, this);
}

std::string Report::ToJson() const {
  Json json = {{"first", first}, {"seeds", seeds}, {"failures", Json::object()}};
  for (const auto& [seed, what] : failures) json["failures"][absl::StrCat(seed)] = what;
  for (const auto& [name, field] : kTallies) json[name] = this->*field;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<Report> Report::FromJson(const std::string& line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return absl::DataLossError("not a report");
  Report report;
  try {
    report.first = json.at("first");
    report.seeds = json.at("seeds");
    for (const auto& [seed, what] : json.at("failures").items()) {
      uint64_t number;
      if (!absl::SimpleAtoi(seed, &number)) return absl::DataLossError("not a seed");
      report.failures[number] = what;
    }
    for (const auto& [name, field] : kTallies) report.*field = json.at(name).get<Counts>();
  } catch (const Json::exception& e) {
    return absl::DataLossError(e.what());
  }
  return report;
}

std::string Report::Summary() const {
  std::string out;
  AppendTable(steps, faults, &out);
  AppendCounts("events", events, &out);
  AppendCounts("verdicts of jobs", verdicts, &out);
  return out;
}

}  // namespace mpckdc::sim
