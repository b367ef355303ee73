// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/testing/three_parties.h"

#include <thread>

#include "mpc-server/base/status_macros.h"

namespace mpckdc {

namespace {

using Body = std::function<absl::Status(int party, Rings& rings)>;

// Over the channels channel(ring, party).
template <class Channel>
std::array<absl::Status, kParties> RunOn(Channel channel, const RingsForTest& rings, uint64_t seed,
                                         const Body& body, absl::Duration round_timeout) {
  const auto run = [&](int p) -> absl::Status {
    SeededRandomForTest random(seed * kParties + static_cast<uint64_t>(p));
    SessionOptions options;
    options.party = p;
    options.realm = "TEST";
    options.round_timeout = round_timeout;
    options.rings = static_cast<uint8_t>(rings.count);
    options.randomness = rings.randomness;
    options.security = Security::kSemiHonest;  // a test that wants proofs brings its verifier
    std::vector<std::unique_ptr<PartyContext>> sessions;
    std::vector<PartyContext*> parties;
    for (size_t ring = 0; ring < rings.count; ++ring) {
      options.ring = static_cast<uint8_t>(ring);
      ASSIGN_OR_RETURN(auto session, OpenSession(options, channel(ring, p), SystemClock(), random,
                                                 SystemClock().Now() + absl::Seconds(20)));
      sessions.push_back(std::move(session));
      parties.push_back(sessions.back().get());
    }
    Rings all(parties);
    return body(p, all);
  };
  std::array<absl::Status, kParties> statuses;
  std::vector<std::thread> threads;
  for (int p = 0; p < kParties; ++p) threads.emplace_back([&, p] { statuses[p] = run(p); });
  for (std::thread& t : threads) t.join();
  return statuses;
}

}  // namespace

std::array<absl::Status, kParties> RunOverChannels(
    const std::array<PeerChannel*, kParties>& channels, uint64_t seed,
    const std::function<absl::Status(PartyContext&)>& body, absl::Duration round_timeout) {
  const auto channel = [&](size_t, int p) -> PeerChannel& { return *channels[p]; };
  const auto on_first = [&](int, Rings& rings) { return body(rings.first()); };
  return RunOn(channel, {}, seed, on_first, round_timeout);
}

std::array<absl::Status, kParties> RunThreeParties(
    MemoryRing& ring, uint64_t seed, const std::function<absl::Status(PartyContext&)>& body,
    absl::Duration round_timeout) {
  return RunOverChannels({&ring.channel(0), &ring.channel(1), &ring.channel(2)}, seed, body,
                         round_timeout);
}

std::array<absl::Status, kParties> RunThreeParties(const RingsForTest& rings, uint64_t seed,
                                                   const Body& body, absl::Duration round_timeout) {
  std::vector<MemoryRing> memory(rings.count);
  for (MemoryRing& m : memory) {
    if (rings.interceptor) m.SetInterceptor(rings.interceptor);
  }
  const auto channel = [&](size_t ring, int p) -> PeerChannel& { return memory[ring].channel(p); };
  return RunOn(channel, rings, seed, body, round_timeout);
}

std::array<SharedBlock, kParties> SplitForTest(const Block& value, RandomSource& random) {
  Block x[kParties];
  random.Fill(absl::MakeSpan(x[0]));
  random.Fill(absl::MakeSpan(x[1]));
  x[2] = XorBlocks(x[0], x[1]);
  std::array<SharedBlock, kParties> shares;
  for (int p = 0; p < kParties; ++p) shares[p] = {x[p], XorBlocks(x[PrevParty(p)], value)};
  return shares;
}

}  // namespace mpckdc
