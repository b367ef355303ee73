// SPDX-License-Identifier: Apache-2.0
// Three seeded parties in one process, and joining of shares: for tests and benches only, in a
// library of its own that no production program links.
#ifndef MPC_SERVER_TESTING_THREE_PARTIES_H_
#define MPC_SERVER_TESTING_THREE_PARTIES_H_

#include <array>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "mpc-server/base/random_source.h"
#include "mpc-server/share/circuit.h"
#include "mpc-server/share/rings.h"
#include "mpc-server/testing/join.h"
#include "mpc-server/testing/memory_channel.h"

namespace mpckdc {

// Runs `body` as each party on a thread of its own, over a session opened on `ring`. Returns the
// three statuses. When one party fails, the others fail by its abort or their timeout.
std::array<absl::Status, kParties> RunThreeParties(
    MemoryRing& ring, uint64_t seed, const std::function<absl::Status(PartyContext&)>& body,
    absl::Duration round_timeout = absl::Seconds(20));

// Each party sets up a circuit with make(party), in a batch, and runs it; then keep(number of the
// party, circuit) takes what came out. An error if a party has one, or if what was counted is not
// what the circuit declares.
template <class Make, class Keep>
absl::Status RunCircuit(MemoryRing& ring, Make make, Keep keep, Cost* cost = nullptr) {
  const auto statuses = RunThreeParties(ring, 1, [&](PartyContext& party) {
    party.BeginBatch(1);
    const auto circuit = make(party);  // a unique_ptr
    Cost counted;
    absl::Status s = RunTogether(party, {circuit.get()}, &counted);
    if (!s.ok()) return s;
    keep(party.party(), *circuit);
    if (party.party() == 0 && cost != nullptr) *cost = counted;
    if (counted != circuit->DeclaredCost()) return absl::InternalError("not the declared cost");
    return s;
  });
  for (const absl::Status& s : statuses) {
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

// The same with a number of rings for each party, over memory: body(party, rings).
struct RingsForTest {
  size_t count = 1;
  Randomness randomness = Randomness::kKeyed;
  MemoryRing::Interceptor interceptor;  // of every ring
};
std::array<absl::Status, kParties> RunThreeParties(
    const RingsForTest& rings, uint64_t seed,
    const std::function<absl::Status(int party, Rings& rings)>& body,
    absl::Duration round_timeout = absl::Seconds(20));

// One ring, over any three channels.
std::array<absl::Status, kParties> RunOverChannels(
    const std::array<PeerChannel*, kParties>& channels, uint64_t seed,
    const std::function<absl::Status(PartyContext&)>& body, absl::Duration round_timeout);

// The three parties' shares of a value; testing/join.h joins them.
std::array<SharedBlock, kParties> SplitForTest(const Block& value, RandomSource& random);

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_THREE_PARTIES_H_
