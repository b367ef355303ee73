// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/sim/servers.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/testing/records.h"
#include "mpc-server/testing/tested_security.h"

namespace mpckdc::sim {
namespace {

constexpr char kRealm[] = "EXAMPLE.COM";
constexpr uint16_t kCluster = 7;
constexpr size_t kSnapshots = 6;
constexpr size_t kCacheBytes = 1 << 20;
constexpr size_t kLineTrialBytes = 256;  // seeds open thousands of sessions
constexpr absl::Duration kLongestRest = absl::Seconds(1);  // of a keeper: runs are short
constexpr absl::Duration kUntilReadmitted = absl::Milliseconds(500);

class AuditObserver : public EngineObserver {
 public:
  AuditObserver(std::string name, Journal* journal, std::function<void(const BatchReport&)> report,
                std::function<void(const DeviationReport&)> accused)
      : name_(std::move(name)),
        journal_(journal),
        report_(std::move(report)),
        accused_(std::move(accused)) {}
  void OnBatch(const BatchReport& report) override { report_(report); }
  void OnDegraded(const std::string& reason) override {
    journal_->Log(absl::StrCat(name_, reason.empty() ? " seals again" : ": ", reason));
  }
  void OnPeers(bool connected, const std::string& detail) override {
    journal_->Log(absl::StrCat(name_, connected ? " is connected" : ": ", detail));
  }
  void OnEpoch(const EpochState& state) override {
    journal_->Log(absl::StrCat(name_, " is in share epoch ", state.epoch));
  }
  void OnDeviation(const DeviationReport& report) override {
    journal_->Log(absl::StrCat(name_, " is quarantined: ", report.text));
    accused_(report);
  }

