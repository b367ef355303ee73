// SPDX-License-Identifier: Apache-2.0
#include "integration-tests/storm/run.h"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "integration-tests/storm/limits.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc::storm {
namespace {

// RFC 4120 section 7.5.9; those that a KDC says to a client.
// clang-format off
constexpr std::pair<int, const char*> kErrorNames[] = {
    {1, "KDC_ERR_NAME_EXP"}, {2, "KDC_ERR_SERVICE_EXP"}, {3, "KDC_ERR_BAD_PVNO"},
    {6, "KDC_ERR_C_PRINCIPAL_UNKNOWN"}, {7, "KDC_ERR_S_PRINCIPAL_UNKNOWN"},
    {8, "KDC_ERR_PRINCIPAL_NOT_UNIQUE"}, {9, "KDC_ERR_NULL_KEY"}, {10, "KDC_ERR_CANNOT_POSTDATE"},
    {11, "KDC_ERR_NEVER_VALID"}, {12, "KDC_ERR_POLICY"}, {13, "KDC_ERR_BADOPTION"},
    {14, "KDC_ERR_ETYPE_NOSUPP"}, {15, "KDC_ERR_SUMTYPE_NOSUPP"},
    {16, "KDC_ERR_PADATA_TYPE_NOSUPP"}, {18, "KDC_ERR_CLIENT_REVOKED"},
    {19, "KDC_ERR_SERVICE_REVOKED"}, {20, "KDC_ERR_TGT_REVOKED"}, {21, "KDC_ERR_CLIENT_NOTYET"},
    {22, "KDC_ERR_SERVICE_NOTYET"}, {23, "KDC_ERR_KEY_EXPIRED"}, {24, "KDC_ERR_PREAUTH_FAILED"},
    {25, "KDC_ERR_PREAUTH_REQUIRED"}, {26, "KDC_ERR_SERVER_NOMATCH"},
    {27, "KDC_ERR_MUST_USE_USER2USER"}, {29, "KDC_ERR_SVC_UNAVAILABLE"},
    {31, "KRB_AP_ERR_BAD_INTEGRITY"}, {32, "KRB_AP_ERR_TKT_EXPIRED"}, {33, "KRB_AP_ERR_TKT_NYV"},
    {34, "KRB_AP_ERR_REPEAT"}, {36, "KRB_AP_ERR_BADMATCH"}, {37, "KRB_AP_ERR_SKEW"},
    {41, "KRB_AP_ERR_MODIFIED"}, {44, "KRB_AP_ERR_BADKEYVER"}, {45, "KRB_AP_ERR_NOKEY"},
    {50, "KRB_AP_ERR_INAPP_CKSUM"}, {52, "KRB_ERR_RESPONSE_TOO_BIG"}, {60, "KRB_ERR_GENERIC"},
    {61, "KRB_ERR_FIELD_TOOLONG"}, {68, "KDC_ERR_WRONG_REALM"}};
// clang-format on

uint64_t& At(std::vector<uint64_t>& counts, size_t i) {
  if (counts.size() <= i) counts.resize(i + 1);
  return counts[i];
}

void AddInto(std::vector<uint64_t>& to, const std::vector<uint64_t>& from) {
  for (size_t i = from.size(); i-- > 0;) At(to, i) += from[i];
}

// Bins are equally wide by their logarithms.
const double kLogRange = std::log(limits::kMaxLatencySeconds / limits::kMinLatencySeconds);
const auto kBins = static_cast<size_t>(std::ceil(kLogRange / limits::kLatencyResolution));
const double kBinWidth = kLogRange / static_cast<double>(kBins);

size_t BinOf(absl::Duration latency) {
  // Zero has no logarithm: it counts as the shortest.
  const double seconds = std::max(absl::ToDoubleSeconds(latency), limits::kMinLatencySeconds);
  const double bin = std::log(seconds / limits::kMinLatencySeconds) / kBinWidth;
  return std::min(static_cast<size_t>(bin), kBins);
}

absl::Duration LowerEdge(size_t bin) {
  return absl::Seconds(limits::kMinLatencySeconds * std::exp(static_cast<double>(bin) * kBinWidth));
}

constexpr absl::Duration kTick = absl::Milliseconds(10);

double CpuSecondsOf(pid_t pid) {
  std::string line;
  std::getline(std::ifstream(absl::StrCat("/proc/", pid, "/stat")), line);
  return CpuSecondsOfStat(line, sysconf(_SC_CLK_TCK));
}

// One line that is written over, on a terminal.
class Progress {
 public:
  explicit Progress(const Control& control) : control_(control) {}
  ~Progress() {
    if (shown_) fprintf(stderr, "\r\033[K");
  }

