// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/agreement.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/share/deviation.h"

namespace mpckdc {
namespace {

constexpr uint8_t kProposal = 1, kVote = 2, kGreetingVersion = 6;

uint64_t Micros(absl::Time time) { return static_cast<uint64_t>(absl::ToUnixMicros(time)); }
absl::Time TimeFrom(ByteReader& in) {
  return absl::FromUnixMicros(static_cast<int64_t>(in.Uint(8)));
}

constexpr size_t kEntryBytes = 16 + 8 + 32 + 1 + 1;  // without keys
constexpr size_t kVoteBytes = 1 + 1;                 // the same

absl::Status Bad(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("agreement: ", what));
}

absl::Status CheckEntries(const Proposal& proposal) {
  absl::flat_hash_set<std::pair<GroupId, uint64_t>> seen;
  for (const ProposalEntry& entry : proposal.entries) {
    if (!seen.insert({entry.group, entry.id}).second) {
      return Deviation(Suspects::One(kLeader), "agreement: the leader proposes an entry twice");
    }
    if (entry.code == kVoteMissing || entry.code > kLastVerdict) {
      return Bad(absl::StrCat("unknown vote ", entry.code, " of the leader"));
    }
  }
  if (proposal.nonces > proposal.entries.size() * limits::kMaxPartsPerJob) {
    return Bad("more nonces proposed than the jobs can use");
  }
  return absl::OkStatus();
}

void AppendLine(const LineState& line, ByteWriter* out) {
  const int64_t micros = absl::ToInt64Microseconds(line.distance);
  out->Uint(static_cast<uint64_t>(std::clamp<int64_t>(micros, 0, UINT32_MAX)), 4);
  out->Uint(line.rate, 8);
}

LineState ReadLine(ByteReader& in) {
  const absl::Duration distance = absl::Microseconds(static_cast<int64_t>(in.Uint(4)));
  return {distance, in.Uint(8)};
}

// None for a number that is no protocol, or not of such a batch.
std::optional<CtsProtocol> ProtocolOf(uint64_t protocol, bool may_be_garbled) {
  if (protocol == static_cast<uint8_t>(CtsProtocol::kReplicated)) return CtsProtocol::kReplicated;
  const bool garbled = protocol == static_cast<uint8_t>(CtsProtocol::kGarbled);
  if (garbled && may_be_garbled) return CtsProtocol::kGarbled;
  return std::nullopt;
}

void AppendTags(const EntryTags& keys, ByteWriter* out) {
  out->Uint(keys.size(), 1);
  for (const RecordTags& tags : keys) {
    out->Fixed(tags.with_prev);
    out->Fixed(tags.with_next);
  }
}

bool ReadTags(ByteReader& in, EntryTags* keys) {
  const uint64_t count = in.Uint(1);
  if (count > kMaxKeysOfEntry) return false;
  keys->resize(count);
  for (RecordTags& tags : *keys) {
    in.Into(tags.with_prev);
    in.Into(tags.with_next);
  }
  return in.ok();
}

GroupId ComputeKdcKey(const KdcIdentity& kdc) {
  ByteWriter out;
  out.Counted(kdc.name, 2);
  out.Fixed(kdc.session);
  const Digest digest = Sha256(out.Take());
  GroupId key;
  std::memcpy(key.data(), digest.data(), key.size());
  return key;
}

}  // namespace

// The jobs of a stream come one after the other: the last key is kept.
GroupId KdcKey(const KdcIdentity& kdc) {
  thread_local std::optional<std::pair<KdcIdentity, GroupId>> last;
  if (!last || !(last->first == kdc)) last.emplace(kdc, ComputeKdcKey(kdc));
  return last->second;
}

Digest DrawDigest(const KeyInfo& info) {
  ByteWriter out("mpc-kdc draw v1");
  out.Uint(0, 1);
  out.Fixed(info.handle);
  out.Counted(info.principal, 2);
  out.Uint(info.kvno, 4);
  out.Uint(static_cast<uint32_t>(info.enctype), 4);
  out.Uint(static_cast<uint32_t>(info.salt_type), 4);
  out.Counted(info.salt, 2);
  out.Uint(static_cast<uint8_t>(info.key_class), 1);
  out.Uint(static_cast<uint8_t>(info.gate), 1);
  return Sha256(out.Take());
}

