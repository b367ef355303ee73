// SPDX-License-Identifier: Apache-2.0
//
// top: the servers' work, look after look. A server counts from its start; what is shown is the
// difference of two looks.
#include "mpc-server/admin/top.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "mpc-server/admin/commands.h"
#include "mpc-server/admin/terminal.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc::admin {

using nlohmann::json;

namespace {

constexpr size_t kShownLooks = 60;
constexpr absl::Duration kSlice = absl::Milliseconds(50);  // of a sleep, between looks at Ctrl-C

// A counter of a server that lies may fall.
double Difference(uint64_t before, uint64_t after) {
  return after < before ? 0 : static_cast<double>(after - before);
}

}  // namespace

Rates RatesBetween(const v1::StatusReply& before, const v1::StatusReply& after,
                   absl::Duration time) {
  Rates rates;
  rates.known = before.started_us() == after.started_us() && time > absl::ZeroDuration();
  if (!rates.known) return rates;
  const double seconds = absl::ToDoubleSeconds(time);
  const double jobs = Difference(before.jobs(), after.jobs());
  const double batches = Difference(before.batches(), after.batches());
  rates.logins = Difference(before.logins(), after.logins()) / seconds;
  rates.jobs = jobs / seconds;
  rates.failed = Difference(before.jobs_failed(), after.jobs_failed()) / seconds;
  rates.batches = batches / seconds;
  if (batches == 0) return rates;
  rates.jobs_of_batch = jobs / batches;
  const auto mean = [batches](uint64_t b, uint64_t a) {
    return absl::Microseconds(Difference(b, a) / batches);
  };
  rates.waited = mean(before.batches_waited_us(), after.batches_waited_us());
  rates.agreed = mean(before.batches_agreed_us(), after.batches_agreed_us());
  rates.computed = mean(before.batches_computed_us(), after.batches_computed_us());
  return rates;
}

std::string Bars(absl::Span<const double> values) {
  constexpr const char* kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const double most = values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  std::string bars;
  for (const double value : values) {
    const double part = most > 0 ? value / most : 0;
    bars += kBars[std::clamp(static_cast<int>(std::ceil(part * 8)) - 1, 0, 7)];
  }
  return bars;
}

namespace {

struct Look {
  absl::Time at;
  std::vector<Survey> triples;
};

class Top {
 public:
  explicit Top(Session& session) : session_(session) {}

  // Whether all servers answered.
  absl::StatusOr<bool> LookAgain();
  void Show();

 private:
  Rates RatesOf(size_t triple, size_t place) const;
  std::vector<std::string> RowOf(size_t triple, size_t place) const;
  json JsonOf(size_t triple, size_t place) const;
  double RealmLogins() const;

