// SPDX-License-Identifier: Apache-2.0
//
// The KDC and its users: logins with right and wrong passwords and replayed pre-auth, clients that
// send again what was not answered, what a KDC
// does with the answers, and whether each reply is right by the plain oracle. Where there are two
// triples, what one does not answer goes to the other. Under a key of 17 to
// 20 the reply is a job of its own that the login's grant pays for.
#ifndef MPC_SERVER_SIM_KDC_H_
#define MPC_SERVER_SIM_KDC_H_

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "mpc-server/sim/client_link.h"
#include "mpc-server/sim/invariants.h"

namespace mpckdc::sim {

class Kdc {
 public:
  Kdc(Scheduler* scheduler, Dice* dice, Journal* journal, Servers* servers,
      Invariants* invariants, uint64_t seed);

  // From now on every job goes to one of two triples.
  void AddTriple(Servers* servers);
  void SetTgt(const PlainKey& tgt) { tgt_ = tgt; }
  // From now on users log in with this key.
  void AddUser(const PlainKey& key) {
    (FindEnctype(key.info.enctype)->is_gcm() ? users_ : cts_users_).push_back(key);
  }
  // From now on there are tickets for this service; its enctype is one of 17 to 20.
  void AddService(const PlainKey& key) { services_.push_back(key); }
  RandomSource& random() { return random_; }
  ClientLinks& links(int triple) { return triples_[triple]->links; }
  void ClockJumped() { clocks_jumped_ = true; }
  // How many of the logins amid faults are of users with keys of 17 to 20.
  void SetCtsShare(double share) { cts_share_ = share; }
  // A control: servers get shares of another text than the reply's.
  void SendOtherTexts() { other_texts_ = true; }

  // One login after the other until `done`, each on a fiber of its own.
  void Load(const bool* done);
  // One login with each key that was enrolled, once faults have stopped: each works at once.
  void TryEveryKey();
  int running() const { return running_; }

 private:
  struct Triple {
    Servers* servers;
    ClientLinks links;
    KdcIdentity identity;  // of the KDC's connections
    KdcIdentity other;     // another KDC of the realm: presents what it heard
  };
  template <typename Answer>
  struct Call {
    PerParty<Answer> answers;
    std::array<bool, 3> got{};
    Fiber* waiter = nullptr;
    bool All() const { return got[0] && got[1] && got[2]; }
  };
  struct Attempt {
    PlainKey user;
    std::string preauth;
    bool right = true;    // the password is, and the pre-auth is fresh
    bool replay = false;
    bool again = false;      // by the client, which got no answer
    bool other_kdc = false;  // presents it
    bool lost = false;    // the key was missing on one server when it began
    int restores = 0;     // of a disk, before it began
    bool settled = false;    // faults were over, and the realm had recovered, when it began
    bool overtaken = false;  // its messages were reordered
    uint64_t starts = 0;     // of servers, when it began: a grant ends with the process
    int triple = 0;
    int presented = 0;  // how often, before
    bool cts() const { return !FindEnctype(user.info.enctype)->is_gcm(); }
  };

  // True: all answers came within `limit`.
  template <typename Answer>
  bool Await(Call<Answer>& call, absl::Duration limit);
  Job NewJob(Operation operation);
  // One message for each server; they differ in shares of texts only.
  JobResult SendJobs(int triple, const PerParty<Job>& jobs, bool faults, bool* overtaken,
                     bool other_kdc = false);
  void DeliverJob(int triple, int p, const KdcIdentity& kdc, const Job& job, bool twice,
                  const std::shared_ptr<Call<JobResult>>& call);
  TagResult SendTags(int triple, const TagRequest& request, bool faults);
  void TagTooEarly(int triple, JobId job);
  template <typename Answer>
  void Reply(int triple, int p, const std::shared_ptr<Call<Answer>>& call, Answer answer);

  int AnyTriple();
  Attempt Choose();
  void Login(Attempt attempt);
  bool GoesElsewhere(Attempt& attempt, const JobResult& result);
  void LoginAgain(Attempt attempt, const JobResult& before);
  JobResult PresentLogin(Attempt& attempt);
  bool MayBeLost(const Attempt& attempt) const;
  void SealReplies(JobId grant, const Attempt& attempt);
  bool SealReply(JobId grant, const Attempt& attempt, int paid);
  void CheckNoReply(const Job& job, const JobResult& result, const Attempt& attempt, int paid,
                    bool overtaken);
  std::string RandomText(size_t size);
  void CheckLogin(const Job& job, const JobResult& result, const Attempt& attempt,
                  const std::string& as_req);
  void CheckSeal(int triple, const JobResult& result, uint32_t seal, const PlainKey& key,
                 uint32_t usage, bool settled);
  void CheckTicketOpens(const std::string& ticket, const std::string& inside);
  void CheckServiceTicket(const std::string& tgt);
  bool CheckTicketJob(const Job& job, const JobResult& result, const char* what, bool lost);
  bool Allowed(Verdict verdict) const;

  Scheduler* const scheduler_;
  Dice* const dice_;
  Journal* const journal_;
  Invariants* const invariants_;
  SeededRandomForTest random_;
  std::vector<std::unique_ptr<Triple>> triples_;
  PlainKey tgt_;
  std::vector<PlainKey> users_, cts_users_;  // with gcm keys; with keys of 17 to 20
  std::vector<PlainKey> services_;
  std::vector<Attempt> past_;  // whose pre-auth a replay repeats
  JobId last_id_ = 0;
  // In rounds such a login costs as much processor time as some thirty others. Afterwards
  // TryEveryKey() tries each key once.
  double cts_share_ = 0.03;
  bool clocks_jumped_ = false;
  bool other_texts_ = false;
  int running_ = 0;
};

}  // namespace mpckdc::sim

#endif  // MPC_SERVER_SIM_KDC_H_
