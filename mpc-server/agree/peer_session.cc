// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/agree/steps.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/agree/confirm_view.h"
#include "mpc-server/agree/epoch_change.h"
#include "mpc-server/agree/line_trial.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/proof/batch_verifier.h"
#include "mpc-server/share/deviation.h"

namespace mpckdc {
namespace {

constexpr absl::Duration kConnectWindow = absl::Seconds(1);
constexpr absl::Duration kRefusalWindow = absl::Milliseconds(500);

absl::Status OpenRings(EngineState& state, const EpochClaim& claim, PeerSession& session) {
  SessionOptions options;
  options.party = state.party;
  options.realm = state.meta.identity.realm;
  options.cluster = state.store->cluster();
  options.rings = static_cast<uint8_t>(session.channels.size());
  options.randomness = state.options.randomness;
  options.security = state.options.security;
  options.round_timeout = limits::kPeerTimeout;
  std::vector<PartyContext*> rings;
  for (const std::unique_ptr<PeerChannel>& channel : session.channels) {
    options.ring = static_cast<uint8_t>(rings.size());
    options.greeting =
        EncodeGreeting({state.sealing.mark(), state.Now(), state.options.max_renewable_life,
                        state.options.clock_skew, state.protocol(), claim});
    ASSIGN_OR_RETURN(std::unique_ptr<PartyContext> party,
                     OpenSession(options, *channel, *state.clock, *state.random,
                                 state.Now() + limits::kPeerTimeout));
    if (options.security == Security::kActive) {
      session.verifiers.push_back(std::make_unique<proof::BatchVerifier>(*party, *state.random));
    }
    session.parties.push_back(std::move(party));
    rings.push_back(session.parties.back().get());
  }
  session.long_ring.emplace(std::vector<PartyContext*>{rings.back()});
  rings.pop_back();
  session.rings.emplace(std::move(rings));
  return absl::OkStatus();
}

// It may be idle for hours. Whether it works is found out now and not by the first login on it: a
// round as a batch of its own, the session's first.
absl::Status TryLongRing(PeerSession& session) {
  session.long_ring->rings.BeginBatch(++session.number);
  ConfirmView nothing(session.party().party(), Digest{});
  Circuit* const circuits[] = {&nothing};
  return RunTogether(session.long_ring->party(), circuits);
}

// Where tables may go over it. Whoever has heard both greetings knows what the three force. After a
// refresh, for which jobs wait, the three go by what they found together in the session before.
absl::Status TryLongLine(EngineState& state, PeerSession& session, bool refreshed) {
  if (state.options.line_trial_bytes == 0 || session.protocol == ProtocolSetting::kReplicated) {
    return absl::OkStatus();
  }
  PartyContext& party = session.long_ring->party();
  if (!refreshed || !state.trial.has_value()) {
    // Of the batch that TryLongRing() began and whose round 0 it used.
    ASSIGN_OR_RETURN(state.trial,
                     TryLines(party.channel(), *state.clock,
                              {.session = party.session(), .batch = party.batch(), .round = 1},
                              state.options.line_trial_bytes));
    state.lines.Tried(*state.trial, state.Now());
  }
  const LineTrial& trial = *state.trial;
  if (!trial.any_slow) return absl::OkStatus();
  const size_t quick = std::max(trial.quick_bytes, limits::kQuickBytesAtLeast);
  for (const std::unique_ptr<PartyContext>& each : session.parties) {
    each->SetQuickBytes(quick);
    each->channel().LimitUnsent(quick / 2);
  }
  return absl::OkStatus();
}

absl::Status HearGreeting(EngineState& state, PeerSession& session, Neighbour neighbour,
                          EpochClaim* claim) {
  ASSIGN_OR_RETURN(Greeting greeting, DecodeGreeting(session.party().greeting(neighbour)));
  const absl::Duration own_life = state.options.max_renewable_life;
  if (greeting.max_renewable_life != own_life) {
    return absl::FailedPreconditionError(
        absl::StrCat("max_renewable_life is ", absl::FormatDuration(own_life), " here and ",
                     absl::FormatDuration(greeting.max_renewable_life), " at the ",
                     neighbour == Neighbour::kPrev ? "previous" : "next", " party"));
  }
  if (Contradict(state.protocol(), greeting.protocol)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "[engine] protocol is ", SettingName(state.protocol()), " here and ",
        SettingName(greeting.protocol), " at the ",
        neighbour == Neighbour::kPrev ? "previous" : "next",
        " party: servers that force one must force the same one, or leave it to auto"));
  }
  *claim = greeting.epoch;
  session.protocol = Together(session.protocol, greeting.protocol);
  session.clock_skew = std::min(session.clock_skew, greeting.clock_skew);
  const absl::Time now = state.Now();
  state.clocks.Hear(neighbour, greeting.time, now);
  state.sealing.Join(greeting.mark, now);
  return absl::OkStatus();
}

