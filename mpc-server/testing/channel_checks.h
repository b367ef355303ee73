// SPDX-License-Identifier: Apache-2.0
// What every PeerChannel must do, over any three that are connected. For tests.
#ifndef MPC_SERVER_TESTING_CHANNEL_CHECKS_H_
#define MPC_SERVER_TESTING_CHANNEL_CHECKS_H_

#include <array>
#include <functional>

#include "absl/time/time.h"
#include "mpc-server/wire/peer_channel.h"

namespace mpckdc {

absl::Time In(double seconds);
void OnThreeThreads(const std::function<void(int party)>& body);

// Control frames, rounds larger than socket buffers, an abort in the middle of a round, silence.
void CheckChannels(const std::array<PeerChannel*, 3>& channels);
// Rounds of very different sizes, `depth` of them under way at a time, both directions.
void CheckRoundsInFlight(const std::array<PeerChannel*, 3>& channels, int depth);
// Several rounds posted, then one party gives up and another is silent.
void CheckFailuresInFlight(const std::array<PeerChannel*, 3>& channels);

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_CHANNEL_CHECKS_H_
