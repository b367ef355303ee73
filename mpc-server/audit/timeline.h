// SPDX-License-Identifier: Apache-2.0
//
// When one server ran, as its own log says: what explains that it did not see something.
#ifndef MPC_SERVER_AUDIT_TIMELINE_H_
#define MPC_SERVER_AUDIT_TIMELINE_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "mpc-server/audit/line.h"

namespace mpckdc::audit {

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

// "was stopped", for a sentence about a server.
const char* PresenceText(Presence presence);

}  // namespace mpckdc::audit

#endif  // MPC_SERVER_AUDIT_TIMELINE_H_