  void Tick(absl::Time now, absl::string_view stage) {
    if (!shown_ || now < next_) return;
    const uint64_t ok = control_.ok;
    const double rate = static_cast<double>(ok - last_ok_) / absl::ToDoubleSeconds(now - last_);
    if (last_ != absl::InfinitePast()) {
      const std::string line =
          absl::StrFormat("%s: %d logins, %.0f/s, %d in flight, %d in trouble", stage, ok, rate,
                          control_.in_flight.load(), control_.trouble.load());
      fprintf(stderr, "\r\033[K%s", line.c_str());
    }
    last_ok_ = ok;
    last_ = now;
    next_ = now + limits::kProgressInterval;
  }

 private:
  const bool shown_ = isatty(STDERR_FILENO) == 1;
  const Control& control_;
  uint64_t last_ok_ = 0;
  absl::Time last_ = absl::InfinitePast();
  absl::Time next_ = absl::InfinitePast();
};

struct Snapshot {
  absl::Time at;
  uint64_t started, ok, ended;
  CpuTimes cpu;
};

StageResult Between(const Snapshot& from, const Snapshot& to, double rate) {
  StageResult r = {.rate = rate,
                   .seconds = absl::ToDoubleSeconds(to.at - from.at),
                   .offered = to.started - from.started,
                   .ok = to.ok - from.ok,
                   .ended = to.ended - from.ended,
                   .tally = {},
                   .cpu = to.cpu};
  r.cpu.own -= from.cpu.own;
  for (size_t i = 0; i < r.cpu.others.size(); ++i) {
    r.cpu.others[i].second -= from.cpu.others[i].second;
  }
  return r;
}

// As far as can be known while it runs: whether the KDC answered what was due. The rest (p99, what
// is lost later) is judged at the end.
bool AnsweredEnough(const StageResult& stage) {
  return static_cast<double>(stage.ended) >=
         limits::kKneeShareAnswered * static_cast<double>(stage.offered);
}

bool KeptUp(const StageResult& stage, absl::Duration knee_p99) {
  return AnsweredEnough(stage) && stage.tally.lost == 0 && stage.tally.shed == 0 &&
         stage.tally.login.count() > 0 && stage.tally.login.Percentile(99) <= knee_p99;
}

class Runner {
 public:
  Runner(const Options& o, Load& load, Control& control)
      : o_(o), stages_(StagesOf(o)), load_(load), control_(control), progress_(control) {}

  absl::StatusOr<RunResult> Run() {
    result_.is_ramp = stages_.size() > 1;
    if (o_.warm_up > absl::ZeroDuration()) {
      control_.stage = kWarmUpStage;
      Sleep(o_.warm_up, "warm-up");
    }
    const Snapshot begin = Look();
    RunStages();
    const Snapshot end = Look();
    control_.stop = true;
    while (!load_.HasEnded()) {
      progress_.Tick(MonotonicNow(), "waiting for the last answers");
      absl::SleepFor(kTick);
    }
    result_.total = Between(begin, end, stages_.front().rate);
    std::vector<Tally> tallies(stages_.size() + 1);
    RETURN_IF_ERROR(load_.End(tallies, result_.series));
    AddUp(tallies);
    return std::move(result_);
  }

 private:
  Snapshot Look() const {
    return {MonotonicNow(), control_.started, control_.ok, control_.ended, ReadCpu(o_.processes)};
  }