// Until the peers have heard and gone: what is left unread when a connection is closed can take the
// reason with it.
void Drain(PeerChannel& channel, absl::Time deadline) {
  for (const Neighbour from : {Neighbour::kPrev, Neighbour::kNext}) {
    while (channel.Receive(from, deadline).ok()) {
    }
  }
}

}  // namespace

absl::Status EpochPassed() {
  return absl::UnavailableError("the shares were refreshed by another triple of servers");
}

void RefusePeerSession(EngineState& state, const std::string& reason) {
  absl::StatusOr<PeerChannels> channels = state.peers->Connect(state.Now() + kConnectWindow);
  if (!channels.ok()) return;
  for (const std::unique_ptr<PeerChannel>& channel : *channels) {
    TellBoth(*channel, absl::StrCat("P", state.party, ": ", reason));
  }
  const absl::Time until = state.Now() + kRefusalWindow;
  for (const std::unique_ptr<PeerChannel>& channel : *channels) Drain(*channel, until);
}

void NoteDeviation(EngineState& state, const absl::Status& ended,
                   const std::array<uint8_t, 16>& session, uint64_t batch) {
  const std::optional<Suspects> suspects = SuspectsOf(ended);
  if (!suspects.has_value()) return;
  state.quarantine.Enter({*suspects, std::string(ended.message()), session, batch, state.Now()});
}

absl::Status PeerSession::SendToBoth(const std::string& message) {
  for (const Neighbour to : {Neighbour::kNext, Neighbour::kPrev}) {
    RETURN_IF_ERROR(channel().Send(to, FrameType::kAgreement, AsBytes(message)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<PeerSession>> OpenPeerSession(EngineState& state) {
  auto session = std::make_unique<PeerSession>();
  session->protocol = state.protocol();
  session->clock_skew = absl::Trunc(state.options.clock_skew, absl::Microseconds(1));
  ASSIGN_OR_RETURN(session->channels, state.peers->Connect(state.Now() + kConnectWindow));
  std::array<EpochClaim, kParties> claims;
  ASSIGN_OR_RETURN(claims[state.party], OwnClaim(state));
  const EpochClaim& own = claims[state.party];
  if (const absl::Status opened = OpenRings(state, own, *session); !opened.ok()) return opened;
  RETURN_IF_ERROR(TryLongRing(*session));
  state.sealing.NewSession();
  absl::Status heard;
  for (const Neighbour n : {Neighbour::kPrev, Neighbour::kNext}) {
    if (heard.ok()) heard = HearGreeting(state, *session, n, &claims[PartyAt(state.party, n)]);
  }
  bool refreshed = false;
  if (heard.ok()) heard = SettleEpoch(state, *session, claims, &refreshed);
  if (!heard.ok()) {
    session->party().Abort(heard.message());
    return heard;
  }
  RETURN_IF_ERROR(TryLongLine(state, *session, refreshed));
  return session;
}

}  // namespace mpckdc
