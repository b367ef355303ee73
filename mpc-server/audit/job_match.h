// SPDX-License-Identifier: Apache-2.0
//
// When each server ran, one job as the three logs tell it, and what is wrong or normal when they
// tell it differently.
#ifndef MPC_SERVER_AUDIT_JOB_MATCH_H_
#define MPC_SERVER_AUDIT_JOB_MATCH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "mpc-server/audit/line.h"

namespace mpckdc::audit {

// ---- When one server ran, as its own log says: what explains that it did not see something ----

// What the log says about a moment.
enum class Presence {
  kRunning,
  kBefore,    // earlier than the files that were given; lines before them exist
  kNotYet,    // earlier than the log's line 1
  kStopped,   // between a line of kind stop and the next start
  kKilled,    // between the last line and a start, without a stop, in the same boot of the machine
  kRebooted,  // the same in another boot: a power failure
  kMute,      // it could not write its log
  kEnded,     // after the last line, which is no stop
};

class Timeline {
 public:
  // Every line in order: Note() for those that matter, NoteTime() for the others.
  static bool Matters(const Line& line);
  void Note(const Line& line, absl::Time time, const Fields& fields);
  void NoteTime(const Line& line, absl::Time time);

  struct Moment {
    Presence presence = Presence::kRunning;
    size_t gap = 0;  // which of the gaps, for those that are one
  };
  // By another server's clock, which may differ by `margin`.
  Moment At(absl::Time time, absl::Duration margin) const;

 private:
  struct Run {
    absl::Time start, end;
    bool stopped = false;
    std::string boot;
  };
  std::vector<Run> runs_;
  std::vector<std::pair<absl::Time, absl::Time>> mute_;
  bool begins_ = false;  // the log's line 1 was seen
};

// ---- What one log only counts: refused jobs of a flood ----

class CountedJobs {
 public:
  // A line of kind "counted", or one of kind "jobs" that left some out.
  void Note(const Line& line, absl::Time time, const Fields& fields);
  // One of that KDC's at about that time, by another server's clock; each is taken once. False:
  // none is left.
  bool Take(const std::string& kdc, absl::Time time);

 private:
  struct Count {
    absl::Time until;
    std::string kdc;  // empty: several
    uint64_t left;
  };
  std::multimap<absl::Time, Count> counts_;  // by their beginnings
};

// "was stopped", for a sentence about a server.
const char* PresenceText(Presence presence);

// ---- One job ----

inline constexpr size_t kServers = 3;

// What one server's log says of a job.
struct Told {
  std::string verdict, digest, detail, operation, principal;
  std::string keys;     // as the line spells them; empty: it names none
  std::string ring;     // of the batch; empty: no batch took the job
  uint64_t batch = 0;
  bool broken = false;    // the batch ended with an error
  bool computed = false;  // and what came of it was not given
};

struct JobStory {
  std::string kdc, session, operation, principal;
  uint64_t id = 0;
  absl::Time time;  // of the first line about it
  std::array<std::optional<Told>, kServers> told;

  bool Complete() const { return told[0] && told[1] && told[2]; }
  bool Released() const;  // a server answered OK
  bool OnlyRefused() const;  // by all that tell of it, before anything was computed
};

enum class FindingKind {
  kJobMissing,      // only some of the servers saw the job
  kJobDiffers,      // they did not receive the same job
  kVerdictDiffers,  // they judged it differently
  kKeysDiffer,      // it was computed under keys that they name differently
  kViewDiffers,     // they believed in different batches under one number
  kAdminMissing,    // an administrator's act that only some saw
  kDeviation,       // a server saw another one deviate from the protocol
};
const char* FindingName(FindingKind kind);

struct Finding {
  FindingKind kind = FindingKind::kJobMissing;
  bool explained = false;
  absl::Time time;
  std::string text;  // what it is, or why it is normal
  JobStory job;      // of a job; otherwise only what applies
};

// What is to be said of a complete story; nullopt: the three agree.
std::optional<Finding> Compare(const JobStory& job);

// Explains what only some saw. All missing jobs go in first: one batch of each kind that died with
// a server is normal, more are not. A refused job may be one of those that a server counted.
class MissingJobs {
 public:
  MissingJobs(const std::array<Timeline, kServers>& timelines,
              std::array<CountedJobs, kServers> counted)
      : timelines_(timelines), counted_(std::move(counted)) {}

  void Add(const JobStory& job);
  Finding Explain(const JobStory& job);

 private:
  using Gap = std::pair<size_t, size_t>;  // server, gap
  struct Lost {
    std::set<std::pair<std::string, uint64_t>> batches;  // released, and not in this server's log
    absl::Time last = absl::InfinitePast();
  };
  bool Normal(const JobStory& job, size_t server, const Timeline::Moment& moment) const;

  const std::array<Timeline, kServers>& timelines_;
  std::array<CountedJobs, kServers> counted_;
  std::map<Gap, Lost> lost_;
};

}  // namespace mpckdc::audit

#endif  // MPC_SERVER_AUDIT_JOB_MATCH_H_
