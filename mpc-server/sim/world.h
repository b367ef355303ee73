// SPDX-License-Identifier: Apache-2.0
//
// Three servers (the production JobEngine) and a KDC in one process under simulated time, with
// faults from a seed. A run is a function of its options. Invariants, checked while it runs:
//
//   - a reply is right, by the plain oracle, or absent; a right password is never BAD_TAG, a wrong
//     one and a replayed pre-auth never OK;
//   - no server releases anything under a nonce that any server used for something else;
//   - once faults have stopped, logins succeed within 5 simulated seconds and go on succeeding.
#ifndef MPC_SERVER_SIM_WORLD_H_
#define MPC_SERVER_SIM_WORLD_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mpc-server/batch/job_engine.h"
#include "mpc-server/batch/test_realm.h"
#include "mpc-server/sim/fibers.h"
#include "mpc-server/sim/network.h"
#include "mpc-server/store/memory_share_store.h"

namespace mpckdc::sim {

struct WorldOptions {
  uint64_t seed = 1;
  absl::Duration faulty = absl::Seconds(15);  // faults happen
  absl::Duration quiet = absl::Seconds(8);    // and then none
  absl::Duration recovery = absl::Seconds(5);
  // A control: restarted servers forget their nonce marks and clocks are set back. The nonce
  // invariant must break.
  bool forget_marks = false;
};

struct Outcome {
  std::vector<std::string> violations;  // empty: all is well
  std::map<std::string, int> faults;    // by name
  std::map<std::string, int> verdicts;  // of whole jobs, "absent" included
  int logins = 0;
  int logins_ok = 0;
  uint64_t frames = 0;
  std::vector<std::string> log;  // what happened when, for a failed seed
};

class World {
 public:
  explicit World(const WorldOptions& options);
  ~World();

  Outcome Run();

 private:
  // One process of a server; a restart makes another on the same disk.
  struct Process {
    std::unique_ptr<MemoryShareStore> store;
    std::unique_ptr<SeededRandomForTest> random;
    std::unique_ptr<PeerLink> link;
    std::unique_ptr<SimExecutor> executor;
    std::unique_ptr<JobEngine> engine;
  };
  struct Server {
    std::unique_ptr<SimClock> clock;
    std::unique_ptr<Process> process;  // null: down
    std::optional<MemoryShareStore::State> disk;
    uint64_t incarnation = 0;
    absl::Time stream_busy;  // the KDC's stream delivers in order
  };
  template <typename Answer>
  struct Call {
    PerParty<Answer> answers;
    std::array<bool, 3> got{};
    Fiber* waiter = nullptr;
    bool All() const { return got[0] && got[1] && got[2]; }
  };

  // ---- Servers ----
  void AddKeys();
  PlainKey AddKey(const std::string& principal, KeyClass key_class, int32_t enctype, Gate gate);
  void StartServer(int p);
  void KillServer(int p, const std::string& where);
  bool AtStep(int p, const std::string& step);

  // ---- Faults ----
  void Injector();
  void InjectOne();
  void KillAtStep();
  void Heal();
  void ForgetfulRestart();

  // ---- The KDC ----
  void Load();
  void OneLogin();
  JobResult SendJob(const Job& job, bool may_lose);
  TagResult SendTags(const TagRequest& request);
  absl::Time StreamTime(int p);
  void CheckLogin(const Job& job, const JobResult& result, const PlainKey& user, bool right,
                  const std::string& as_req);
  void CheckSeal(const JobResult& result, uint32_t seal, const PlainKey& key, uint32_t usage);
  void CheckTicketOpens(const std::string& ticket, const std::string& inside);
  void NoteNonces(int p, const JobResult& result);
  void CheckRecovery();
  bool Allowed(Verdict verdict) const;

  void Violation(const std::string& what);
  void Log(const std::string& what);
  absl::Duration Elapsed() const { return scheduler_.now() - start_; }

  const WorldOptions options_;
  const absl::Time start_;
  Scheduler scheduler_;
  Dice dice_;
  Network network_;
  SeededRandomForTest random_;
  PerParty<Server> servers_;
  std::vector<std::unique_ptr<Process>> dead_;
  PlainKey alice_, bob_, tgt_;
  KdcIdentity kdc_;
  JobId last_id_ = 0;
  std::string old_preauth_;  // of a login that succeeded
  PlainKey old_user_;
  std::map<Nonce, std::pair<JobId, int>> nonces_;  // what each was released for
  std::map<std::string, int> steps_;               // named steps seen
  std::pair<int, std::string> kill_at_{-1, ""};
  bool done_ = false, clocks_jumped_ = false;
  int wrong_clock_ = -1;
  int fibers_running_ = 0;
  absl::Time healed_ = absl::InfiniteFuture();
  std::optional<absl::Time> first_ok_after_heal_;
  Outcome outcome_;
};

}  // namespace mpckdc::sim

#endif  // MPC_SERVER_SIM_WORLD_H_
