// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/agreement.h"

#include <cstring>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc {
namespace {

constexpr uint8_t kProposal = 1, kVote = 2, kGreetingVersion = 2;

class Writer {
 public:
  void Number(uint64_t value, int size) {
    for (int i = size - 1; i >= 0; --i) bytes_.push_back(static_cast<char>(value >> (8 * i)));
  }
  void Time(absl::Time time) { Number(static_cast<uint64_t>(absl::ToUnixMicros(time)), 8); }
  template <size_t N>
  void Fixed(const std::array<uint8_t, N>& value) {
    bytes_.append(reinterpret_cast<const char*>(value.data()), N);
  }
  void Bytes(absl::string_view bytes) { bytes_.append(bytes.data(), bytes.size()); }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads past the end give zeros and make good() false.
class Reader {
 public:
  explicit Reader(absl::string_view bytes) : bytes_(bytes) {}

  uint64_t Number(size_t size) {
    if (!Has(size)) return 0;
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i) value = value << 8 | static_cast<uint8_t>(bytes_[i]);
    bytes_.remove_prefix(size);
    return value;
  }
  absl::Time Time() { return absl::FromUnixMicros(static_cast<int64_t>(Number(8))); }
  template <size_t N>
  void Fixed(std::array<uint8_t, N>* value) {
    if (!Has(N)) return;
    std::memcpy(value->data(), bytes_.data(), N);
    bytes_.remove_prefix(N);
  }
  size_t left() const { return bytes_.size(); }
  bool good() const { return good_; }
  bool AtEnd() const { return good_ && bytes_.empty(); }

 private:
  bool Has(size_t size) {
    good_ = good_ && bytes_.size() >= size;
    return good_;
  }

  absl::string_view bytes_;
  bool good_ = true;
};

constexpr size_t kEntryBytes = 16 + 8 + 32 + 1;

absl::Status Bad(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("agreement: ", what));
}

absl::Status CheckEntries(const Proposal& proposal) {
  absl::flat_hash_set<std::pair<GroupId, uint64_t>> seen;
  for (const ProposalEntry& entry : proposal.entries) {
    if (!seen.insert({entry.group, entry.id}).second) return Bad("an entry is proposed twice");
    if (entry.code == kVoteMissing || entry.code > kLastVerdict) {
      return Bad(absl::StrCat("unknown vote ", entry.code, " of the leader"));
    }
  }
  if (proposal.nonces > proposal.entries.size() * limits::kMaxPartsPerJob) {
    return Bad("more nonces proposed than the jobs can use");
  }
  return absl::OkStatus();
}

GroupId ComputeKdcKey(const KdcIdentity& kdc) {
  Writer out;
  out.Number(kdc.name.size(), 2);
  out.Bytes(kdc.name);
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
  Writer out;
  out.Bytes("mpc-kdc draw v1");
  out.Number(0, 1);
  out.Fixed(info.handle);
  out.Number(info.principal.size(), 2);
  out.Bytes(info.principal);
  out.Number(info.kvno, 4);
  out.Number(static_cast<uint32_t>(info.enctype), 4);
  out.Number(static_cast<uint32_t>(info.salt_type), 4);
  out.Number(info.salt.size(), 2);
  out.Bytes(info.salt);
  out.Number(static_cast<uint8_t>(info.key_class), 1);
  out.Number(static_cast<uint8_t>(info.gate), 1);
  return Sha256(out.Take());
}

std::string EncodeProposal(const Proposal& proposal) {
  Writer out;
  out.Number(kProposal, 1);
  out.Number(static_cast<uint8_t>(proposal.kind), 1);
  out.Number(proposal.number, 4);
  out.Time(proposal.time);
  out.Fixed(proposal.first_nonce);
  out.Number(proposal.nonces, 4);
  out.Number(proposal.entries.size(), 4);
  for (const ProposalEntry& entry : proposal.entries) {
    out.Fixed(entry.group);
    out.Number(entry.id, 8);
    out.Fixed(entry.digest);
    out.Number(entry.code, 1);
  }
  return out.Take();
}

absl::StatusOr<Proposal> DecodeProposal(absl::string_view bytes) {
  Reader in(bytes);
  if (in.Number(1) != kProposal) return Bad("not a proposal");
  Proposal proposal;
  const uint64_t kind = in.Number(1);
  if (kind < 1 || kind > 3) return Bad(absl::StrCat("unknown kind of batch ", kind));
  proposal.kind = static_cast<BatchKind>(kind);
  proposal.number = static_cast<uint32_t>(in.Number(4));
  proposal.time = in.Time();
  in.Fixed(&proposal.first_nonce);
  proposal.nonces = static_cast<uint32_t>(in.Number(4));
  const uint64_t entries = in.Number(4);
  if (!in.good() || entries > limits::kMaxBatchJobs || in.left() != entries * kEntryBytes) {
    return Bad(absl::StrCat("proposal of ", bytes.size(), " bytes with ", entries, " entries"));
  }
  proposal.entries.resize(entries);
  for (ProposalEntry& entry : proposal.entries) {
    in.Fixed(&entry.group);
    entry.id = in.Number(8);
    in.Fixed(&entry.digest);
    entry.code = static_cast<VoteCode>(in.Number(1));
  }
  RETURN_IF_ERROR(CheckEntries(proposal));
  return proposal;
}

std::string EncodeVote(const Vote& vote) {
  Writer out;
  out.Number(kVote, 1);
  out.Number(vote.number, 4);
  out.Fixed(vote.proposal);
  out.Time(vote.time);
  out.Number(vote.codes.size(), 4);
  for (const VoteCode code : vote.codes) out.Number(code, 1);
  return out.Take();
}

absl::StatusOr<Vote> DecodeVote(absl::string_view bytes) {
  Reader in(bytes);
  if (in.Number(1) != kVote) return Bad("not a vote");
  Vote vote;
  vote.number = static_cast<uint32_t>(in.Number(4));
  in.Fixed(&vote.proposal);
  vote.time = in.Time();
  const uint64_t codes = in.Number(4);
  if (!in.good() || in.left() != codes) {
    return Bad(absl::StrCat("vote of ", bytes.size(), " bytes with ", codes, " codes"));
  }
  vote.codes.resize(codes);
  for (VoteCode& code : vote.codes) {
    code = static_cast<VoteCode>(in.Number(1));
    if (code > kLastVerdict) return Bad(absl::StrCat("unknown vote ", code));
  }
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
  Writer out;
  out.Number(kGreetingVersion, 1);
  out.Fixed(greeting.mark);
  out.Time(greeting.time);
  out.Number(static_cast<uint64_t>(absl::ToInt64Seconds(greeting.max_renewable_life)), 8);
  return out.Take();
}

absl::StatusOr<Greeting> DecodeGreeting(absl::string_view bytes) {
  Reader in(bytes);
  if (in.Number(1) != kGreetingVersion) return Bad("greeting of another version");
  Greeting greeting;
  in.Fixed(&greeting.mark);
  greeting.time = in.Time();
  greeting.max_renewable_life = absl::Seconds(static_cast<int64_t>(in.Number(8)));
  if (!in.AtEnd()) return Bad(absl::StrCat("greeting of ", bytes.size(), " bytes"));
  return greeting;
}

}  // namespace mpckdc
