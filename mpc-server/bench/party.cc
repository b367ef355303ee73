// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/party.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "mpc-server/base/status_macros.h"
#include "mpc-server/proof/batch_verifier.h"
#include "mpc-server/testing/plain_link.h"

namespace mpckdc::bench {
namespace {

constexpr absl::Duration kOpenTimeout = absl::Seconds(20);
constexpr absl::Duration kConnectTimeout = absl::Seconds(30);
constexpr int64_t kMaxBatches = 1 << 24;  // a latency is kept of each

// CLOCK_MONOTONIC: the same in all processes of a machine.
int64_t MonotonicNs() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

int64_t CpuNs(const rusage& u) {
  return absl::ToInt64Nanoseconds(absl::DurationFromTimeval(u.ru_utime) +
                                  absl::DurationFromTimeval(u.ru_stime));
}
rusage UsageOfProcess() {
  rusage u = {};
  getrusage(RUSAGE_SELF, &u);
  return u;
}

// "VmRSS:", or "VmHWM:", the peak. Not ru_maxrss, which survives exec() and would tell the
// parent's.
uint64_t ResidentBytes(absl::string_view field) {
  std::ifstream file("/proc/self/status");
  uint64_t kib = 0;
  for (std::string word; file >> word;) {
    if (word == field) file >> kib;
  }
  return kib << 10;
}
// Where the kernel does not allow it, the peak counts from the process's start.
void ResetResidentPeak() { std::ofstream("/proc/self/clear_refs") << "5"; }

absl::StatusOr<RingsOfParty> Shared(
    absl::StatusOr<std::vector<std::unique_ptr<PeerChannel>>> channels) {
  if (!channels.ok()) return channels.status();
  return RingsOfParty(std::make_move_iterator(channels->begin()),
                      std::make_move_iterator(channels->end()));
}

}  // namespace

absl::Status AllAtOnce(size_t n, const std::function<absl::Status(size_t)>& f) {
  std::vector<absl::Status> statuses(n);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < n; ++i) threads.emplace_back([&, i] { statuses[i] = f(i); });
  for (std::thread& t : threads) t.join();
  absl::Status first;
  for (const absl::Status& s : statuses) first.Update(s);
  return first;
}

absl::StatusOr<RingsOfParty> ConnectRings(Channel channel, const TlsPeerOptions& peers) {
  const absl::Time deadline = SystemClock().Now() + kConnectTimeout;
  if (channel == Channel::kTcp) return Shared(ConnectPlain(peers, deadline));
  TlsPeerOptions options = peers;
  options.records = channel == Channel::kAead ? PeerRecords::kAead : PeerRecords::kTls;
  ASSIGN_OR_RETURN(std::unique_ptr<TlsPeerConnector> connector, TlsPeerConnector::Create(options));
  return Shared(connector->ConnectAll(deadline));
}

// The lanes that fell to a team (setup.h), its channels and sessions. Each task is done on one
// thread, the first touch of its memory too; further rings have threads of their own.
class Party::Team {
 public:
  Team(const BenchSetup& setup, int party, int number, RingsOfParty channels)
      : setup_(setup), party_(party), number_(number), channels_(std::move(channels)) {}

  absl::Status Open(absl::Duration round_timeout) {
    SessionOptions options;
    options.party = party_;
    options.realm = "BENCH";
    options.cluster = static_cast<uint16_t>(number_);
    options.rings = static_cast<uint8_t>(channels_.size());
    options.randomness = setup_.randomness;
    options.security = setup_.security;
    options.round_timeout = round_timeout;
    for (const std::shared_ptr<PeerChannel>& channel : channels_) {
      options.ring = static_cast<uint8_t>(lanes_.sessions.size());
      ASSIGN_OR_RETURN(auto session, OpenSession(options, *channel, SystemClock(), SystemRandom(),
                                                 SystemClock().Now() + kOpenTimeout));
      SessionOptions floor = options;
      floor.randomness = Randomness::kKeyed;
      floor.security = Security::kSemiHonest;
      floor_.sessions.push_back(std::make_unique<PartyContext>(
          floor, *channel, SystemClock(), session->session(), PairwiseSeeds{}));
      if (setup_.security == Security::kActive) {
        verifiers_.push_back(
            std::make_unique<proof::BatchVerifier>(*session, SystemRandom(), setup_.isa));
      }
      lanes_.sessions.push_back(std::move(session));
    }
    for (Side* side : {&lanes_, &floor_}) {
      std::vector<PartyContext*> rings;
      for (const auto& session : side->sessions) rings.push_back(session.get());
      side->rings = std::make_unique<Rings>(std::move(rings));
    }
    if (setup_.unit == Unit::kBlock) floor_.work = MakeFloor(setup_, LanesOf(setup_, number_));
    return absl::OkStatus();
  }

