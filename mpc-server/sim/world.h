// SPDX-License-Identifier: Apache-2.0
//
// One run: three servers, a KDC and an administrator in one process under simulated time, with
// faults from a seed. A run is a function of its options. doc/simulation.md says what is modelled;
// invariants.h and kdc.cc what is asserted.
#ifndef MPC_SERVER_SIM_WORLD_H_
#define MPC_SERVER_SIM_WORLD_H_

#include <cstdint>
#include <memory>

#include "mpc-server/sim/administrator.h"
#include "mpc-server/sim/faults.h"
#include "mpc-server/sim/invariants.h"
#include "mpc-server/sim/kdc.h"
#include "mpc-server/sim/network.h"
#include "mpc-server/sim/servers.h"

namespace mpckdc::sim {

// Each takes away something that production has. The invariant that it protects must break.
struct Controls {
  DiskControl disk = {};
  bool all_restart = false;      // all three servers restart often, clocks set back by 10 s
  bool flip_rounds = false;      // round frames are altered and TLS does not notice
  bool other_password = false;   // what users type is wrong where it should be right and vice versa
  bool never_heal = false;       // one server stays down
  bool lose_audit = false;       // one server's audit lines go astray
  bool other_text = false;       // one server gets another share of a reply's text
  bool collects_at_once = false;  // deleted keys have no grace time
};

// Instead of faults of machines and networks: one server, drawn by the seed, lies.
enum class Lying { kNobody, kOneServer };

struct WorldOptions {
  uint64_t seed = 1;
  absl::Duration faulty = absl::Seconds(8);  // faults happen
  absl::Duration quiet = absl::Seconds(6);   // and then none
  absl::Duration recovery = absl::Seconds(5);
  Controls controls = {};
  Lying lying = Lying::kNobody;
};

// Whether everything is garbled in the run of this seed; with each party as a liar.
constexpr bool GarblesAll(uint64_t seed) { return seed % 5 == 4; }
// Whether the shares are refreshed now and then; not where one lies, or a control takes something
// away.
bool Refreshes(const WorldOptions& options);

// Whether each party has two machines on one database, in two triples. Not where one lies, or a
// control takes something away.
bool HasTwoTriples(const WorldOptions& options);

class World {
 public:
  explicit World(const WorldOptions& options);
  ~World();

  Outcome Run();
  uint64_t frames() const;

 private:
  PlainKey AddKey(const std::string& principal, KeyClass key_class, int32_t enctype, Gate gate);
  void ChooseProtocol();
  void Director();
  void RestartAll();
  void InjectFaults();
  struct Second;
  void AddSecond();
  bool NobodyRuns() const;

  const WorldOptions options_;
  Scheduler scheduler_;
  Dice dice_;
  Journal journal_;
  Liar liar_;  // of a lying server; outlives its connections
  Network network_;
  const Databases databases_;  // null: each server has a disk of its own
  Servers servers_;
  Invariants invariants_;
  Kdc kdc_;
  Administrator administrator_;
  Injector injector_;
  std::unique_ptr<Second> second_;  // the other triple, if there is one
  bool done_ = false;
};

}  // namespace mpckdc::sim

#endif  // MPC_SERVER_SIM_WORLD_H_