Digest CompareDigest(const TransactionId& txn, const Handle& old, absl::Span<const Handle> staged) {
  ByteWriter out("mpc-kdc compare v1");
  out.Fixed(txn);
  out.Fixed(old);
  out.Uint(staged.size(), 4);
  for (const Handle& handle : staged) out.Fixed(handle);
  return Sha256(out.Take());
}

std::string EncodeProposal(const Proposal& proposal) {
  ByteWriter out;
  out.Uint(kProposal, 1);
  out.Uint(static_cast<uint8_t>(proposal.kind), 1);
  out.Uint(static_cast<uint8_t>(proposal.protocol), 1);
  out.Uint(static_cast<uint8_t>(proposal.of_gcm), 1);
  out.Uint(proposal.number, 4);
  out.Uint(Micros(proposal.time), 8);
  out.Fixed(proposal.first_nonce);
  out.Uint(proposal.nonces, 4);
  out.Uint(proposal.entries.size(), 4);
  for (const ProposalEntry& entry : proposal.entries) {
    out.Fixed(entry.group);
    out.Uint(entry.id, 8);
    out.Fixed(entry.digest);
    out.Uint(entry.code, 1);
    AppendTags(entry.keys, &out);
  }
  return out.Take();
}

absl::StatusOr<Proposal> DecodeProposal(absl::string_view bytes) {
  ByteReader in(AsBytes(bytes));
  if (in.Uint(1) != kProposal) return Bad("not a proposal");
  Proposal proposal;
  const uint64_t kind = in.Uint(1);
  if (kind < 1 || kind > kLastBatchKind) return Bad(absl::StrCat("unknown kind of batch ", kind));
  proposal.kind = static_cast<BatchKind>(kind);
  const uint64_t protocol = in.Uint(1);
  const std::optional<CtsProtocol> known = ProtocolOf(protocol, IsLong(proposal.kind));
  if (!known) return Bad(absl::StrCat("protocol ", protocol, " of a batch of kind ", kind));
  proposal.protocol = *known;
  const uint64_t of_gcm = in.Uint(1);
  const std::optional<CtsProtocol> gcm = ProtocolOf(of_gcm, IsOfJobs(proposal.kind));
  if (!gcm) return Bad(absl::StrCat("gcm protocol ", of_gcm, " of a batch of kind ", kind));
  proposal.of_gcm = *gcm;
  proposal.number = static_cast<uint32_t>(in.Uint(4));
  proposal.time = TimeFrom(in);
  in.Into(proposal.first_nonce);
  proposal.nonces = static_cast<uint32_t>(in.Uint(4));
  const uint64_t entries = in.Uint(4);
  if (!in.ok() || entries > limits::kMaxBatchJobs || in.left() < entries * kEntryBytes) {
    return Bad(absl::StrCat("proposal of ", bytes.size(), " bytes with ", entries, " entries"));
  }
  proposal.entries.resize(entries);
  for (ProposalEntry& entry : proposal.entries) {
    in.Into(entry.group);
    entry.id = in.Uint(8);
    in.Into(entry.digest);
    entry.code = static_cast<VoteCode>(in.Uint(1));
    if (!ReadTags(in, &entry.keys)) return Bad("a proposal ends in the keys of an entry");
  }
  if (!in.AtEnd()) return Bad(absl::StrCat(in.left(), " bytes behind a proposal"));
  RETURN_IF_ERROR(CheckEntries(proposal));
  return proposal;
}

std::string EncodeVote(const Vote& vote) {
  ByteWriter out;
  out.Uint(kVote, 1);
  out.Uint(vote.number, 4);
  out.Fixed(vote.proposal);
  out.Uint(Micros(vote.time), 8);
  AppendLine(vote.lines.prev, &out);
  AppendLine(vote.lines.next, &out);
  out.Uint(vote.codes.size(), 4);
  for (size_t i = 0; i < vote.codes.size(); ++i) {
    out.Uint(vote.codes[i], 1);
    AppendTags(vote.keys.empty() ? EntryTags() : vote.keys[i], &out);
  }
  return out.Take();
}