  void MakeKeys(const Workload& workload) {
    lanes_.work = workload.make_team(party_, FirstLane(setup_, number_), LanesOf(setup_, number_));
  }

  absl::Status Run(Work work, uint32_t batches) {
    Side& side = work == Work::kLanes ? lanes_ : floor_;
    if (side.work == nullptr) return absl::FailedPreconditionError("nothing to run: no keys yet");
    std::vector<int64_t> latency_ns;
    latency_ns.reserve(batches);
    Cost cost;
    const ChannelCounters before = Sent();
    const std::vector<Cost> proofs = ProofsOfRings();
    for (uint32_t n = 0; n < batches; ++n) {
      const int64_t begin = MonotonicNs();
      RETURN_IF_ERROR(side.work->Run(*side.rings, ++side.batch, &cost));
      latency_ns.push_back(MonotonicNs() - begin);
    }
    const ChannelCounters after = Sent();
    Cost proved;  // rings prove at the same time
    const std::vector<Cost> proofs_after = ProofsOfRings();
    for (size_t r = 0; r < proofs.size(); ++r) {
      proved = Together(proved, {proofs_after[r].rounds - proofs[r].rounds,
                                 proofs_after[r].bytes_to_next - proofs[r].bytes_to_next,
                                 proofs_after[r].bytes_to_prev - proofs[r].bytes_to_prev});
    }
    report_ = {std::move(latency_ns),
               cost.rounds,
               cost.bytes_to_next,
               cost.bytes_to_prev,
               proved.rounds,
               proved.bytes_to_next,
               proved.bytes_to_prev,
               after.frames_sent - before.frames_sent,
               after.bytes_sent - before.bytes_sent};
    return absl::OkStatus();
  }

  const WorkerReport& report() const { return report_; }
  const TeamWork* work() const { return lanes_.work.get(); }  // null without keys

 private:
  // What one kind of Work needs.
  struct Side {
    std::vector<std::unique_ptr<PartyContext>> sessions;
    std::unique_ptr<Rings> rings;
    std::unique_ptr<TeamWork> work;
    uint32_t batch = 0;
  };

  ChannelCounters Sent() const {
    ChannelCounters sum;
    for (const std::shared_ptr<PeerChannel>& channel : channels_) {
      const ChannelCounters c = channel->Counters();
      sum.frames_sent += c.frames_sent;
      sum.bytes_sent += c.bytes_sent;
    }
    return sum;
  }

  std::vector<Cost> ProofsOfRings() const {
    std::vector<Cost> all;
    for (const auto& verifier : verifiers_) all.push_back(verifier->declared());
    return all;
  }

  const BenchSetup setup_;
  const int party_, number_;
  const RingsOfParty channels_;
  Side lanes_, floor_;
  std::vector<std::unique_ptr<proof::BatchVerifier>> verifiers_;  // before the sessions they are of
  WorkerReport report_;
};

Party::Party(const BenchSetup& setup, int sharers)
    : setup_(setup), sharers_(sharers), workload_(WorkloadOf(setup)) {}
Party::~Party() = default;

absl::StatusOr<std::unique_ptr<Party>> Party::Open(const BenchSetup& setup, int party,
                                                   RingsOfParty rings,
                                                   absl::Duration round_timeout, int sharers) {
  std::unique_ptr<Party> p(new Party(setup, sharers));
  const ptrdiff_t each = RingsOfTeam(setup);
  for (int team = 0; team < Teams(setup); ++team) {
    const auto first = rings.begin() + team * each;
    p->teams_.push_back(
        std::make_unique<Team>(setup, party, team, RingsOfParty(first, first + each)));
  }
  RETURN_IF_ERROR(
      AllAtOnce(p->teams_.size(), [&](size_t t) { return p->teams_[t]->Open(round_timeout); }));
  ResetResidentPeak();
  p->idle_bytes_ = ResidentBytes("VmRSS:");
  return p;
}

