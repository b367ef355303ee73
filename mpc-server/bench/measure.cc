// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/measure.h"

#include <algorithm>
#include <cmath>

#include "mpc-server/base/status_macros.h"
#include "mpc-server/bench/workload.h"

namespace mpckdc::bench {
namespace {

constexpr double kCalibrationSeconds = 0.02;
constexpr uint32_t kMaxBatchesOfRun = 1 << 20;

double WallSeconds(const RunReport& run) {
  int64_t start = INT64_MAX, end = INT64_MIN;
  for (const PartyReport& p : run.parties) {
    start = std::min(start, p.start_ns);
    end = std::max(end, p.end_ns);
  }
  return 1e-9 * static_cast<double>(end - start);
}

double PercentileMs(std::vector<int64_t>& ns, double fraction) {
  if (ns.empty()) return 0;
  const size_t at = static_cast<size_t>(std::ceil(fraction * static_cast<double>(ns.size()))) - 1;
  std::nth_element(ns.begin(), ns.begin() + static_cast<ptrdiff_t>(at), ns.end());
  return 1e-6 * static_cast<double>(ns[at]);
}

// Gathers the runs of one kind of work.
class Gathered {
 public:
  Gathered(const BenchSetup& setup, const Workload& workload)
      : setup_(setup), workload_(workload) {}

  void Add(const RunReport& run) {
    const double lanes = static_cast<double>(setup_.lanes) * run.batches;
    batches_ += run.batches;
    int64_t cpu_ns = 0;
    for (const PartyReport& p : run.parties) {
      cpu_ns += p.cpu_ns;
      faults_ += p.minor_faults;
      AddCost(p, run.batches);
    }
    lanes_per_s_.push_back(lanes / WallSeconds(run));
    lanes_per_cpu_s_.push_back(lanes / (1e-9 * static_cast<double>(cpu_ns)));
    AddLatencies(run);
  }

  Result Finish() {
    Result r;
    r.batches = batches_;
    r.lanes_per_s = SpreadOf(lanes_per_s_);
    r.lanes_per_cpu_s = SpreadOf(lanes_per_cpu_s_);
    r.p50_ms = PercentileMs(latency_ns_, 0.5);
    r.p99_ms = PercentileMs(latency_ns_, 0.99);
    r.max_ms = PercentileMs(latency_ns_, 1);
    const double of_party = static_cast<double>(batches_) * kParties;
    const double of_lane = of_party * static_cast<double>(setup_.lanes);
    r.bytes_per_lane_per_party = static_cast<double>(bytes_) / of_lane;
    r.payload_bytes_per_lane_per_party =
        static_cast<double>(cost_.bytes_to_next + cost_.bytes_to_prev) / of_lane;
    r.rounds = static_cast<double>(cost_.rounds) / (of_party * Teams(setup_));
    r.messages = static_cast<double>(frames_) / of_party;
    r.minor_faults_per_batch = static_cast<double>(faults_) / of_party;
    r.cost_as_declared = as_declared_;
    return r;
  }

 private:
  void AddLatencies(const RunReport& run) {
    for (size_t w = 0; w < run.parties[0].workers.size(); ++w) {
      for (size_t b = 0; b < run.batches; ++b) {
        int64_t latest = 0;
        for (const PartyReport& p : run.parties) {
          if (w < p.workers.size() && b < p.workers[w].latency_ns.size()) {
            latest = std::max(latest, p.workers[w].latency_ns[b]);
          }
        }
        latency_ns_.push_back(latest);
      }
    }
  }

  void AddCost(const PartyReport& party, uint64_t batches) {
    as_declared_ = as_declared_ && party.workers.size() == static_cast<size_t>(Teams(setup_));
    for (size_t w = 0; w < party.workers.size(); ++w) {
      const WorkerReport& report = party.workers[w];
      const DeclaredSends one = workload_.Declared(LanesOf(setup_, static_cast<int>(w)));
      const Cost declared = {one.cost.rounds * batches, one.cost.bytes_to_next * batches,
                             one.cost.bytes_to_prev * batches};
      const Cost counted = {report.rounds, report.bytes_to_next, report.bytes_to_prev};
      as_declared_ = as_declared_ && counted == declared &&
                     report.frames == one.frames * batches &&
                     report.bytes == declared.bytes_to_next + declared.bytes_to_prev +
                                         report.frames * kFrameHeaderSize;
      cost_ = cost_ + counted;
      frames_ += report.frames;
      bytes_ += report.bytes;
    }
  }