  Session& session_;
  std::optional<Look> before_, now_;
  std::deque<double> logins_;
};

absl::StatusOr<bool> Top::LookAgain() {
  ASSIGN_OR_RETURN(std::vector<Survey> triples, SurveyTriples(session_));
  before_ = std::exchange(now_, Look{absl::Now(), std::move(triples)});
  bool all = true;
  for (const Survey& survey : now_->triples) {
    for (const SurveyedServer& server : survey) all &= server.error.ok();
  }
  if (!before_.has_value()) return all;
  logins_.push_back(RealmLogins());
  if (logins_.size() > kShownLooks) logins_.pop_front();
  return all;
}

Rates Top::RatesOf(size_t triple, size_t place) const {
  const SurveyedServer& server = now_->triples[triple][place];
  if (!before_.has_value() || !server.error.ok()) return {};
  const SurveyedServer& old = before_->triples[triple][place];
  if (!old.error.ok()) return {};
  return RatesBetween(old.status, server.status, now_->at - before_->at);
}

// All three of a triple count each job; one that was just started has not counted it.
double Top::RealmLogins() const {
  double sum = 0;
  for (size_t triple = 0; triple < now_->triples.size(); ++triple) {
    double most = 0;
    for (size_t place = 0; place < 3; ++place) {
      most = std::max(most, RatesOf(triple, place).logins);
    }
    sum += most;
  }
  return sum;
}

std::vector<std::string> Top::RowOf(size_t triple, size_t place) const {
  const SurveyedServer& server = now_->triples[triple][place];
  if (!server.error.ok()) return {server.address, "UNREACHABLE"};
  const v1::StatusReply& s = server.status;
  const Rates rates = RatesOf(triple, place);
  const auto rate = [&rates](double value) {
    return rates.known ? absl::StrFormat("%.1f", value) : "-";
  };
  const auto ms = [&rates](absl::Duration time) {
    return rates.jobs_of_batch > 0 ? absl::StrFormat("%.1f ms", absl::ToDoubleMilliseconds(time))
                                   : "-";
  };
  return {server.address,
          StateOf(s),
          rate(rates.logins),
          rate(rates.jobs),
          rate(rates.failed),
          rate(rates.batches),
          rates.jobs_of_batch > 0 ? absl::StrFormat("%.1f", rates.jobs_of_batch) : "-",
          ms(rates.waited),
          ms(rates.agreed),
          ms(rates.computed),
          absl::StrCat(s.jobs_waiting()),
          DistanceOf(s),
          absl::StrFormat("%+.1f ms", absl::ToDoubleMilliseconds(server.clock_difference)),
          absl::StrCat(s.party()),
          absl::StrCat(s.triple()),
          absl::StrCat(s.epoch())};
}

json Top::JsonOf(size_t triple, size_t place) const {
  const SurveyedServer& server = now_->triples[triple][place];
  const Rates rates = RatesOf(triple, place);
  json out = {{"address", server.address}, {"reachable", server.error.ok()}, {"rates", nullptr}};
  if (!server.error.ok()) return out;
  out["party"] = server.status.party();
  out["triple"] = server.status.triple();
  out["state"] = StateOf(server.status);
  out["jobs_waiting"] = server.status.jobs_waiting();
  if (!rates.known) return out;
  out["rates"] = {{"logins_per_s", rates.logins},
                  {"jobs_per_s", rates.jobs},
                  {"failed_per_s", rates.failed},
                  {"batches_per_s", rates.batches},
                  {"jobs_of_batch", rates.jobs_of_batch},
                  {"waited_us", absl::ToInt64Microseconds(rates.waited)},
                  {"agreed_us", absl::ToInt64Microseconds(rates.agreed)},
                  {"computed_us", absl::ToInt64Microseconds(rates.computed)}};
  return out;
}

void Top::Show() {
  // A narrow terminal shows the first columns.
  Table table = {{"SERVER", "STATE", "LOGINS/S", "JOBS/S", "FAILED/S", "BATCHES/S", "IN BATCH",
                  "WAITED", "AGREED", "COMPUTED", "WAITING", "DISTANCE", "CLOCK", "PARTY", "TRIPLE",
                  "EPOCH"}};
  json servers = json::array();
  for (size_t triple = 0; triple < now_->triples.size(); ++triple) {
    for (size_t place = 0; place < 3; ++place) {
      table.push_back(RowOf(triple, place));
      servers.push_back(JsonOf(triple, place));
    }
  }
  Console& console = session_.console;
  console.BeginScreen();
  const std::vector<double> looks(logins_.begin(), logins_.end());
  console.Say(session_.config.realm, "  ", absl::FormatTime("%H:%M:%S", now_->at, absl::UTCTimeZone()),
              " UTC  ", looks.empty() ? "-" : absl::StrFormat("%.1f", looks.back()), " logins/s  ",
              Bars(looks));
  console.Print(table);
  console.Print(json{{"realm", session_.config.realm},
                     {"time_us", absl::ToUnixMicros(now_->at)},
                     {"logins_per_s", looks.empty() ? json(nullptr) : json(looks.back())},
                     {"servers", std::move(servers)}});
  console.EndScreen();
}

// False: it was interrupted.
bool SleepUnlessInterrupted(absl::Duration time, const InterruptGuard& interrupt) {
  const absl::Time until = absl::Now() + time;
  while (absl::Now() < until && !interrupt.requested()) {
    absl::SleepFor(std::min(kSlice, until - absl::Now()));
  }
  return !interrupt.requested();
}

}  // namespace

absl::StatusOr<ExitCode> TopCommand(Session& session) {
  const InterruptGuard interrupt;
  Top top(session);
  bool all = true;
  for (size_t look = 0; session.options.count == 0 || look < session.options.count; ++look) {
    if (look > 0 && !SleepUnlessInterrupted(absl::Seconds(session.options.interval), interrupt)) {
      break;
    }
    ASSIGN_OR_RETURN(all, top.LookAgain());
    top.Show();
  }
  return all ? ExitCode::kOk : ExitCode::kUnavailable;
}

}  // namespace mpckdc::admin
