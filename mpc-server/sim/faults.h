// SPDX-License-Identifier: Apache-2.0
//
// What goes wrong: each kind of fault at random moments and, armed for a server and a named step,
// at that step.
//
// So that what is asserted can hold: one clock is wrong at a time, one server's disk is put back in
// a run, and one server of the three, drawn for each run, keeps its clock and its disk
// (doc/simulation.md says what more would cost).
#ifndef MPC_SERVER_SIM_FAULTS_H_
#define MPC_SERVER_SIM_FAULTS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "mpc-server/sim/administrator.h"
#include "mpc-server/sim/invariants.h"
#include "mpc-server/sim/kdc.h"
#include "mpc-server/sim/network.h"
#include "mpc-server/sim/servers.h"

namespace mpckdc::sim {

enum class FaultKind {
  kKill,
  kPause,
  kCut,
  kPartition,
  kOneWay,
  kSlow,
  kReorder,
  kDuplicate,
  kFlipControl,
  kBadRecord,
  kTruncate,
  kOldDisk,
  kClockJump,
  kCertificate,
  kDiskFull,
  kUncertainWrite,
  kClient,
};
inline constexpr int kFaultKinds = static_cast<int>(FaultKind::kClient) + 1;
const char* FaultName(FaultKind kind);

// All named steps that a server can come by; a test asserts that runs reach each of them.
std::vector<std::string> NamedSteps();
// Those of a refresh on a server's disk, and its key file.
std::vector<std::string> RefreshSteps();

class Injector {
 public:
  struct Parts {
    Scheduler* scheduler;
    Dice* dice;
    Journal* journal;
    Network* network;
    Servers* servers;
    Invariants* invariants;
    Kdc* kdc;
    Administrator* administrator;
    int triple = 0;
  };
  explicit Injector(const Parts& parts);
  // Of another triple: the same party keeps its clocks.
  Injector(const Parts& parts, const Injector& first) : parts_(parts), steady_(first.steady_) {}

  // Faults for `faulty`, then none. `flip_rounds`: the control in which round frames are altered
  // and TLS does not notice.
  void Run(absl::Duration faulty, bool flip_rounds);
  // In their place lies of one server: it alters a message now and then. Then none.
  void RunLies(absl::Duration faulty, Liar* liar);
  // Most faults that are armed for a step are armed for one of these, in the midst of what it does
  // again and again, `times` of them in what is aimed at; and every other one kills, stops or cuts.
  void AimAt(std::vector<std::string> steps, uint64_t times) {
    aims_ = std::move(steps);
    aim_times_ = times;
  }
  // Everything runs, is connected and on time again.
  void Heal();
  // The step hook of Servers.
  bool AtStep(int p, const char* step);
  // Counts of steps, for the outcome.
  void Report();

 private:
  struct Armed {
    int party;
    std::string step;
    FaultKind kind;
    uint64_t skip = 0;  // so many times the server comes by unharmed first
  };
  struct Seen {
    std::string name;
    uint64_t count = 0;
    bool hmac = false;  // a round of an HMAC under a key of 17 to 20
  };

  void InjectOne();
  Lie DrawLie();
  void Arm(FaultKind kind);
  void ArmAtAim(int p, FaultKind kind);
  // True: the process of `p` is gone.
  bool Apply(FaultKind kind, int p, const std::string& step);
  void ApplyToNetwork(FaultKind kind, int from, int to);
  bool Pause(int p);
  void FailDisk(int p, DiskFault fault);
  void JumpClock(int p);
  void BlockClient();
  int Neighbour(int p) { return parts_.dice->Chance(0.5) ? NextParty(p) : PrevParty(p); }

  const Parts parts_;
  const int steady_;  // keeps its clock and its disk
  int wrong_clock_ = -1;
  absl::Time last_hmac_ = absl::InfinitePast();
  std::vector<Armed> armed_;
  std::vector<Seen> steps_;
  std::vector<std::string> aims_;
  uint64_t aim_times_ = 1;
  absl::flat_hash_map<const void*, size_t> by_address_;  // of the step's literal, into steps_
};

}  // namespace mpckdc::sim

#endif  // MPC_SERVER_SIM_FAULTS_H_
