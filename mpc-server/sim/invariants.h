// SPDX-License-Identifier: Apache-2.0
//
// What must hold in every run. What a reply must be is checked where it arrives (kdc.cc); here is
// what needs memory of the whole run:
//
//   - no server releases anything under a nonce that any server ever used for something else,
//     across restarts and restored disks;
//   - a pre-auth message buys at most one login, and a login at most two replies;
//   - no two messages under keys of 17 to 20 begin with the same block: servers draw confounders;
//   - a job that the KDC got an answer to has the same line in three audit logs;
//   - an acknowledged key is on all three disks unchanged until the end, and logins with it work;
//     deleted or not, for the grace time is longer than a run, and by another principal's name
//     nobody can delete it at all; where a disk was put back to a time before it, it is missing
//     there and its logins fail;
//   - after a refresh its shares are others, and still those of the same key; those of one server
//   from
//     before a refresh and of another from after it are nothing;
//   - a key of a change that was taken back is not on a server that said so;
//   - once faults have stopped, logins succeed within the recovery time, and go on succeeding; the
//     three disks are in one share epoch within that time, and at the end, and so is each machine
//     of a party that has several.
#ifndef MPC_SERVER_SIM_INVARIANTS_H_
#define MPC_SERVER_SIM_INVARIANTS_H_

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "mpc-server/sim/servers.h"
#include "mpc-server/testing/realm.h"

namespace mpckdc::sim {

class Invariants {
 public:
  Invariants(const Scheduler* scheduler, Journal* journal, Servers* servers,
             absl::Duration recovery)
      : scheduler_(scheduler),
        journal_(journal),
        servers_(servers),
        recovery_(recovery),
        triples_{servers} {}
  // Of the same realm.
  void AddTriple(Servers* servers) {
    triples_.push_back(servers);
    first_ok_.emplace_back();
  }

  // ---- Nonces, replays, audit ----
  void Released(int p, const JobResult& result);
  // A KDC presented it, and got all that a login gives.
  void LoggedIn(const std::string& preauth, const std::string& kdc);
  // A reply under a key of 17 to 20 came, paid by the grant of this pre-auth.
  void Replied(const std::string& preauth);
  void Sealed(const std::string& cts_message);
  void Audited(int p, const BatchJob& job);
  void AnsweredOk(JobId id, Operation operation);
  // The party lies from now on.
  void Lies(int party) { liar_ = party; }
  // Nobody may be accused but a server that lies, or one whose disk was put back; what the liar
  // says is nobody's fault.
  void Accused(int by, Suspects suspects);

  // ---- Keys ----
  void Acknowledged(const Handle& handle, const PerParty<KeyRecord>& records);
  // Server `p` has said that nothing is left of them.
  void TakenBack(int p, const std::vector<Handle>& handles);
  // After the disk of servers->restored() was put back.
  void DiskRestored();
  int restores() const { return restores_; }  // how often that happened
  // The key is missing on the restored disk.
  bool Lost(const Handle& handle) const { return lost_.contains(handle); }

  // ---- Recovery ----
  void Healed() { healed_ = scheduler_->now(); }
  bool quiet() const { return scheduler_->now() >= healed_; }
  // A login that was sent since faults stopped succeeded, at each triple: from now on all do.
  bool recovered() const {
    return std::all_of(first_ok_.begin(), first_ok_.end(),
                       [](const auto& ok) { return ok.has_value(); });
  }
  // A login that ought to work has ended; one that was sent after recovery may not have failed.
  void LoginEnded(int triple, absl::Time sent, const JobResult& result);

  // All machines of all triples.
  bool InOneEpoch() const;
  // To be called often once faults have stopped: the disks are in one share epoch in time.
  void CameTogether();

  void AtEnd();

 private:
  struct NonceUse {
    JobId job;
    int place;  // in its job, of what was released under a nonce
    std::array<bool, kParties> released{};
  };
  struct AuditLine {
    Operation operation = Operation::kUnspecified;
    PrincipalId principal{};
    Verdict verdict = Verdict::kUnspecified;

    friend bool operator==(const AuditLine&, const AuditLine&) = default;
  };

  struct Acknowledgement {
    PerParty<KeyRecord> records;
    uint64_t epoch = 1;  // theirs
  };

  void CheckAudit();
  void CheckKeys();
  void CheckKeysOf(int p);
  void CheckRefreshedKeys(Servers& servers);
  void CheckThieves(const Acknowledgement& then, const PerParty<KeyRecord>& now);

  const Scheduler* const scheduler_;
  Journal* const journal_;
  Servers* const servers_;
  const absl::Duration recovery_;
  std::vector<Servers*> triples_;
  std::map<Nonce, NonceUse> nonces_;
  struct Spent {
    std::string kdc;
    int logins = 0;
  };
  std::map<std::string, Spent> spent_;  // pre-auth messages that bought logins
  std::map<std::string, int> replies_;  // by the pre-auth whose grant paid
  std::set<std::string> first_blocks_;  // of messages under keys of 17 to 20
  std::map<JobId, std::array<std::optional<AuditLine>, kParties>> audit_;
  std::map<JobId, Operation> answered_;
  std::map<Handle, Acknowledgement> acknowledged_;
  std::set<Handle> lost_;
  int restores_ = 0;
  int liar_ = -1;
  PerParty<std::set<Handle>> taken_back_;
  absl::Time healed_ = absl::InfiniteFuture();
  std::vector<std::optional<absl::Time>> first_ok_{1};  // by triple
  bool together_ = false;  // since faults stopped, in one epoch
};

}  // namespace mpckdc::sim

#endif  // MPC_SERVER_SIM_INVARIANTS_H_
