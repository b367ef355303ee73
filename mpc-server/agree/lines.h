// SPDX-License-Identifier: Apache-2.0
//
// How far the servers are from each other, and how much their lines carry: what each measures of
// its own two, told to the others in its votes, and by which the leader chooses a batch's protocol
// (compute/protocol_choice.h). Times and rates are public. A server that lies about them can make
// the leader choose the slower protocol, as it can be slow itself; either is as safe as ever.
#ifndef MPC_SERVER_AGREE_LINES_H_
#define MPC_SERVER_AGREE_LINES_H_

#include <array>

#include "absl/time/time.h"
#include "mpc-server/agree/agreement.h"
#include "mpc-server/agree/engine_status.h"
#include "mpc-server/agree/line_trial.h"
#include "mpc-server/compute/protocol_choice.h"

namespace mpckdc {

class Lines {
 public:
  Lines(int party, SharedStatus* status) : party_(party), status_(*status) {}

  // What a session that begins has found out of the lines that carry tables.
  void Tried(const LineTrial& trial, absl::Time now);
  // This server's own: of the agreement's channel, which carries tables of gcm parts, and of that
  // which carries all others.
  void Measure(const PeerChannel& agreement, const PeerChannel& tables, absl::Time now);
  const LineReport& own() const { return reports_[party_]; }
  // What another says of its two. Kept between sessions: the first batch of one is chosen by it.
  void Hear(int party, const LineReport& report) { reports_[party] = report; }
  // By all that is known: a line that nobody reported has no length and no bound.
  FarthestLine Farthest() const;

 private:
  // The best rate of the last minute: a connection that was idle begins slowly.
  struct Rate {
    uint64_t best = 0;
    absl::Time at = absl::InfinitePast();
  };
  // Of a connection, at the last look.
  struct Seen {
    uint64_t sent = 0;
    uint64_t last = 0;  // as the kernel told it, who tells the same until there is another
  };
  static void Look(const LineState& line, absl::Time now, Seen& seen, Rate& rate);
  static uint64_t Believed(const Rate& rate, absl::Time now);

  const int party_;
  SharedStatus& status_;
  std::array<LineReport, kParties> reports_{};
  std::array<Rate, 2> rates_{};                // to prev, to next
  std::array<std::array<Seen, 2>, 2> seen_{};  // the same, of agreement and tables
};

}  // namespace mpckdc

#endif  // MPC_SERVER_AGREE_LINES_H_