absl::StatusOr<Vote> DecodeVote(absl::string_view bytes) {
  ByteReader in(AsBytes(bytes));
  if (in.Uint(1) != kVote) return Bad("not a vote");
  Vote vote;
  vote.number = static_cast<uint32_t>(in.Uint(4));
  in.Into(vote.proposal);
  vote.time = TimeFrom(in);
  vote.lines.prev = ReadLine(in);
  vote.lines.next = ReadLine(in);
  const uint64_t codes = in.Uint(4);
  if (!in.ok() || codes > limits::kMaxBatchJobs || in.left() < codes * kVoteBytes) {
    return Bad(absl::StrCat("vote of ", bytes.size(), " bytes with ", codes, " codes"));
  }
  vote.codes.resize(codes);
  vote.keys.resize(codes);
  for (size_t i = 0; i < codes; ++i) {
    vote.codes[i] = static_cast<VoteCode>(in.Uint(1));
    if (vote.codes[i] > kLastVerdict) return Bad(absl::StrCat("unknown vote ", vote.codes[i]));
    if (!ReadTags(in, &vote.keys[i])) return Bad("a vote ends in the keys of an entry");
  }
  if (!in.AtEnd()) return Bad(absl::StrCat(in.left(), " bytes behind a vote"));
  return vote;
}

// A missing job comes first: were it refused here, the server that has not received it yet would
// wait for it until its deadline, and the KDC would hear two different verdicts.
Agreed Combine(const std::array<VoteCode, 3>& codes) {
  for (int party = 0; party < 3; ++party) {
    if (codes[party] == kVoteMissing) return {kVoteMissing, party};
  }
  for (int party = 0; party < 3; ++party) {
    if (codes[party] != kVoteOk) return {codes[party], party};
  }
  return {kVoteOk, 0};
}

std::string EncodeGreeting(const Greeting& greeting) {
  ByteWriter out;
  out.Uint(kGreetingVersion, 1);
  out.Fixed(greeting.mark);
  out.Uint(Micros(greeting.time), 8);
  out.Uint(static_cast<uint64_t>(absl::ToInt64Seconds(greeting.max_renewable_life)), 8);
  out.Uint(static_cast<uint64_t>(absl::ToInt64Microseconds(greeting.clock_skew)), 8);
  out.Uint(static_cast<uint8_t>(greeting.protocol), 1);
  out.Uint(greeting.epoch.epoch, 8);
  out.Fixed(greeting.epoch.began_by);
  const EpochClaim& claim = greeting.epoch;
  out.Uint(claim.refresh | claim.busy << 1 | claim.empty << 2 | claim.receiving << 3 |
               claim.agreed << 4 | claim.catch_up << 5 | claim.insists << 6,
           1);
  out.Uint(claim.replace, 1);
  out.Uint(claim.steward, 1);
  out.Uint(greeting.epoch.prepared.has_value(), 1);
  if (greeting.epoch.prepared.has_value()) out.Fixed(*greeting.epoch.prepared);
  return out.Take();
}

absl::StatusOr<Greeting> DecodeGreeting(absl::string_view bytes) {
  ByteReader in(AsBytes(bytes));
  if (in.Uint(1) != kGreetingVersion) return Bad("greeting of another version");
  Greeting greeting;
  in.Into(greeting.mark);
  greeting.time = TimeFrom(in);
  greeting.max_renewable_life = absl::Seconds(static_cast<int64_t>(in.Uint(8)));
  greeting.clock_skew = absl::Microseconds(static_cast<int64_t>(in.Uint(8)));
  const uint64_t protocol = in.Uint(1);
  if (protocol > kLastProtocolSetting) return Bad("unknown protocol of a greeting");
  greeting.protocol = static_cast<ProtocolSetting>(protocol);
  greeting.epoch.epoch = in.Uint(8);
  in.Into(greeting.epoch.began_by);
  const uint64_t flags = in.Uint(1), replace = in.Uint(1), steward = in.Uint(1);
  const uint64_t prepared = in.Uint(1);
  if (flags > 127 || replace > 3 || steward >= limits::kMaxTriples || prepared > 1) {
    return Bad("a greeting's epoch makes no sense");
  }
  greeting.epoch.refresh = (flags & 1) != 0;
  greeting.epoch.busy = (flags & 2) != 0;
  greeting.epoch.empty = (flags & 4) != 0;
  greeting.epoch.receiving = (flags & 8) != 0;
  greeting.epoch.agreed = (flags & 16) != 0;
  greeting.epoch.catch_up = (flags & 32) != 0;
  greeting.epoch.insists = (flags & 64) != 0;
  greeting.epoch.steward = static_cast<uint8_t>(steward);
  greeting.epoch.replace = static_cast<uint8_t>(replace);
  if (prepared == 1) in.Into(greeting.epoch.prepared.emplace());
  if (!in.AtEnd()) return Bad(absl::StrCat("greeting of ", bytes.size(), " bytes"));
  return greeting;
}

}  // namespace mpckdc