 private:
  const std::string name_;
  Journal* const journal_;
  const std::function<void(const BatchReport&)> report_;
  const std::function<void(const DeviationReport&)> accused_;
};

}  // namespace

Servers::Servers(Scheduler* scheduler, Network* network, Dice* dice, Journal* journal,
                 const DiskControl& control, int triple, const Databases& databases)
    : scheduler_(scheduler),
      network_(network),
      dice_(dice),
      journal_(journal),
      control_(control),
      triple_(triple),
      databases_(databases),
      seal_nonces_(static_cast<uint64_t>(1 + triple)) {
  for (int p = 0; p < kParties; ++p) {
    machines_[p].clock = std::make_unique<SimClock>(scheduler_);
    machines_[p].disk = MemoryEngine().Snapshot();
    machines_[p].key_file = absl::StrCat("1 ", std::string(64, '5'));
  }
}

Servers::~Servers() = default;

std::string Servers::Name(int p) const {
  return absl::StrCat("server ", p, triple_ == 0 ? "" : absl::StrCat(" of triple ", triple_));
}

MachineName Servers::DatabasesName(int p) const {
  return {static_cast<uint8_t>(1 + p), static_cast<uint8_t>(1 + triple_)};
}

void Servers::Enrol(const PerParty<KeyRecord>& records) {
  for (int p = 0; p < kParties; ++p) {
    auto disk = shared() ? databases_[p] : std::make_shared<MemoryEngine>(machines_[p].disk);
    const std::unique_ptr<ShareStore> store = OpenStore(p, disk);
    absl::Status s = mpckdc::Enrol(*store, records[p], machines_[p].clock->Now());
    if (s.ok()) s = store->MarkInitialised().status();
    if (!s.ok()) journal_->Violation(absl::StrCat("the first keys: ", s.message()));
    machines_[p].disk = disk->Snapshot();
  }
}

std::unique_ptr<ShareStore> Servers::OpenStore(int p, std::shared_ptr<KvEngine> disk,
                                               const StoreKeys::Saver& saver) {
  absl::StatusOr<StoreKeys> keys =
      StoreKeys::Parse(AsBytes(machines_[p].key_file), absl::StrCat("key file ", p));
  if (!keys.ok()) abort();
  keys->SetSaver(saver);
  absl::StatusOr<std::unique_ptr<ShareStore>> store =
      ShareStore::Open(std::move(disk), {{kRealm, p, kCluster},
                                         *std::move(keys),
                                         &seal_nonces_,
                                         shared() ? kCacheBytes : 0,
                                         triple_});
  if (!store.ok()) {
    std::fprintf(stderr, "%s: %s\n", Name(p).c_str(), store.status().ToString().c_str());
    abort();
  }
  return *std::move(store);
}

void Servers::SetStepHook(StepHook hook) {
  hook_ = std::move(hook);
  network_->SetStepHook(hook_);
}

bool Servers::Step(int p, uint64_t incarnation, const char* step) {
  return !Alive(p, incarnation) || (hook_ && hook_(p, step));
}

void Servers::Start(int p) {
  Machine& machine = machines_[p];
  if (machine.process != nullptr) return;
  auto process = std::make_unique<Process>();
  const uint64_t incarnation = process->incarnation = ++machine.incarnation;
  machine.started = false;
  process->disk = shared() ? std::make_shared<SimDisk>(databases_[p], DatabasesName(p), dice_)
                           : std::make_shared<SimDisk>(std::move(machine.disk), dice_, control_);
  process->store =
      OpenStore(p, process->disk, [this, p, incarnation](absl::Span<const uint8_t> text) {
        return SaveKeyFile(p, incarnation, text);
      });
  process->disk->SetStepHook(
      [this, p, incarnation](const char* step) { return Step(p, incarnation, step); });
  process->random = std::make_unique<SeededRandomForTest>(dice_->Below(1ull << 60));
  process->executor = std::make_unique<SimExecutor>(scheduler_, machine.clock.get());
  process->long_executor = std::make_unique<SimExecutor>(scheduler_, machine.clock.get());
  process->link = network_->Link(p, machine.clock.get(), process->executor.get());
  process->observer = std::make_unique<AuditObserver>(
      Name(p), journal_,
      [this, p, incarnation](const BatchReport& r) {
        if (!Alive(p, incarnation)) return;
        for (const BatchJob& job : r.jobs) {
          if (audit_) audit_(p, job);
        }
        const auto suspects = SuspectsOf(r.status);
        if (suspects.has_value() && accusation_) accusation_(p, *suspects);
      },
      [this, p, incarnation](const DeviationReport& report) {
        journal_->Log(absl::StrCat(Name(p), " accuses: ", report.text));
        Readmit(p, incarnation);
      });
  EngineOptions options;
  options.security = TestedSecurity();
  options.protocol = protocol_;
  options.line_trial_bytes = kLineTrialBytes;
  process->engine =
      MakeJobEngine(options, {process->store.get(), machine.clock.get(), process->random.get(),
                              process->link.get(), process->executor.get(),
                              process->long_executor.get(), process->observer.get()});
  machine.process = std::move(process);
  machine.started = true;
  if (refreshes_.has_value()) StartKeeper(p);
  const absl::Status started = machine.process->engine->Start();
  if (!started.ok()) {
    journal_->Violation(absl::StrCat(Name(p), " does not start: ", started.message()));
  }
  journal_->Log(absl::StrCat(Name(p), " starts"));
  if (Up(p) && machines_[p].process->engine->Status().quarantine.has_value())
    Readmit(p, incarnation);
}

// As service/epoch_keeper.cc, on a fiber.
void Servers::StartKeeper(int p) {
  Process* const process = machines_[p].process.get();
  const uint64_t incarnation = process->incarnation;
  process->duties = std::make_unique<EpochDuties>(
      process->store.get(), process->engine.get(), machines_[p].clock.get(), *refreshes_,
      [this, p](const EpochState& state, const EpochProgress& done) {
        journal_->Count("refreshes that ended on a server");
        if (done.damaged > 0) {
          journal_->Violation(absl::StrCat(Name(p), " has ", done.damaged,
                                           " damaged records in epoch ", state.epoch));
        }
        return absl::OkStatus();
      },
      [this, p](const std::string& trouble) {
        journal_->Log(absl::StrCat(Name(p), ": ", trouble));
      });
  ++ending_;
  process->keeper = scheduler_->Spawn("keeper", [this, p, incarnation, process] {
    while (Alive(p, incarnation)) {
      const absl::Duration rest = process->stands ? absl::ZeroDuration() : process->duties->Step();
      const absl::Duration least = dice_->Between(absl::Milliseconds(5), absl::Milliseconds(50));
      scheduler_->Sleep(std::clamp(rest, least, kLongestRest));
    }
    --ending_;
  });
}

// Replaced as a whole, or not at all. While the process starts nothing can happen to it.
absl::Status Servers::SaveKeyFile(int p, uint64_t incarnation, absl::Span<const uint8_t> text) {
  const bool commits = Alive(p, incarnation) && machines_[p].process->disk->committing();
  const bool runs = (machines_[p].incarnation != incarnation || machines_[p].started) && !commits;
  if (runs && Step(p, incarnation, "key file: write")) return absl::UnavailableError("killed");
  machines_[p].key_file = std::string(AsText(text));
  if (runs && Step(p, incarnation, "key file: written")) return absl::UnavailableError("killed");
  return absl::OkStatus();
}

bool Servers::InOneEpoch() {
  if (!refreshes()) return true;
  const EpochState first = Disk(0)->Epoch();
  for (int p = 1; p < kParties; ++p) {
    const EpochState other = Disk(p)->Epoch();
    if (other.epoch != first.epoch || other.began_by != first.began_by) return false;
  }
  return true;
}

bool Servers::AllFollowed() {
  if (!InOneEpoch()) return false;
  if (!shared()) return true;
  const uint64_t epoch = Disk(0)->Epoch().epoch;
  return std::all_of(machines_.begin(), machines_.end(), [epoch](const Machine& machine) {
    return machine.process == nullptr || machine.process->store->Epoch().epoch == epoch;
  });
}

void Servers::EndQuarantine(int p) {
  if (!Up(p) || !machines_[p].process->engine->Status().quarantine.has_value()) return;
  const absl::Status s = machines_[p].process->engine->Readmit().status();
  if (!s.ok()) journal_->Log(absl::StrCat(Name(p), " cannot be readmitted: ", s.message()));
}

// An administrator who is quick about it.
void Servers::Readmit(int p, uint64_t incarnation) {
  ++ending_;
  scheduler_->Spawn("readmit", [this, p, incarnation] {
    do {
      scheduler_->Sleep(kUntilReadmitted);
    } while (Alive(p, incarnation) && !machines_[p].process->engine->Readmit().ok());
    --ending_;
  });
}

uint64_t Servers::starts() const {
  uint64_t sum = 0;
  for (const Machine& machine : machines_) sum += machine.incarnation;
  return sum;
}

void Servers::Kill(int p, const std::string& where) {
  Machine& machine = machines_[p];
  if (machine.process == nullptr) return;
  journal_->Log(absl::StrCat(Name(p), " is killed at ", where));
  machine.process->disk->Die();
  if (!shared()) machine.disk = machine.process->disk->AfterCrash();
  machine.inbox.clear();
  network_->Kill(p);
  PauseThreads(*machine.process, scheduler_->now());
  Process* const process = machine.process.get();
  dead_.push_back(std::move(machine.process));
  ++ending_;
  scheduler_->Spawn("reaper", [this, process] {
    process->engine->Stop();
    --ending_;
  });
}

void Servers::PauseThreads(const Process& process, absl::Time until) {
  scheduler_->Pause(process.executor->fiber(), until);
  scheduler_->Pause(process.long_executor->fiber(), until);
  if (process.keeper != nullptr) scheduler_->Pause(process.keeper, until);
}

void Servers::Pause(int p, absl::Time until) {
  if (!Up(p)) return;
  PauseThreads(*machines_[p].process, until);
  scheduler_->At(until, [this, p] { TakeMessages(p); });
}

MemoryEngine::State Servers::DiskState(int p) const {
  if (shared()) return databases_[p]->Snapshot();
  const Machine& machine = machines_[p];
  return machine.process != nullptr ? machine.process->disk->Snapshot() : machine.disk;
}

std::unique_ptr<ShareStore> Servers::Disk(int p) {
  std::shared_ptr<KvEngine> copy = std::make_shared<MemoryEngine>(DiskState(p));
  if (shared()) {
    copy = std::make_shared<SharedMemoryEngine>(std::make_shared<MemoryEngine>(DiskState(p)),
                                                DatabasesName(p));
  }
  return OpenStore(p, std::move(copy));
}

void Servers::KeepSnapshots() {
  for (int p = 0; p < kParties; ++p) {
    std::vector<MemoryEngine::State>& kept = machines_[p].snapshots;
    if (kept.size() == kSnapshots) kept.erase(kept.begin() + 1);  // the first one stays
    kept.push_back(DiskState(p));
  }
}

void Servers::RestoreOld(int p) {
  Machine& machine = machines_[p];
  if (machine.snapshots.empty()) return;
  restored_ = p;
  Kill(p, "a restore of its disk");
  machine.disk = machine.snapshots[dice_->Below(machine.snapshots.size())];
  Start(p);
}

void Servers::PutBack(int p, const Copy& copy) {
  Kill(p, "another disk");
  machines_[p].disk = copy.disk;
  machines_[p].key_file = copy.key_file;
}

void Servers::LoseDisk(int p) {
  PutBack(p, {MemoryEngine().Snapshot(), absl::StrCat("1 ", std::string(64, '6'))});
}

void Servers::Message(int p, Handler handle) {
  if (!Up(p)) return;
  machines_[p].inbox.push_back(std::move(handle));
  TakeMessages(p);
}

void Servers::TakeMessages(int p) {
  Machine& machine = machines_[p];
  while (Up(p) && !machine.inbox.empty()) {
    const absl::Time until = scheduler_->PausedUntil(machine.process->executor->fiber());
    if (until > scheduler_->now()) {
      return scheduler_->At(until, [this, p] { TakeMessages(p); });
    }
    if (machine.process->stands) {
      return scheduler_->At(scheduler_->now() + absl::Milliseconds(1),
                            [this, p] { TakeMessages(p); });
    }
    const Handler handle = std::move(machine.inbox.front());
    machine.inbox.pop_front();
    handle(*machine.process);
  }
}

}  // namespace mpckdc::sim
