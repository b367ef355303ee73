// SPDX-License-Identifier: Apache-2.0
//
// Sends each job to the three servers of a triple and combines what they answer. A job ends when
// all three have answered, when one says that it was not computed, when the stream to one that has
// not answered ends, or at its deadline. Nothing else fails with it.
#ifndef KDC_PLUGIN_CLIENT_JOB_CLIENT_H_
#define KDC_PLUGIN_CLIENT_JOB_CLIENT_H_

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "kdc-plugin/client/combiner.h"
#include "kdc-plugin/client/mpc_client.h"
#include "kdc-plugin/client/server_stream.h"
#include "mpc-server/base/steady_wait.h"

namespace mpckdc::client {

inline constexpr size_t kMaxInFlight = 65536;  // jobs, and as many tag requests
inline constexpr absl::Duration kServerClockWarning = absl::Seconds(30);
inline constexpr int kAnswersPerLock = 64;  // then others may submit
inline constexpr absl::Duration kSameTextAgain = absl::Minutes(1);  // between equal log lines
inline constexpr int kMostLines = 20;  // in that time, of one server about one thing

class WireJob;

// Which of how many triples a client serves (triples.h).
struct TripleNumber {
  int number = 0;
  int count = 1;
};

// Told, without a lock, when a triple's three streams are up, and when one of them no longer is.
class TripleObserver {
 public:
  virtual ~TripleObserver() = default;
  virtual void OnTriple(int triple, bool connected, const std::string& why) = 0;
  // Its answers to a request for a tag were none, did not come in time, or contradicted each other. Of
  // jobs their callback is told.
  virtual void OnWrongTag(int triple, const std::string& why) = 0;
};

// Of one seal of a job, of (16 zero bytes | plaintext).
struct WantedTag {
  uint64_t job = 0;
  uint32_t seal = 0;
  mpc_bytes ciphertext;
  uint64_t request = 0;
};

// When a job ends: at the latest when the client's time has passed since `submitted`; earlier, when
// a server has said nothing at all for `silent` since it was sent.
struct JobTime {
  absl::Time submitted;
  absl::Duration silent;
};

class JobClient : public StreamOwner {
 public:
  // `observer` outlives the client.
  static absl::StatusOr<std::unique_ptr<JobClient>> Start(const mpc_options& options,
                                                          TripleNumber which,
                                                          TripleObserver* observer);
  ~JobClient() override { Stop(); }
  // Fails what is pending and all that comes later; nobody is called back after it.
  void Stop();

  void Submit(const mpc_job& job, const JobTime& time, mpc_job_done done, void* arg);
  void RequestTag(const WantedTag& tag, mpc_tag_done done, void* arg);
  // Adds what waits for answers here, and returns since when the oldest does; the future: nothing.
  absl::Time AddLoad(kdc_load* load);

  // StreamOwner
  absl::Status OnWelcome(int server, const v1::Welcome& welcome,
                         const std::string& certificate) override;
  void OnAnswers(int server, v1::ServerMessage& message) override;
  void OnDown(int server, const std::string& reason) override;
  void AfterDown(int server) override;
  void OnRetryDue() override;
  void OnRenewed(int server, const std::string& trouble) override;
  void OnSent(int server, size_t entries, size_t bytes) override;

 private:
  // A job, or the tag of one of its seals.
  using Key = std::pair<uint64_t, std::optional<uint32_t>>;
  using Pending = absl::flat_hash_map<Key, std::unique_ptr<Combiner>>;
  // What ended; its callbacks are called without the lock.
  using Finished = std::vector<std::unique_ptr<Combiner>>;
  struct Due {
    Key key;
    absl::Time sent;
    absl::Time last;  // when it ends though the servers are only slow
  };
  struct Member {  // what a connected server said about itself
    uint32_t party;
    uint32_t cluster;
    uint64_t epoch;
    std::string certificate;
  };

  JobClient(const mpc_options& options, TripleNumber which, TripleObserver* observer);
  v1::Hello MakeHello() const;

