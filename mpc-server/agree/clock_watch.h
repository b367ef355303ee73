// SPDX-License-Identifier: Apache-2.0
//
// Whether this server's clock can be trusted, by what the two peers say of theirs. One thread at a
// time.
#ifndef MPC_SERVER_AGREE_CLOCK_WATCH_H_
#define MPC_SERVER_AGREE_CLOCK_WATCH_H_

#include <array>
#include <string>

#include "absl/time/time.h"
#include "mpc-server/agree/batch_report.h"
#include "mpc-server/agree/engine_status.h"
#include "mpc-server/wire/peer_channel.h"

namespace mpckdc {

class ClockWatch {
 public:
  // `limit`: how far two good clocks may differ. `status` is kept up to date.
  ClockWatch(int party, absl::Duration limit, SharedStatus* status, EngineObserver* observer)
      : party_(party), limit_(limit), status_(status), observer_(observer) {}

  // A peer's vote, greeting or proposal said `theirs` when this server's clock said `now`.
  void Hear(Neighbour from, absl::Time theirs, absl::Time now);
  // Both peers' clocks were heard lately, by a clock that has not jumped since.
  bool HeardBoth(absl::Time now) const;

  // And they agree with this one about the time. One that does is not enough: it may be as wrong, from
  // one source with this server, or lie.
  bool Confirmed(absl::Time now) const;

  // Compares the clocks: after each message of the leader, or when both peers have been heard.
  void Judge();
  // Empty, or why no timestamp may be judged now.
  const std::string& trouble() const { return trouble_; }
  // Empty, or whose clock differs so much that its server cannot reserve the nonces that this one,
  // the leader, would propose. What the others reserved by a clock that is wrong would stay ahead
  // of the third, for as long as the clock was.
  std::string NoNonces() const;

 private:
  enum class Suspicion { kNone, kAgainstBoth, kAgainstLeader };

  bool Beyond(Neighbour neighbour, absl::Duration limit) const;
  Suspicion Suspect() const;

  const int party_;
  const absl::Duration limit_;
  SharedStatus* const status_;
  EngineObserver* const observer_;
  // Indexed by Neighbour.
  std::array<absl::Duration, 2> skew_{};  // theirs minus ours
  std::array<absl::Time, 2> heard_at_{absl::InfinitePast(), absl::InfinitePast()};
  std::array<bool, 2> told_{};  // the observer knows that the skew is large
  Suspicion suspicion_ = Suspicion::kNone;
  std::string trouble_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_AGREE_CLOCK_WATCH_H_
