// SPDX-License-Identifier: Apache-2.0
//
// What the two other servers say: read as what it says and nothing beside it, or refused.
#include <array>
#include <string>

#include "mpc-server/agree/agreement.h"
#include "mpc-server/agree/quarantine.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/testing/fuzz.h"

namespace mpckdc {
namespace {

EntryTags SomeTags(size_t count) {
  EntryTags tags(count);
  for (size_t i = 0; i < count; ++i)
    tags[i].with_prev[0] = tags[i].with_next[7] = static_cast<uint8_t>(i + 1);
  return tags;
}

FuzzSeeds ProposalSeeds() {
  FuzzSeeds seeds;
  for (uint64_t kind = 1; kind <= kLastBatchKind; ++kind) {
    Proposal p;
    p.kind = static_cast<BatchKind>(kind);
    if (p.kind == BatchKind::kLongJobs) p.protocol = CtsProtocol::kGarbled;
    if (IsOfJobs(p.kind)) p.of_gcm = CtsProtocol::kGarbled;
    p.number = 7;
    p.time = absl::FromUnixSeconds(1'800'000'000);
    for (size_t i = 0; i < kind % 4; ++i) {
      p.entries.push_back({GroupId{1}, i, Digest{2}, kVoteOk, SomeTags(i)});
    }
    p.nonces = static_cast<uint32_t>(p.entries.size());
    seeds.push_back(EncodeProposal(p));
  }
  return seeds;
}

MPCKDC_FUZZ(proposal, ProposalSeeds) {
  const auto proposal = DecodeProposal(AsText(in));
  if (!proposal.ok()) return;
  FUZZ_CHECK(EncodeProposal(*proposal) == AsText(in));
  FUZZ_CHECK(proposal->entries.size() <= limits::kMaxBatchJobs);
  for (const ProposalEntry& entry : proposal->entries)
    FUZZ_CHECK(entry.keys.size() <= kMaxKeysOfEntry);
}

FuzzSeeds VoteSeeds() {
  FuzzSeeds seeds;
  for (size_t codes = 0; codes < 4; ++codes) {
    Vote v = {77, Digest{1}, absl::FromUnixSeconds(1'800'000'000), {}, {}, {}};
    v.lines.prev = {absl::Microseconds(130), 125'000'000};
    for (size_t i = 0; i < codes; ++i) {
      v.codes.push_back(i == 0 ? kVoteMissing : kVoteOk);
      v.keys.push_back(SomeTags(i));
    }
    seeds.push_back(EncodeVote(v));
  }
  return seeds;
}

MPCKDC_FUZZ(vote, VoteSeeds) {
  const auto vote = DecodeVote(AsText(in));
  if (!vote.ok()) return;
  FUZZ_CHECK(EncodeVote(*vote) == AsText(in));
  for (const VoteCode code : vote->codes) {
    const Agreed agreed = Combine({kVoteOk, code, kVoteOk});
    FUZZ_CHECK(agreed.code == code && (code == kVoteOk || agreed.by == 1));
    FUZZ_CHECK(Combine({code, kVoteMissing, code}).code == kVoteMissing);
  }
}

Greeting SomeGreeting(uint64_t epoch, bool prepared) {
  Greeting g;
  g.time = absl::FromUnixSeconds(1'800'000'000);
  g.max_renewable_life = absl::Hours(24 * 7);
  g.clock_skew = absl::Minutes(5);
  g.epoch.epoch = epoch;
  g.epoch.began_by = RefreshId{3};
  g.epoch.refresh = true;
  if (prepared) g.epoch.prepared = RefreshId{5};
  return g;
}
FuzzSeeds GreetingSeeds() {
  return {EncodeGreeting(SomeGreeting(1, false)), EncodeGreeting(SomeGreeting(9, true))};
}

MPCKDC_FUZZ(greeting, GreetingSeeds) {
  const auto greeting = DecodeGreeting(AsText(in));
  if (greeting.ok()) FUZZ_CHECK(EncodeGreeting(*greeting) == AsText(in));
}

// Three greetings, each behind its length (1); the triple (1).
FuzzSeeds EpochSeeds() {
  FuzzSeeds seeds;
  const auto three = [&seeds](const std::array<EpochClaim, 3>& claims) {
    std::string out;
    for (const EpochClaim& claim : claims) {
      Greeting greeting = SomeGreeting(1, false);
      greeting.epoch = claim;
      const std::string bytes = EncodeGreeting(greeting);
      out += std::string(1, static_cast<char>(bytes.size())) + bytes;
    }
    seeds.push_back(out + '\0');
  };
  EpochClaim plain, ahead, behind, wants, empty;
  ahead.epoch = 2;
  ahead.began_by = RefreshId{5};
  behind.prepared = RefreshId{5};
  wants.refresh = true;
  empty.empty = true;
  three({plain, plain, plain});
  three({wants, wants, wants});
  three({ahead, behind, ahead});
  three({behind, behind, ahead});
  three({ahead, empty, ahead});
  for (EpochClaim* claim : {&plain, &empty}) claim->replace = 2;
  three({plain, empty, plain});
  plain.steward = 1;
  three({plain, plain, plain});
  behind.insists = true;
  behind.steward = 1;
  three({ahead, behind, ahead});
  return seeds;
}

// Whatever three servers claim, all three come to the same end, or take steps that go together.
MPCKDC_FUZZ(epoch_claims, EpochSeeds) {
  ByteReader reader(in);
  std::array<EpochClaim, 3> claims;
  for (EpochClaim& claim : claims) {
    const auto greeting = DecodeGreeting(AsText(reader.Bytes(reader.Uint(1))));
    if (!greeting.ok()) return;
    claim = greeting->epoch;
  }
  const int triple = static_cast<int>(reader.Uint(1) % limits::kMaxTriples);
  std::array<absl::StatusOr<EpochStep>, 3> steps;
  for (int p = 0; p < 3; ++p) steps[p] = ChooseEpochStep(claims, p, triple);
  for (int p = 1; p < 3; ++p) {
    FUZZ_CHECK(steps[p].status() == steps[0].status());
    if (!steps[p].ok() || *steps[p] == *steps[0]) continue;
    for (const EpochStep step : {*steps[p], *steps[0]}) {
      FUZZ_CHECK(step == EpochStep::kCatchUp || step == EpochStep::kWait);
    }
  }
  const auto receiver = Receiver(claims);
  FUZZ_CHECK(!receiver || (*receiver >= 0 && *receiver < 3));
  static_cast<void>(CheckSettled(claims));
}

FuzzSeeds ReportSeeds() {
  return {EncodeReport({Suspects::One(1),
                        "a proof does not hold",
                        {9},
                        77,
                        absl::FromUnixSeconds(1'800'000'000)}),
          EncodeReport({Suspects::Neighbours(2), "", {}, 0, absl::UnixEpoch()})};
}

MPCKDC_FUZZ(quarantine_item, ReportSeeds) {
  const auto report = DecodeReport(in);
  if (report.ok()) FUZZ_CHECK(EncodeReport(*report) == AsText(in));
}

}  // namespace
}  // namespace mpckdc