  absl::Status SendToAll(WireJob& wire) ABSL_EXCLUSIVE_LOCKS_REQUIRED(submit_mu_);
  // Takes over `pending` on success only.
  absl::Status Register(const Key& key, const JobTime& time, std::unique_ptr<Combiner>& pending);
  // Ends what was not sent to all: `pending`, or if that was registered what is left under `key`.
  void Refuse(const Key& key, std::unique_ptr<Combiner> pending, const absl::Status& why);
  void TellOfWrongTag(const Combiner& pending);
  template <class C, class Answer>
  void Take(int server, const Key& key, const Answer& answer, absl::Time now, Finished& finished)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Null if nobody waits for it any more.
  std::unique_ptr<Combiner> Remove(const Key& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Pending& Of(const Key& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return pending_[key.second.has_value() ? 1 : 0];
  }
  std::string MissingServers(const Combiner& pending, absl::Duration waited) const;
  // Whether one that has not answered has said nothing since.
  bool IsSilent(const Combiner& pending, absl::Time since) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<std::array<int, MPC_SERVERS>> Parties() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  absl::Status CheckAgainstOthers(int server, const Member& member)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  void RunTimer();
  absl::Time ExpireDue(absl::Time now, Finished& finished) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Its number among those of all triples.
  size_t Number(int server) const {
    return static_cast<size_t>(which_.number * MPC_SERVERS + server);
  }
  void Log(int priority, const std::string& text);
  // The same text about the same thing once a minute, and no more than kMostLines of them all.
  enum About { kConnection, kCertificate, kClock, kAbouts };
  void LogChange(int server, About about, int priority, const std::string& text);
  void LogAccusation(const std::string& accusation);

  const std::string realm_;
  const int64_t cluster_;
  const TripleNumber which_;
  TripleObserver* const observer_;
  const absl::Duration timeout_;
  const mpc_log_function log_;
  kdc_metrics* const metrics_;
  const std::string log_prefix_;
  std::array<std::unique_ptr<ServerStream>, MPC_SERVERS> streams_;

  absl::Mutex submit_mu_;  // ids reach the streams in increasing order; taken before mu_
  uint64_t next_id_ ABSL_GUARDED_BY(submit_mu_);  // `which_` says which are this client's

  absl::Mutex mu_;
  std::array<Pending, 2> pending_ ABSL_GUARDED_BY(mu_);  // jobs, tags: see Of()
  std::array<Finished, MPC_SERVERS> lost_ ABSL_GUARDED_BY(mu_);  // until AfterDown()
  std::multimap<absl::Time, Due> due_ ABSL_GUARDED_BY(mu_);
  absl::Duration shortest_ ABSL_GUARDED_BY(mu_);  // of the times that jobs were given
  std::array<absl::Time, MPC_SERVERS> heard_ ABSL_GUARDED_BY(mu_) = {
      absl::InfinitePast(), absl::InfinitePast(), absl::InfinitePast()};
  std::array<std::optional<Member>, MPC_SERVERS> members_ ABSL_GUARDED_BY(mu_);
  // As the servers said last, whether or not they are connected now; -1: never yet.
  std::array<int, MPC_SERVERS> parties_ ABSL_GUARDED_BY(mu_) = {-1, -1, -1};
  std::array<std::string, MPC_SERVERS> names_ ABSL_GUARDED_BY(mu_);  // by party
  bool timer_wanted_ ABSL_GUARDED_BY(mu_) = false;  // something new for the timer to look at
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  SteadyCondition timer_wake_;

  absl::Mutex log_mu_;
  struct Said {
    std::string text;
    absl::Time at;
    absl::Time minute = absl::InfinitePast();  // when it began
    int lines = 0, left_out = 0;               // in it
  };
  std::array<std::array<Said, kAbouts>, MPC_SERVERS> said_ ABSL_GUARDED_BY(log_mu_);
  uint64_t accusations_ ABSL_GUARDED_BY(log_mu_) = 0;
  // When each was logged last; a few dozen texts at most, of three names and two things.
  absl::flat_hash_map<std::string, absl::Time> accused_ ABSL_GUARDED_BY(log_mu_);

  std::thread timer_;
};

}  // namespace mpckdc::client

#endif  // KDC_PLUGIN_CLIENT_JOB_CLIENT_H_