  void RunStages() {
    // Between the stages nothing begins, so that whoever counts down the count sees its stage.
    if (o_.count > 0) control_.may_begin = 0;
    Snapshot before = Look();
    for (size_t i = 0; i < stages_.size() && !load_.HasFailed(); ++i) {
      const Stage& stage = stages_[i];
      control_.rate = stage.rate;
      control_.stage = static_cast<int>(i) + 1;
      if (o_.count > 0) control_.may_begin = o_.count;
      Sleep(stage.length,
            stage.rate > 0 ? absl::StrFormat("%.0f logins/s", stage.rate) : "running");
      const Snapshot after = Look();
      result_.stages.push_back(Between(before, after, stage.rate));
      before = after;
      if (control_.IsInterrupted()) break;
      if (stages_.size() > 1 && !AnsweredEnough(result_.stages.back())) break;
    }
  }

  // With a count: until as many have begun and nothing is in flight.
  bool CountIsDone() const {
    return o_.count > 0 && control_.may_begin <= 0 && control_.in_flight == 0;
  }

  void Sleep(absl::Duration length, absl::string_view stage) {
    const absl::Time end = MonotonicNow() + length;
    while (!load_.HasFailed()) {
      const absl::Time now = MonotonicNow();
      if (now >= end || CountIsDone() || control_.IsInterrupted()) return;
      load_.Tick();
      progress_.Tick(now, stage);
      absl::SleepFor(std::min(kTick, end - now));
    }
  }

  void AddUp(std::vector<Tally>& tallies) {
    for (size_t i = 0; i < result_.stages.size(); ++i) {
      StageResult& stage = result_.stages[i];
      stage.tally = std::move(tallies[i + 1]);
      result_.total.tally.Merge(stage.tally);
      stage.kept = KeptUp(stage, o_.knee_p99);
      if (!stage.kept) continue;
      result_.knee_per_s =
          std::max(result_.knee_per_s, static_cast<double>(stage.ok) / stage.seconds);
    }
  }

  const Options& o_;
  const std::vector<Stage> stages_;
  Load& load_;
  Control& control_;
  Progress progress_;
  RunResult result_;
};

}  // namespace

void LatencyHistogram::Add(absl::Duration latency) {
  ++At(bins_, BinOf(latency));
  ++count_;
  sum_ += latency;
  max_ = std::max(max_, latency);
}

void LatencyHistogram::Merge(const LatencyHistogram& other) {
  AddInto(bins_, other.bins_);
  count_ += other.count_;
  sum_ += other.sum_;
  max_ = std::max(max_, other.max_);
}

absl::Duration LatencyHistogram::Mean() const {
  return count_ == 0 ? absl::ZeroDuration() : sum_ / static_cast<double>(count_);
}

absl::Duration LatencyHistogram::Percentile(double percent) const {
  const double wanted = percent / 100 * static_cast<double>(count_) - 1e-9;
  uint64_t seen = 0;
  for (size_t i = 0; i < bins_.size() && i < kBins; ++i) {
    seen += bins_[i];
    if (bins_[i] > 0 && static_cast<double>(seen) >= wanted)
      return std::min(LowerEdge(i + 1), max_);
  }
  return max_;
}

std::vector<LatencyHistogram::Bin> LatencyHistogram::NonEmptyBins() const {
  std::vector<Bin> bins;
  for (size_t i = 0; i < bins_.size(); ++i) {
    if (bins_[i] == 0) continue;
    bins.push_back({LowerEdge(i), i == kBins ? max_ : LowerEdge(i + 1), bins_[i]});
  }
  return bins;
}

std::string ErrorName(int code) {
  for (const auto& [number, name] : kErrorNames) {
    if (number == code) return name;
  }
  return absl::StrCat("KRB_ERROR_", code);
}

void Tally::Complain(std::string text) {
  if (complaints.size() < limits::kMaxWrongAnswerTexts) complaints.push_back(std::move(text));
}

