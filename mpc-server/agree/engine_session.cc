// SPDX-License-Identifier: Apache-2.0
//
// Connecting, and the loop in which the leader proposes and the followers vote.
#include <algorithm>
#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/agree/engine_core.h"
#include "mpc-server/base/bytes.h"

namespace mpckdc {
namespace {

absl::string_view Text(const SecretBytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

absl::Span<const uint8_t> Payload(const std::string& text) { return AsBytes(text); }

std::string Rounded(absl::Duration d) {
  const absl::Duration half = absl::Milliseconds(d < absl::ZeroDuration() ? -50 : 50);
  return absl::FormatDuration(absl::Trunc(d + half, absl::Milliseconds(100)));
}

const char* PeerName(Neighbour n) { return n == Neighbour::kPrev ? "previous" : "next"; }

}  // namespace

// ---- Sessions ----

void JobEngine::Impl::Main() {
  while (!stopping()) {
    const absl::Status ended = RunSession();
    if (stopping()) break;
    {
      const absl::MutexLock lock(&mu_);
      status_.peers_connected = false;
      status_.peers_detail = std::string(ended.message());
      executor_->Wait(&mu_, clock_->Now() + ReconnectPause());
    }
    if (observer_ != nullptr) observer_->OnPeers(false, std::string(ended.message()));
    HousekeepingAt(clock_->Now());
  }
  const absl::MutexLock lock(&mu_);
  status_.peers_connected = false;
}

// Of random length. Servers that pause equally long can chase each other round the ring for ever,
// each meeting one neighbour's new attempt and the other's last one; who pauses longest finds both
// waiting.
absl::Duration JobEngine::Impl::ReconnectPause() {
  uint8_t random = 0;
  random_->Fill(absl::MakeSpan(&random, 1));
  return kReconnectPause + random * kReconnectJitter / 256;
}

absl::Status JobEngine::Impl::RunSession() {
  absl::StatusOr<std::unique_ptr<PeerSession>> opened = OpenPeers();
  if (!opened.ok()) return opened.status();
  PeerSession& session = **opened;
  {
    const absl::MutexLock lock(&mu_);
    status_.peers_connected = true;
    status_.peers_detail.clear();
    ++status_.sessions;
  }
  if (observer_ != nullptr) observer_->OnPeers(true, "");
  JudgeClocks(session);
  heartbeat_at_ = session.heard = clock_->Now();
  absl::Status status;
  while (status.ok() && !stopping()) {
    status = party_ == kLeader ? Lead(session) : Follow(session);
    HousekeepingAt(clock_->Now());
  }
  if (status.ok()) session.party().Abort("server is stopping");
  return status;
}

absl::StatusOr<std::unique_ptr<PeerSession>> JobEngine::Impl::OpenPeers() {
  auto session = std::make_unique<PeerSession>();
  absl::StatusOr<PeerChannels> channels = peers_->Connect(clock_->Now() + kConnectWindow);
  if (!channels.ok()) return channels.status();
  session->channels = *std::move(channels);
  if (const absl::Status opened = OpenRings(*session); !opened.ok()) return opened;
  for (const Neighbour n : {Neighbour::kPrev, Neighbour::kNext}) {
    const absl::Status met = MeetNeighbour(*session, n);
    if (!met.ok()) {
      session->party().Abort(met.message());
      return met;
    }
  }
  return session;
}

absl::Status JobEngine::Impl::OpenRings(PeerSession& session) {
  SessionOptions options;
  options.party = party_;
  options.realm = meta_.identity.realm;
  options.cluster = meta_.identity.cluster;
  options.epoch = meta_.epoch;
  options.rings = static_cast<uint8_t>(session.channels.size());
  options.randomness = options_.randomness;
  options.round_timeout = limits::kPeerTimeout;
  std::vector<PartyContext*> rings;
  for (const std::unique_ptr<PeerChannel>& channel : session.channels) {
    options.ring = static_cast<uint8_t>(rings.size());
    options.greeting = EncodeGreeting({nonces_.mark(), clock_->Now(), options_.max_renewable_life});
    absl::StatusOr<std::unique_ptr<PartyContext>> party =
        OpenSession(options, *channel, *clock_, *random_, clock_->Now() + limits::kPeerTimeout);
    if (!party.ok()) return party.status();
    session.parties.push_back(*std::move(party));
    rings.push_back(session.parties.back().get());
  }
  session.rings.emplace(std::move(rings));
  session.cts.emplace(party_);
  return absl::OkStatus();
}

absl::Status JobEngine::Impl::MeetNeighbour(PeerSession& session, Neighbour neighbour) {
  absl::StatusOr<Greeting> greeting = DecodeGreeting(session.party().greeting(neighbour));
  if (!greeting.ok()) return greeting.status();
  if (greeting->max_renewable_life != options_.max_renewable_life) {
    return absl::FailedPreconditionError(
        absl::StrCat("max_renewable_life is ", absl::FormatDuration(options_.max_renewable_life),
                     " here and ", absl::FormatDuration(greeting->max_renewable_life),
                     " at the ", PeerName(neighbour), " party"));
  }
  const absl::Time now = clock_->Now();
  NoteSkew(neighbour, greeting->time, now);
  const absl::Status joined = nonces_.Join(greeting->mark, now);
  // The other operations go on.
  if (!joined.ok()) session.sealing_stopped = std::string(joined.message());
  return absl::OkStatus();
}

// ---- The leader ----

absl::Status JobEngine::Impl::Lead(PeerSession& session) {
  if (!WaitForWork()) return absl::OkStatus();
  Ballot ballot(store_);
  // After a jump of the clock both peers' clocks are heard first, since it takes two to suspect
  // one: see LookAtClocks(). The clock may jump between the two votes on one proposal.
  if (HeardBoth(clock_->Now()) && !PickKeyWork(ballot)) PickJobs(session, ballot);
  ballot.proposal.number = ++session.number;
  ballot.proposal.time = clock_->Now();
  ballot.details.resize(ballot.proposal.entries.size());
  ballot.bytes = EncodeProposal(ballot.proposal);
  ballot.hash = Sha256(ballot.bytes);
  for (const Neighbour n : {Neighbour::kNext, Neighbour::kPrev}) {
    const absl::Status sent =
        session.channel().Send(n, FrameType::kAgreement, Payload(ballot.bytes));
    if (!sent.ok()) return sent;
  }
  heartbeat_at_ = clock_->Now() + kHeartbeat;
  const absl::Status voted = CollectVotes(session, ballot);
  return voted.ok() ? RunAgreed(session, ballot) : voted;
}

// When the batch that begins with this job may start: at once, or a little later when the second jobs
// of many logins are about to come, or in mode `fixed` at the first tick after the job came and after
// the last batch.
absl::Time JobEngine::Impl::StartOf(const WaitingJob& job, absl::Time now) const {
  if (options_.mode == BatchMode::kWorkConserving) {
    return replies_until_ > now + limits::kMaxReplyWait ? now : std::max(now, replies_until_);
  }
  const int64_t window = absl::ToInt64Nanoseconds(options_.batch_window);
  const int64_t since = absl::ToUnixNanos(std::max(job.received, started_at_));
  const absl::Time tick = absl::FromUnixNanos((since / window + 1) * window);
  return tick > now + options_.batch_window ? now : tick;  // the clock was set back
}

// True when there is something to propose, the heartbeat included; false when stopping.
bool JobEngine::Impl::WaitForWork() {
  while (!stopping()) {
    const absl::Time now = clock_->Now();
    FailExpired(now);
    FailExpiredKeyWork(now);
    const absl::MutexLock lock(&mu_);
    const std::vector<WaitingJobPtr> first = queue_.Ready(now, 1, limits::kMaxBatchBlocks);
    const bool jobs = !first.empty();
    const absl::Time start = jobs ? StartOf(*first[0], now) : absl::InfiniteFuture();
    // A clock that was set back must not make the leader fall silent.
    const bool heartbeat = now >= heartbeat_at_ || heartbeat_at_ > now + kHeartbeat;
    if (NextKeyWork() <= now || heartbeat || start <= now) return true;
    absl::Time until = std::min({heartbeat_at_, NextKeyWork(), queue_.NextTry(now)});
    if (jobs) until = std::min(heartbeat_at_, start);
    executor_->Wait(&mu_, until);
  }
  return false;
}

// ---- The followers ----

absl::Status JobEngine::Impl::Follow(PeerSession& session) {
  const absl::Time now = clock_->Now();
  absl::StatusOr<Frame> frame =
      session.channel().Receive(NeighbourOf(kLeader), now + kFollowerPoll);
  if (absl::IsDeadlineExceeded(frame.status())) {
    session.heard = std::min(session.heard, now);  // the clock was set back
    if (now < session.heard + kLeaderSilence) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("the leader (party 0) has been silent for ",
                                               absl::FormatDuration(kLeaderSilence)));
  }
  if (!frame.ok()) return frame.status();
  session.heard = clock_->Now();
  if (frame->type != FrameType::kAgreement) {
    return absl::DataLossError(absl::StrCat("agreement: unexpected frame of type ",
                                            FrameTypeName(frame->type), " from the leader"));
  }
  Ballot ballot(store_);
  ballot.bytes = std::string(Text(frame->payload));
  ballot.hash = Sha256(ballot.bytes);
  absl::StatusOr<Proposal> proposal = DecodeProposal(ballot.bytes);
  if (!proposal.ok()) return proposal.status();
  ballot.proposal = *std::move(proposal);
  absl::Status status = CheckLeader(session, ballot);
  if (status.ok()) status = CastVote(session, ballot);
  if (status.ok()) status = CollectVotes(session, ballot);
  return status.ok() ? RunAgreed(session, ballot) : status;
}

// What would be wrong with any proposal; the nonces are checked where they are reserved.
absl::Status JobEngine::Impl::CheckLeader(const PeerSession& session, const Ballot& ballot) {
  const Proposal& proposal = ballot.proposal;
  if (proposal.number != session.number + 1) {
    return absl::DataLossError(absl::StrCat("agreement: proposal ", proposal.number, " after ",
                                            session.number));
  }
  const absl::Time now = clock_->Now();
  NoteSkew(NeighbourOf(kLeader), proposal.time, now);
  JudgeClocks(session);
  if (proposal.kind == BatchKind::kDraw && proposal.entries.size() != 1) {
    return absl::DataLossError("agreement: more than one key to draw");
  }
  if (proposal.kind == BatchKind::kVerify && proposal.entries.size() > kVerifyKeysPerBatch) {
    return absl::DataLossError("agreement: too many keys to verify");
  }
  return absl::OkStatus();
}

absl::Status JobEngine::Impl::CastVote(PeerSession& session, Ballot& ballot) {
  session.number = ballot.proposal.number;
  const size_t entries = ballot.proposal.entries.size();
  ballot.codes.assign(entries, kVoteMissing);
  ballot.details.resize(entries);
  ballot.jobs.resize(entries);
  if (ballot.proposal.kind == BatchKind::kJobs) {
    OpinionOnJobs(session, ballot);
  } else {
    OpinionOnKeyWork(ballot);
  }
  const std::string vote = EncodeVote(
      {ballot.proposal.number, ballot.hash, clock_->Now(), ballot.codes});
  ballot.votes[party_] = vote;
  for (const Neighbour n : {Neighbour::kNext, Neighbour::kPrev}) {
    const absl::Status sent = session.channel().Send(n, FrameType::kAgreement, Payload(vote));
    if (!sent.ok()) return sent;
  }
  return absl::OkStatus();
}

// ---- Votes ----

absl::Status JobEngine::Impl::TakeVote(PeerSession& session, Neighbour from, Ballot& ballot,
                                       std::vector<VoteCode>* codes) {
  absl::StatusOr<Frame> frame =
      session.channel().Receive(from, clock_->Now() + limits::kPeerTimeout);
  if (!frame.ok()) return frame.status();
  const int voter = from == Neighbour::kNext ? NextParty(party_) : PrevParty(party_);
  ballot.votes[voter] = std::string(Text(frame->payload));
  absl::StatusOr<Vote> vote = DecodeVote(ballot.votes[voter]);
  if (!vote.ok()) return vote.status();
  NoteSkew(from, vote->time, clock_->Now());
  if (vote->number != ballot.proposal.number || vote->proposal != ballot.hash) {
    return absl::DataLossError(
        absl::StrCat("agreement: party ", voter, " votes on proposal ", vote->number,
                     " and was told another one than this server's ", ballot.proposal.number));
  }
  const size_t entries = ballot.proposal.entries.size();
  if (vote->codes.size() != entries) {
    return absl::DataLossError(absl::StrCat("agreement: party ", voter, " votes on ",
                                            vote->codes.size(), " entries of ", entries));
  }
  *codes = std::move(vote->codes);
  return absl::OkStatus();
}

absl::Status JobEngine::Impl::CollectVotes(PeerSession& session, Ballot& ballot) {
  std::array<std::vector<VoteCode>, 3> codes;
  for (const ProposalEntry& entry : ballot.proposal.entries) codes[kLeader].push_back(entry.code);
  if (party_ != kLeader) codes[party_] = ballot.codes;
  for (int party = 0; party < kParties; ++party) {
    if (party == kLeader || party == party_) continue;
    const absl::Status taken = TakeVote(session, NeighbourOf(party), ballot, &codes[party]);
    if (!taken.ok()) return taken;
  }
  JudgeClocks(session);
  CombineVotes(ballot, codes);
  return absl::OkStatus();
}

void JobEngine::Impl::CombineVotes(Ballot& ballot,
                                   const std::array<std::vector<VoteCode>, 3>& codes) {
  for (size_t i = 0; i < ballot.proposal.entries.size(); ++i) {
    const Agreed agreed = Combine({codes[0][i], codes[1][i], codes[2][i]});
    ballot.agreed.push_back(agreed);
    // Who says the same says why itself.
    if (agreed.code == kVoteOk || agreed.code == codes[party_][i]) continue;
    ballot.details[i] = absl::StrCat("server ", agreed.by, " said ",
                                     VerdictName(static_cast<Verdict>(agreed.code)));
  }
}

absl::Status JobEngine::Impl::RunAgreed(PeerSession& session, Ballot& ballot) {
  if (ballot.proposal.entries.empty()) return absl::OkStatus();
  switch (ballot.proposal.kind) {
    case BatchKind::kJobs: return RunJobs(session, ballot);
    case BatchKind::kDraw: return RunDraw(session, ballot);
    case BatchKind::kVerify: return RunVerify(session, ballot);
  }
  return absl::OkStatus();
}

// Everything that must be the same at the three for the batch to make sense. `facts`: what the
// records say about the keys used.
Digest JobEngine::Impl::ViewOf(const Ballot& ballot, const std::string& facts) const {
  std::string view("mpc-kdc view v1");
  view.push_back('\0');
  for (const std::string* part : {&ballot.bytes, &ballot.votes[1], &ballot.votes[2], &facts}) {
    const Digest digest = Sha256(*part);
    view.append(reinterpret_cast<const char*>(digest.data()), digest.size());
  }
  return Sha256(view);
}

// ---- Small things ----

Neighbour JobEngine::Impl::NeighbourOf(int party) const {
  assert(party != party_);
  return party == NextParty(party_) ? Neighbour::kNext : Neighbour::kPrev;
}

void JobEngine::Impl::NoteSkew(Neighbour neighbour, absl::Time theirs, absl::Time now) {
  const size_t index = neighbour == Neighbour::kNext;
  skew_[index] = theirs - now;
  heard_at_[index] = now;
  {
    const absl::MutexLock lock(&mu_);
    (neighbour == Neighbour::kNext ? status_.skew_next : status_.skew_prev) = skew_[index];
  }
  // Told once, and again when it is well below.
  const bool large = Beyond(neighbour, limits::kMaxPeerSkew);
  if (skew_told_[index] == large) return;
  if (!large && Beyond(neighbour, limits::kMaxPeerSkew / 2)) return;
  skew_told_[index] = large;
  const int peer = neighbour == Neighbour::kNext ? NextParty(party_) : PrevParty(party_);
  if (observer_ != nullptr) observer_->OnPeerSkew(peer, skew_[index]);
}

// Both peers' clocks, lately by a clock that has not jumped since.
bool JobEngine::Impl::HeardBoth(absl::Time now) const {
  return std::all_of(heard_at_.begin(), heard_at_.end(), [now](absl::Time heard) {
    return now >= heard && now < heard + 3 * kHeartbeat;
  });
}

bool JobEngine::Impl::Beyond(Neighbour neighbour, absl::Duration limit) const {
  return absl::AbsDuration(skew_[neighbour == Neighbour::kNext]) > limit;
}

// Two clocks against one: which one is wrong is clear enough to stop. When all three differ, nobody
// knows, and all stop. One peer alone cannot make a server doubt itself, but a follower takes the
// times of its seals from the leader.
ClockTrouble JobEngine::Impl::LookAtClocks() const {
  const absl::Duration limit = options_.clock_skew;
  if (Beyond(Neighbour::kPrev, limit) && Beyond(Neighbour::kNext, limit)) {
    return ClockTrouble::kAgainstBoth;
  }
  if (party_ != kLeader && Beyond(NeighbourOf(kLeader), limit)) return ClockTrouble::kAgainstLeader;
  return ClockTrouble::kNone;
}

// The text stays that of the moment when the trouble began: it goes to the audit log when it
// changes, and the differences change with every message.
void JobEngine::Impl::JudgeClocks(const PeerSession& session) {
  const ClockTrouble found = LookAtClocks();
  if (found != clocks_) {
    clocks_ = found;
    clock_trouble_.clear();
    if (found == ClockTrouble::kAgainstBoth) {
      clock_trouble_ = absl::StrCat("this server's clock differs from both peers' by ",
                                    Rounded(-skew_[0]), " and ", Rounded(-skew_[1]),
                                    ": set it (chrony), until then no timestamp is judged");
    } else if (found == ClockTrouble::kAgainstLeader) {
      const absl::Duration skew = skew_[NeighbourOf(kLeader) == Neighbour::kNext];
      clock_trouble_ = absl::StrCat("the leader's clock differs from this server's by ",
                                    Rounded(skew), ": set the clocks (chrony)");
    }
    const absl::MutexLock lock(&mu_);
    status_.clock_suspect = found != ClockTrouble::kNone;
  }
  UpdateDegraded(session);
}

void JobEngine::Impl::UpdateDegraded(const PeerSession& session) {
  if (!session.sealing_stopped.empty()) return SetDegraded(session.sealing_stopped);
  SetDegraded(clock_trouble_.empty() ? nonce_trouble_ : clock_trouble_);
}

void JobEngine::Impl::SetDegraded(const std::string& reason) {
  if (reason == degraded_) return;
  degraded_ = reason;
  {
    const absl::MutexLock lock(&mu_);
    status_.degraded = reason;
  }
  if (observer_ != nullptr) observer_->OnDegraded(reason);
}

void JobEngine::Impl::HousekeepingAt(absl::Time now) {
  FailExpired(now);
  FailExpiredKeyWork(now);
  RecordUnbatched();
  quotas_.Advance(now);
  if (now < housekeeping_at_ && housekeeping_at_ <= now + kHeartbeat) return;
  housekeeping_at_ = now + kHeartbeat;
  NoteRecorder();
  quotas_.Prune();
  grants_.Prune(now);
  pending_.Prune(now);
  // By a clock that the peers confirm: what a wrong one drops may be fresh by the right one. A
  // store that cannot prune now can later; expired entries do no harm.
  if (HeardBoth(now) && clocks_ == ClockTrouble::kNone) (void)replays_.Prune(now);
  const absl::MutexLock lock(&mu_);
  if (new_quotas_.has_value()) quotas_.SetRates(*std::exchange(new_quotas_, std::nullopt));
  status_.grants = grants_.size();
  status_.quota_buckets = quotas_.size();
}

}  // namespace mpckdc
