// SPDX-License-Identifier: Apache-2.0
//
// The administrator: enrols given keys and drawn ones by production's two phases
// (enroll/two_phase.h) over simulated calls, and has keys verified. The calls do on the servers
// what service/admin_service.cc does: one operation of the share store or of the engine each.
// Packages and their signatures are left out here; service/staged_package_test.cc has them.
#ifndef MPC_SERVER_SIM_ADMINISTRATOR_H_
#define MPC_SERVER_SIM_ADMINISTRATOR_H_

#include <functional>
#include <string>
#include <vector>

#include "mpc-server/base/limits.h"
#include "mpc-server/sim/client_link.h"
#include "mpc-server/sim/invariants.h"
#include "mpc-server/sim/kdc.h"

namespace mpckdc::sim {

class Administrator {
 public:
  Administrator(Scheduler* scheduler, Dice* dice, Journal* journal, Servers* servers,
                Invariants* invariants, Kdc* kdc, int keys_made = 0);

  ClientLinks& links() { return links_; }
  // One change after the other until `done`; the last ones after faults have stopped.
  void Work(const bool* done);
  // On a fiber of its own: as mpc-admin refresh, all three are asked to leave the epoch in which
  // they are.
  void StartRefresh();
  int running() const { return running_; }
  void CollectAtOnce() { grace_ = absl::ZeroDuration(); }  // a control

 private:
  class Change;  // one transaction

  // One call of one server.
  template <typename Result>
  using Body = std::function<void(Process&, std::function<void(Result)> answer)>;
  template <typename Result>
  Result Call(int p, const char* arrives, const char* answered, absl::Duration timeout,
              Body<Result> body);

  PlainKey NewKey(bool drawn);
  void Enrol();
  void VerifyAll();
  // Deletes a key that is in use, or takes that back, or tries it by another principal's name. It
  // must go on working: the grace time is longer than a run.
  void DeleteOne();
  void Refresh();
  uint64_t Epoch() const;
  bool AwaitOneEpoch();
  void Acknowledge(const std::vector<PlainKey>& keys, const std::vector<bool>& drawn);

  Scheduler* const scheduler_;
  Dice* const dice_;
  Journal* const journal_;
  Servers* const servers_;
  Invariants* const invariants_;
  Kdc* const kdc_;
  ClientLinks links_;
  std::vector<Handle> acknowledged_;
  std::vector<std::string> principals_;  // of the acknowledged
  absl::Duration grace_ = limits::kDefaultDeleteGrace;
  int keys_made_;
  int running_ = 0;
};

}  // namespace mpckdc::sim

#endif  // MPC_SERVER_SIM_ADMINISTRATOR_H_