void Tally::Merge(const Tally& other) {
  for (uint64_t Tally::*count :
       {&Tally::started, &Tally::ok, &Tally::refused, &Tally::failed, &Tally::wrong_answers,
        &Tally::lost, &Tally::shed, &Tally::checked, &Tally::tickets, &Tally::resends,
        &Tally::late, &Tally::unreachable}) {
    this->*count += other.*count;
  }
  for (const auto& [code, count] : other.errors) {
    errors[code].expected += count.expected;
    errors[code].unexpected += count.unexpected;
  }
  for (const auto& [verdict, count] : other.verdicts) verdicts[verdict] += count;
  for (const std::string& text : other.complaints) Complain(text);
  login.Merge(other.login);
  for (size_t i = 0; i < exchanges.size(); ++i) exchanges[i].Merge(other.exchanges[i]);
}

void Series::Add(absl::Duration since_begin, bool is_ok) {
  const auto interval = static_cast<size_t>(since_begin / limits::kSeriesInterval);
  At(ok, interval) += is_ok ? 1 : 0;
  At(other, interval) += is_ok ? 0 : 1;
}

void Series::Merge(const Series& from) {
  AddInto(ok, from.ok);
  AddInto(other, from.other);
}

double CpuSecondsOfStat(absl::string_view line, long ticks_per_second) {
  // pid (name) state ...: the name may hold anything, a parenthesis too.
  const size_t name_end = line.rfind(')');
  if (name_end == absl::string_view::npos) return -1;
  const std::vector<absl::string_view> fields =
      absl::StrSplit(line.substr(name_end + 1), ' ', absl::SkipEmpty());
  constexpr size_t kUtime = 11, kStime = 12;  // 14th and 15th of proc(5), two of them before ')'
  uint64_t utime = 0, stime = 0;
  if (fields.size() <= kStime || !absl::SimpleAtoi(fields[kUtime], &utime) ||
      !absl::SimpleAtoi(fields[kStime], &stime)) {
    return -1;
  }
  return static_cast<double>(utime + stime) / static_cast<double>(ticks_per_second);
}

absl::Status CheckRunning(const std::vector<WatchedProcess>& processes) {
  for (const auto& [name, pid] : processes) {
    if (CpuSecondsOf(pid) >= 0) continue;
    return Bad("--pid ", name, "=", pid, ": no such process");
  }
  return absl::OkStatus();
}

CpuTimes ReadCpu(const std::vector<WatchedProcess>& processes) {
  CpuTimes times;
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  times.own = absl::ToDoubleSeconds(absl::DurationFromTimeval(usage.ru_utime) +
                                    absl::DurationFromTimeval(usage.ru_stime));
  for (const auto& [name, pid] : processes) {
    const double seconds = CpuSecondsOf(pid);
    auto sum = std::find_if(times.others.begin(), times.others.end(),
                            [&](const auto& other) { return other.first == name; });
    if (sum == times.others.end()) sum = times.others.insert(sum, {name, 0});
    sum->second += seconds < 0 ? std::nan("") : seconds;
  }
  return times;
}

absl::Time MonotonicNow() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return absl::TimeFromTimespec(now);
}

// It is in flight before it is counted down: who sees that none may begin and none is in flight
// knows that all are done.
bool Control::MayBegin() {
  if (may_begin <= 0) return false;
  ++in_flight;
  if (may_begin.fetch_sub(1) > 0) return true;
  --in_flight;
  return false;
}

std::vector<Stage> StagesOf(const Options& o) {
  const absl::Duration length = o.count > 0 ? limits::kMaxDuration : o.duration;
  if (o.ramp_to == 0) return {{o.rate, length}};
  std::vector<Stage> stages;
  for (int i = 0; i < o.ramp_steps; ++i) {
    stages.push_back({o.rate + (o.ramp_to - o.rate) * i / (o.ramp_steps - 1), length});
  }
  return stages;
}

absl::StatusOr<RunResult> Run(const Options& options, Load& load, Control& control) {
  return Runner(options, load, control).Run();
}

}  // namespace mpckdc::storm
