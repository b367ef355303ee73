// SPDX-License-Identifier: Apache-2.0
//
// The three servers: a process each (the production JobEngine on a simulated disk, clock and link)
// that can be killed, paused and started again, and what survives it. Where parties have two
// machines each, these are one triple's, and their stores are databases that both triples share.
#ifndef MPC_SERVER_SIM_SERVERS_H_
#define MPC_SERVER_SIM_SERVERS_H_

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mpc-server/agree/epoch_duties.h"
#include "mpc-server/agree/job_engine.h"
#include "mpc-server/share/deviation.h"
#include "mpc-server/sim/disk.h"
#include "mpc-server/sim/journal.h"
#include "mpc-server/sim/network.h"
#include "mpc-server/testing/realm.h"

namespace mpckdc::sim {

// One process of a server; a restart makes another on the same disk.
struct Process {
  uint64_t incarnation = 0;
  std::shared_ptr<SimDisk> disk;
  std::unique_ptr<ShareStore> store;  // on that disk
  std::unique_ptr<SeededRandomForTest> random;
  std::unique_ptr<PeerLink> link;
  std::unique_ptr<SimExecutor> executor, long_executor;
  std::unique_ptr<EngineObserver> observer;
  std::unique_ptr<EpochDuties> duties;
  std::unique_ptr<JobEngine> engine;
  Fiber* keeper = nullptr;  // of the duties
  // Its engine was stopped in the midst of a step: it may hold a lock, and this is one thread.
  bool stands = false;
};

// One per party; they survive every machine.
using Databases = PerParty<std::shared_ptr<MemoryEngine>>;

class Servers {
 public:
  // Called at every named step of a living process; returns true when it killed it.
  using StepHook = std::function<bool(int party, const char* step)>;
  // An audit line of a server's process.
  using Audit = std::function<void(int party, const BatchJob& job)>;
  // A server's process says that another deviated.
  using Accusation = std::function<void(int party, Suspects suspects)>;

  Servers(Scheduler* scheduler, Network* network, Dice* dice, Journal* journal,
          const DiskControl& control, int triple = 0, const Databases& databases = {});
  ~Servers();

  // Before the first Start(): keys that are there from the beginning.
  void Enrol(const PerParty<KeyRecord>& records);
  void SetStepHook(StepHook hook);
  // Of processes that start from now on: they keep their share epochs, and nobody puts an old disk
  // back, which would be of an epoch that is over.
  void SetRefreshes(const EpochDutyOptions& options) { refreshes_ = options; }
  bool refreshes() const { return refreshes_.has_value(); }
  // Whether all three disks are in one share epoch.
  bool InOneEpoch();
  // And every machine that runs is where its disk is.
  bool AllFollowed();
  // The party's database refuses every change, whoever makes it.
  bool shared() const { return databases_[0] != nullptr; }
  void FailDatabase(int p, const absl::Status& status) { databases_[p]->FailWrites(status); }
  void SetProtocol(ProtocolSetting protocol) { protocol_ = protocol; }
  void SetAudit(Audit audit) { audit_ = std::move(audit); }
  void SetAccusation(Accusation accusation) { accusation_ = std::move(accusation); }

  void Start(int p);
  // The process stops here and now: the disk stays as it is, nothing it still does has an effect.
  void Kill(int p, const std::string& where);
  // SIGSTOP and SIGCONT.
  void Pause(int p, absl::Time until);
  void Continue(int p) { Pause(p, scheduler_->now()); }
  // What an administrator does at once where faults end, and otherwise half a second after a server
  // saw another one deviate.
  void EndQuarantine(int p);
  bool Up(int p) const { return machines_[p].process != nullptr; }
  // Kills, puts an earlier content of the disk back, and starts again.
  void KeepSnapshots();
  void RestoreOld(int p);
  // Of a server that is down or up: what a backup holds.
  struct Copy {
    MemoryEngine::State disk;
    std::string key_file;
  };
  Copy CopyOf(int p) const { return {DiskState(p), machines_[p].key_file}; }
  // Kills it; what is on its disk from now on.
  void PutBack(int p, const Copy& copy);
  void LoseDisk(int p);
  uint64_t network_lies() const { return network_->lies(); }
  int restored() const { return restored_; }  // the party that was, or -1: one in a run

  Process* process(int p) { return machines_[p].process.get(); }
  // How often servers were started. What only their memory held may be gone when it has changed.
  uint64_t starts() const;
  SimClock& clock(int p) { return *machines_[p].clock; }
  // What is on the disk now, whether the process runs or not: a store on a copy of it.
  std::unique_ptr<ShareStore> Disk(int p);

  // Runs `handle` with the process when it takes messages: now, when its pause ends, or never; in
  // order.
  using Handler = std::function<void(Process&)>;
  void Message(int p, Handler handle);

  // A step of this process that is not one of its channels' or disk's.
  bool Step(int p, uint64_t incarnation, const char* step);
  bool Alive(int p, uint64_t incarnation) const {
    return Up(p) && machines_[p].process->incarnation == incarnation;
  }
  // Fibers that have to end before the run does.
  int ending() const { return ending_; }

 private:
  struct Machine {
    std::unique_ptr<SimClock> clock;
    std::unique_ptr<Process> process;  // null: down
    MemoryEngine::State disk;           // while it is down
    std::string key_file;
    std::vector<MemoryEngine::State> snapshots;
    std::deque<Handler> inbox;  // came while the process was paused
    uint64_t incarnation = 0;
    bool started = false;  // the process is there, and what it does can be stopped
  };

  std::string Name(int p) const;
  MachineName DatabasesName(int p) const;
  void Readmit(int p, uint64_t incarnation);
  void StartKeeper(int p);
  void PauseThreads(const Process& process, absl::Time until);
  MemoryEngine::State DiskState(int p) const;
  std::unique_ptr<ShareStore> OpenStore(int p, std::shared_ptr<KvEngine> disk,
                                        const StoreKeys::Saver& saver = nullptr);
  absl::Status SaveKeyFile(int p, uint64_t incarnation, absl::Span<const uint8_t> text);
  void TakeMessages(int p);

  Scheduler* const scheduler_;
  Network* const network_;
  Dice* const dice_;
  Journal* const journal_;
  const DiskControl control_;
  const int triple_;
  const Databases databases_;  // null: each machine has a disk of its own
  SeededRandomForTest seal_nonces_;
  PerParty<Machine> machines_;
  std::vector<std::unique_ptr<Process>> dead_;
  StepHook hook_;
  ProtocolSetting protocol_ = ProtocolSetting::kAuto;
  std::optional<EpochDutyOptions> refreshes_;
  Audit audit_;
  Accusation accusation_;
  int restored_ = -1;
  int ending_ = 0;
};

}  // namespace mpckdc::sim

#endif  // MPC_SERVER_SIM_SERVERS_H_