  const BenchSetup& setup_;
  const Workload& workload_;
  std::vector<double> lanes_per_s_, lanes_per_cpu_s_;
  std::vector<int64_t> latency_ns_;
  uint64_t batches_ = 0, faults_ = 0, frames_ = 0, bytes_ = 0;
  Cost cost_;
  bool as_declared_ = true;
};

// One setup's way through the parties.
class Measuring {
 public:
  Measuring(const BenchSetup& setup, const MeasureOptions& options, Parties& parties)
      : setup_(setup), options_(options), parties_(parties), workload_(WorkloadOf(setup)),
        lanes_(setup, *workload_), floor_(setup, *workload_),
        sample_(SampleOfLanes(setup.lanes, workload_->most_verified_lanes())) {}

  absl::StatusOr<Measurement> Run() {
    absl::Status s;
    if (options_.lanes) s = parties_.MakeKeys();
    if (s.ok() && options_.floor) s = WarmUp(Work::kFloor);
    if (s.ok() && options_.lanes) s = WarmUp(Work::kLanes);
    for (int run = 0; run < options_.runs && s.ok(); ++run) {
      if (options_.lanes) s = MeasureLanes(run == 0);
      if (s.ok() && options_.floor) s = MeasureFloor();
      batches_ = next_batches_;
    }
    if (!s.ok()) return s;
    found_.setup = setup_;
    if (options_.lanes) found_.lanes = lanes_.Finish();
    if (options_.floor) found_.floor = floor_.Finish();
    return found_;
  }

 private:
  // Buffers grow, connections open their windows; then batches_ is what fits into a run. The last
  // work that warms up decides: the protocol, if it runs.
  absl::Status WarmUp(Work work) {
    absl::Status s = Once(work, 1).status();
    uint32_t batches = 1;
    for (double wall = 0; s.ok() && wall < kCalibrationSeconds && batches < kMaxBatchesOfRun;
         batches *= 4) {
      absl::StatusOr<RunReport> run = Once(work, batches);
      s = run.status();
      if (!s.ok()) break;
      wall = WallSeconds(*run);
      batches_ = next_batches_ = Fitting(*run);
    }
    return s;
  }

  // How many batches fit into a run, to judge by the last one: the first batches are slow.
  uint32_t Fitting(const RunReport& run) const {
    const double batches = options_.seconds / options_.runs / (WallSeconds(run) / run.batches);
    return static_cast<uint32_t>(std::clamp(batches, 1.0, double{kMaxBatchesOfRun}));
  }

  absl::StatusOr<RunReport> Once(Work work, uint32_t batches) {
    if (work == Work::kLanes) lane_batches_ += batches;
    return parties_.Run(work, batches);
  }

  absl::Status MeasureLanes(bool first) {
    ASSIGN_OR_RETURN(RunReport run, Once(Work::kLanes, batches_));
    lanes_.Add(run);
    next_batches_ = Fitting(run);
    if (first) {
      RETURN_IF_ERROR(MeasureMemory());
    }
    ASSIGN_OR_RETURN(OutputShares shares, parties_.Outputs(sample_));
    found_.verified =
        (first || found_.verified) && SharesAreRight(*workload_, lane_batches_, sample_, shares);
    found_.verified_lanes = sample_.size();
    return absl::OkStatus();
  }

  absl::Status MeasureFloor() {
    ASSIGN_OR_RETURN(RunReport run, Once(Work::kFloor, batches_));
    floor_.Add(run);
    if (!options_.lanes) next_batches_ = Fitting(run);
    return absl::OkStatus();
  }

  absl::Status MeasureMemory() {
    absl::StatusOr<std::array<MemoryReport, kParties>> memory = parties_.Memory();
    if (!memory.ok()) return memory.status();
    for (const MemoryReport& m : *memory) {
      const double lanes = static_cast<double>(setup_.lanes);
      const double beyond = static_cast<double>(m.peak_bytes) - static_cast<double>(m.idle_bytes);
      const double keys = static_cast<double>(m.key_bytes);
      found_.memory_per_lane = std::max(found_.memory_per_lane, beyond / lanes);
      found_.memory_without_keys_per_lane =
          std::max(found_.memory_without_keys_per_lane, (beyond - keys) / lanes);
      found_.idle_bytes = std::max(found_.idle_bytes, m.idle_bytes);
    }
    return absl::OkStatus();
  }

  const BenchSetup& setup_;
  const MeasureOptions& options_;
  Parties& parties_;
  const std::unique_ptr<Workload> workload_;
  Gathered lanes_, floor_;
  const std::vector<size_t> sample_;
  Measurement found_;
  uint32_t batches_ = 1;       // of the run under way
  uint32_t next_batches_ = 1;  // of the next one
  uint32_t lane_batches_ = 0;   // the number of the last one: they count from 1 in each session
};

}  // namespace

Spread SpreadOf(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return {values.front(), 0.5 * (values[(n - 1) / 2] + values[n / 2]), values.back()};
}

absl::StatusOr<Measurement> Measure(const BenchSetup& setup, const MeasureOptions& options,
                                    Parties& parties) {
  return Measuring(setup, options, parties).Run();
}

}  // namespace mpckdc::bench
