// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/measure.h"

#include <algorithm>
#include <cmath>

#include "mpc-server/base/status_macros.h"
#include "mpc-server/bench/print.h"
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

ordered_json SpreadJson(const Spread& s) {
  return {{"min", s.min}, {"median", s.median}, {"max", s.max}};
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

  // Adds what the runs gave to `out`. Latencies: from a batch's start at a party to its outputs
  // there, the latest of the three parties.
  void Finish(ordered_json& out) {
    const std::string unit = UnitName(setup_.unit), per_s = unit + "s_per_s";
    const std::string per_cpu_s = unit + "s_per_cpu_s", per_party = "_per_" + unit + "_per_party";
    const Spread lanes_per_s = SpreadOf(lanes_per_s_), lanes_per_cpu_s = SpreadOf(lanes_per_cpu_s_);
    const double of_party = static_cast<double>(batches_) * kParties;
    const double of_lane = of_party * static_cast<double>(setup_.lanes);
    const uint64_t payload = cost_.bytes_to_next + cost_.bytes_to_prev;
    out["batches"] = batches_;
    out[per_s] = lanes_per_s.median;
    out[per_cpu_s] = lanes_per_cpu_s.median;
    out["cpu_ns" + per_party] = 1e9 / (kParties * lanes_per_cpu_s.median);
    out["bytes" + per_party] = static_cast<double>(bytes_) / of_lane;
    out["payload_bytes" + per_party] = static_cast<double>(payload) / of_lane;
    out["rounds"] = static_cast<double>(cost_.rounds) / (of_party * Teams(setup_));
    out["messages"] = static_cast<double>(frames_) / of_party;
    out["cost_as_declared"] = as_declared_;
    out["latency_ms"] = {{"p50", PercentileMs(latency_ns_, 0.5)},
                         {"p99", PercentileMs(latency_ns_, 0.99)},
                         {"max", PercentileMs(latency_ns_, 1)}};
    out["minor_faults_per_batch"] = static_cast<double>(faults_) / of_party;
    out["spread"] = {{per_s, SpreadJson(lanes_per_s)}, {per_cpu_s, SpreadJson(lanes_per_cpu_s)}};
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
      const DeclaredSends one = workload_.declared(LanesOf(setup_, static_cast<int>(w)));
      const Cost declared = {one.cost.rounds * batches, one.cost.bytes_to_next * batches,
                             one.cost.bytes_to_prev * batches};
      const Cost counted = {report.rounds, report.bytes_to_next, report.bytes_to_prev};
      const Cost proved = {report.proof_rounds, report.proof_to_next, report.proof_to_prev};
      as_declared_ = as_declared_ && counted == declared + proved &&
                     report.bytes == counted.bytes_to_next + counted.bytes_to_prev +
                                         report.frames * kFrameHeaderSize;
      // A proof's messages go one way or both ways: their number is not declared.
      as_declared_ = as_declared_ && (setup_.security == Security::kActive ||
                                      report.frames == one.frames * batches);
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
      : setup_(setup),
        options_(options),
        parties_(parties),
        workload_(WorkloadOf(setup)),
        sample_(SampleOfLanes(setup.lanes, workload_.most_verified_lanes)) {
    if (options.lanes) sides_.push_back({Work::kLanes, Gathered(setup, workload_)});
    if (options.floor) sides_.push_back({Work::kFloor, Gathered(setup, workload_)});
  }

  absl::StatusOr<ordered_json> Run() {
    if (options_.lanes) RETURN_IF_ERROR(parties_.MakeKeys());
    for (auto side = sides_.rbegin(); side != sides_.rend(); ++side) {
      RETURN_IF_ERROR(WarmUp(side->work));
    }
    for (int run = 0; run < options_.runs; ++run) {
      const uint32_t batches = batches_;
      for (Side& side : sides_) RETURN_IF_ERROR(MeasureOne(side, batches, run == 0));
    }
    ordered_json out = SetupJson(setup_);
    sides_[0].gathered.Finish(out);
    if (options_.lanes) out.update(verification_);
    if (sides_.size() == 2) {
      sides_[1].gathered.Finish(out["floor"]);
      const std::string per_cpu_s = UnitName(setup_.unit) + "s_per_cpu_s";
      out["ratio_to_floor"] = out[per_cpu_s].get<double>() / out["floor"][per_cpu_s].get<double>();
    }
    return out;
  }

 private:
  struct Side {
    Work work;
    Gathered gathered;
  };

  // Buffers grow, connections open their windows; then batches_ is what fits into a run. The last
  // work that warms up decides: the protocol, if it runs.
  absl::Status WarmUp(Work work) {
    RETURN_IF_ERROR(Once(work, 1).status());
    uint32_t batches = 1;
    for (double wall = 0; wall < kCalibrationSeconds && batches < kMaxBatchesOfRun; batches *= 4) {
      ASSIGN_OR_RETURN(RunReport run, Once(work, batches));
      wall = WallSeconds(run);
      batches_ = Fitting(run);
    }
    return absl::OkStatus();
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

  absl::Status MeasureOne(Side& side, uint32_t batches, bool first) {
    ASSIGN_OR_RETURN(RunReport run, Once(side.work, batches));
    side.gathered.Add(run);
    if (&side == &sides_[0]) batches_ = Fitting(run);
    if (side.work == Work::kFloor) return absl::OkStatus();
    if (first) {
      ASSIGN_OR_RETURN(const auto memory, parties_.Memory());
      verification_ = {{"verified", true}, {"memory", MemoryJson(memory)}};
    }
    ASSIGN_OR_RETURN(OutputShares shares, parties_.Outputs(sample_));
    const bool right = SharesAreRight(workload_, lane_batches_, sample_, shares);
    verification_["verified"] = right && verification_["verified"];
    verification_["verified_lanes"] = sample_.size();
    return absl::OkStatus();
  }

  // Bytes per lane and party, of the party that has most: the peak beyond the idle, connected
  // process, and the same less the keys and inputs, which are there anyway.
  ordered_json MemoryJson(const std::array<MemoryReport, kParties>& memory) const {
    double most = 0, most_without_keys = 0;
    uint64_t idle = 0;
    for (const MemoryReport& m : memory) {
      const double beyond = static_cast<double>(m.peak_bytes) - static_cast<double>(m.idle_bytes);
      most = std::max(most, beyond);
      most_without_keys = std::max(most_without_keys, beyond - static_cast<double>(m.key_bytes));
      idle = std::max(idle, m.idle_bytes);
    }
    const std::string per_lane = "bytes_per_" + UnitName(setup_.unit);
    const double lanes = static_cast<double>(setup_.lanes);
    return {{per_lane, most / lanes},
            {per_lane + "_without_keys", most_without_keys / lanes},
            {"idle_bytes", idle}};
  }

  const BenchSetup& setup_;
  const MeasureOptions& options_;
  Parties& parties_;
  const Workload workload_;
  const std::vector<size_t> sample_;
  std::vector<Side> sides_;    // the protocol first, if it runs
  ordered_json verification_;  // after every run of the protocol; memory until the first one's end
  uint32_t batches_ = 1;       // of the next run
  uint32_t lane_batches_ = 0;  // the number of the last one: they count from 1 in each session
};

}  // namespace

Spread SpreadOf(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return {values.front(), 0.5 * (values[(n - 1) / 2] + values[n / 2]), values.back()};
}

absl::StatusOr<ordered_json> Measure(const BenchSetup& setup, const MeasureOptions& options,
                                     Parties& parties) {
  return Measuring(setup, options, parties).Run();
}

}  // namespace mpckdc::bench