absl::StatusOr<json> Party::Answer(const json& command) try {
  const std::string what = command.value("do", "");
  if (what == "run") return Run(command);
  if (what == "outputs") return Outputs(command);
  if (what == "keys") {
    absl::Status s = AllAtOnce(teams_.size(), [this](size_t t) {
      return teams_[t]->MakeKeys(workload_), absl::OkStatus();
    });
    return s.ok() ? absl::StatusOr<json>(json::object()) : s;
  }
  if (what == "memory") {
    const auto sharers = static_cast<uint64_t>(sharers_);
    MemoryReport memory = {idle_bytes_ / sharers, ResidentBytes("VmHWM:") / sharers, 0};
    for (const auto& team : teams_) {
      if (team->work() != nullptr) memory.key_bytes += team->work()->key_bytes();
    }
    return json(memory);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"do\" is \"", what, "\", not keys, run, outputs or memory"));
} catch (const json::exception& e) {
  return absl::InvalidArgumentError(absl::StrCat("a field is of another kind: ", e.what()));
}

absl::StatusOr<json> Party::Run(const json& command) {
  const std::string name = command.value("work", "");
  const int64_t batches = command.value("batches", int64_t{-1});
  const auto work = std::find_if(kWorks.begin(), kWorks.end(),
                                 [&](const auto& w) { return w.first == name; });
  if (work == kWorks.end() || batches < 0 || batches > kMaxBatches) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"work\" is not aes or floor, or \"batches\" not from 0 to ", kMaxBatches));
  }
  PartyReport report;
  const rusage before = UsageOfProcess();
  report.start_ns = MonotonicNs();
  RETURN_IF_ERROR(AllAtOnce(teams_.size(), [&](size_t t) {
    return teams_[t]->Run(work->second, static_cast<uint32_t>(batches));
  }));
  report.end_ns = MonotonicNs();
  const rusage after = UsageOfProcess();
  report.cpu_ns = (CpuNs(after) - CpuNs(before)) / sharers_;
  report.minor_faults = static_cast<uint64_t>((after.ru_minflt - before.ru_minflt) / sharers_);
  for (const auto& team : teams_) report.workers.push_back(team->report());
  return json(report);
}

absl::StatusOr<json> Party::Outputs(const json& command) const {
  ASSIGN_OR_RETURN(const auto lanes, Read<std::vector<size_t>>(command.value("lanes", json())));
  const size_t each = workload_.outputs_per_lane;
  OutputsReport report;
  for (size_t lane : lanes) {
    int t = 0;
    while (t + 1 < Teams(setup_) && lane >= FirstLane(setup_, t + 1)) ++t;
    const TeamWork* work = teams_[static_cast<size_t>(t)]->work();
    const auto outputs = work == nullptr ? absl::Span<const SharedBlock>() : work->outputs();
    const size_t at = (lane - FirstLane(setup_, t)) * each;
    if (at >= outputs.size()) {
      return absl::OutOfRangeError(absl::StrCat("there is no output of lane ", lane));
    }
    report.shares.insert(report.shares.end(), &outputs[at], &outputs[at] + each);
  }
  return json(report);
}

// ---- The process ----

namespace {

absl::StatusOr<std::unique_ptr<Party>> Connect(const Options& o) {
  const BenchSetup& setup = o.setups.front();
  TlsPeerOptions peer = o.peer;
  peer.realm = "TEST";
  peer.rings = setup.workers;
  ASSIGN_OR_RETURN(RingsOfParty rings, ConnectRings(setup.channel, peer));
  return Party::Open(setup, peer.party, std::move(rings), absl::Seconds(o.round_timeout_s), 1);
}

}  // namespace

int RunParty(const Options& options, std::istream& in, std::ostream& out) {
  const auto fail = [&out](const absl::Status& s) {
    out << json::object({{"error", s.ToString()}}).dump() << std::endl;
    return 1;
  };
  absl::StatusOr<std::unique_ptr<Party>> party = Connect(options);
  if (!party.ok()) return fail(party.status());
  out << json::object({{"ready", true}}).dump() << std::endl;
  std::string line;
  while (std::getline(in, line)) {
    absl::StatusOr<json> command = ParseMessage(line);
    absl::StatusOr<json> answer = command.ok() ? (*party)->Answer(*command) : command.status();
    if (!answer.ok()) return fail(answer.status());
    out << answer->dump() << std::endl;
  }
  return 0;
}

}  // namespace mpckdc::bench
