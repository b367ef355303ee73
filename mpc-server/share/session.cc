// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/share/session.h"

#include <sodium.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/share/circuit.h"
#include "mpc-server/share/deviation.h"
#include "mpc-server/share/round_runner.h"
#include "mpc-server/share/verifier.h"

namespace mpckdc {
namespace {

constexpr size_t kNonceSize = 16;
constexpr size_t kMaxRealm = 1024;
constexpr size_t kMaxGreeting = 64 << 10;
constexpr size_t kMaxReason = 512;

using Digest = std::array<uint8_t, 32>;

// min version (2) | max version (2) | party (1) | cluster (2) | nonce (16) | ring (1) |
// rings (1) | randomness (1) | security (1) | realm length (2) | realm | greeting length (4) |
// greeting; numbers big-endian. Versions come first in every version.
struct Hello {
  uint16_t min_version, max_version;
  uint8_t party;
  uint16_t cluster;
  std::array<uint8_t, kNonceSize> nonce;
  uint8_t ring, rings;
  Randomness randomness;
  Security security;
  std::string realm;
  std::string greeting;
};

SecretBytes Encode(const Hello& h) {
  SecretBytes out;
  AppendUint(out, h.min_version, 2);
  AppendUint(out, h.max_version, 2);
  AppendUint(out, h.party, 1);
  AppendUint(out, h.cluster, 2);
  AppendBytes(out, h.nonce);
  AppendUint(out, h.ring, 1);
  AppendUint(out, h.rings, 1);
  AppendUint(out, static_cast<uint8_t>(h.randomness), 1);
  AppendUint(out, static_cast<uint8_t>(h.security), 1);
  AppendUint(out, h.realm.size(), 2);
  AppendBytes(out, AsBytes(h.realm));
  AppendUint(out, h.greeting.size(), 4);
  AppendBytes(out, AsBytes(h.greeting));
  return out;
}

std::string VersionsOf(int party, uint16_t lowest, uint16_t highest) {
  return absl::StrCat(" P", party, " speaks ", lowest, " to ", highest);
}

// What another version says behind its versions is not looked at.
absl::StatusOr<Hello> Decode(absl::Span<const uint8_t> data, const Hello& mine) {
  ByteReader in(data);
  Hello h;
  h.min_version = static_cast<uint16_t>(in.Uint(2));
  h.max_version = static_cast<uint16_t>(in.Uint(2));
  if (in.ok() && (h.min_version > mine.max_version || h.max_version < mine.min_version)) {
    return absl::FailedPreconditionError(
        absl::StrCat("no common peer protocol version:",
                     VersionsOf(static_cast<int>(in.Uint(1)), h.min_version, h.max_version),
                     VersionsOf(mine.party, mine.min_version, mine.max_version)));
  }
  h.party = static_cast<uint8_t>(in.Uint(1));
  h.cluster = static_cast<uint16_t>(in.Uint(2));
  h.nonce = {};
  in.Into(h.nonce);
  h.ring = static_cast<uint8_t>(in.Uint(1));
  h.rings = static_cast<uint8_t>(in.Uint(1));
  h.randomness = static_cast<Randomness>(in.Uint(1));
  h.security = static_cast<Security>(in.Uint(1));
  h.realm = in.Text(in.Uint(2));
  h.greeting = in.Text(in.Uint(4));
  if (!in.AtEnd()) return absl::DataLossError("hello frame is malformed");
  return h;
}

template <class A, class B>
absl::Status Differs(absl::string_view who, absl::string_view field, const A& theirs,
                     const B& ours) {
  return absl::FailedPreconditionError(
      absl::StrCat(who, " has ", field, " ", theirs, ", this server has ", ours));
}

// Of the configuration, so that it says what to make alike.
absl::Status EngineDiffers(absl::string_view who, absl::string_view key, absl::string_view theirs,
                           absl::string_view ours) {
  const absl::Status differs = Differs(who, key, theirs, ours);
  return absl::FailedPreconditionError(
      absl::StrCat(differs.message(), ": all three servers need the same [engine] ", key));
}

// Shows that both ends of a seed saw the same hellos.
Digest Confirmation(const Digest& transcript, const Seed& seed) {
  Digest d;
  crypto_generichash(d.data(), d.size(), transcript.data(), transcript.size(), seed.data(),
                     seed.size());
  return d;
}

// Apart from what PairwiseStreams derives from the seed.
void SetComparisonKey(const Seed& seed, Seed* key) {
  static_assert(sizeof(Seed) == crypto_kdf_KEYBYTES);
  crypto_kdf_derive_from_key(key->data(), key->size(), 1, "mpckdc-c", seed.data());
}
// And apart from that.
void SetOnceKey(const Secret<Seed>& seed, Secret<Seed>* key) {
  crypto_kdf_derive_from_key(key->Get().data(), key->Get().size(), 1, "mpckdc-j",
                             seed.Get().data());
}

}  // namespace

// The reason grows as it goes round the ring: cut.
void TellBoth(PeerChannel& channel, absl::string_view reason) {
  reason = reason.substr(0, kMaxReason);
  const absl::Span<const uint8_t> text(reinterpret_cast<const uint8_t*>(reason.data()),
                                       reason.size());
  channel.Send(Neighbour::kNext, FrameType::kAbort, text).IgnoreError();
  channel.Send(Neighbour::kPrev, FrameType::kAbort, text).IgnoreError();
}

// The steps of OpenSession(), in order.
class SessionOpener {
 public:
  SessionOpener(const SessionOptions& options, PeerChannel& channel, absl::Time deadline)
      : options_(options), channel_(channel), deadline_(deadline) {}
  ~SessionOpener() {
    for (Hello& h : hellos_) Wipe(h.nonce.data(), h.nonce.size());
  }

  absl::Status ExchangeHellos(RandomSource& random) {
    if (options_.realm.size() > kMaxRealm || options_.greeting.size() > kMaxGreeting) {
      return absl::InvalidArgumentError("realm or greeting is too long for a hello frame");
    }
    Hello mine = {options_.min_version,
                  options_.max_version,
                  static_cast<uint8_t>(options_.party),
                  options_.cluster,
                  {},
                  options_.ring,
                  options_.rings,
                  options_.randomness,
                  options_.security,
                  options_.realm,
                  options_.greeting};
    random.Fill(absl::MakeSpan(mine.nonce));
    hellos_[options_.party] = mine;
    encoded_[options_.party] = Encode(mine);
    Wipe(mine.nonce.data(), mine.nonce.size());
    absl::Status s = SendBoth(FrameType::kHello, encoded_[options_.party],
                              encoded_[options_.party]);
    if (s.ok()) s = ReceiveHello(Neighbour::kPrev);
    if (s.ok()) s = ReceiveHello(Neighbour::kNext);
    if (s.ok()) s = Agree();
    return s;
  }

  // P_i draws k_i and sends it to P_{i-1}.
  absl::Status ExchangeSeeds(RandomSource& random) {
    channel_.BindSession(session_);
    random.Fill(absl::MakeSpan(seeds_.own.Get()));
    RETURN_IF_ERROR(channel_.Send(Neighbour::kPrev, FrameType::kSeed, seeds_.own.Get()));
    ASSIGN_OR_RETURN(SecretBytes seed, Expect(Neighbour::kNext, FrameType::kSeed));
    if (seed.size() != sizeof(Seed)) {
      return Lie(Neighbour::kNext, "sent a seed of another length");
    }
    std::copy(seed.begin(), seed.end(), seeds_.next.Get().begin());
    return absl::OkStatus();
  }

  absl::Status Confirm() {
    const Digest with_prev = Confirmation(transcript_, seeds_.own.Get());
    const Digest with_next = Confirmation(transcript_, seeds_.next.Get());
    absl::Status s = SendBoth(FrameType::kConfirm, Joined(with_prev), Joined(with_next));
    if (s.ok()) s = ExpectConfirmation(Neighbour::kPrev, with_prev);
    if (s.ok()) s = ExpectConfirmation(Neighbour::kNext, with_next);
    return s;
  }

  std::unique_ptr<PartyContext> Finish(Clock& clock, RandomSource& random) {
    auto party = std::make_unique<PartyContext>(options_, channel_, clock, session_,
                                                std::move(seeds_));
    party->version_ = version_;
    party->random_ = &random;
    std::copy_n(transcript_.begin() + sizeof(session_), party->session_id_.size(),
                party->session_id_.begin());
    party->greeting_prev_ = hellos_[PrevParty(options_.party)].greeting;
    party->greeting_next_ = hellos_[NextParty(options_.party)].greeting;
    return party;
  }

 private:
  int Party(Neighbour n) const {
    return n == Neighbour::kNext ? NextParty(options_.party) : PrevParty(options_.party);
  }
  std::string Who(Neighbour n) const {
    return absl::StrCat(NeighbourName(n), " (P", Party(n), ")");
  }

  absl::Status SendBoth(FrameType type, absl::Span<const uint8_t> to_prev,
                        absl::Span<const uint8_t> to_next) {
    absl::Status s = channel_.Send(Neighbour::kNext, type, to_next);
    return s.ok() ? channel_.Send(Neighbour::kPrev, type, to_prev) : s;
  }

  absl::StatusOr<SecretBytes> Expect(Neighbour from, FrameType type) {
    ASSIGN_OR_RETURN(Frame frame, channel_.Receive(from, deadline_));
    if (frame.type == type) return std::move(frame.payload);
    return absl::DataLossError(absl::StrCat(Who(from), " sent a ", FrameTypeName(frame.type),
                                            " frame, expected ", FrameTypeName(type)));
  }

  absl::Status ReceiveHello(Neighbour from) {
    ASSIGN_OR_RETURN(SecretBytes payload, Expect(from, FrameType::kHello));
    absl::StatusOr<Hello> h = Decode(payload, hellos_[options_.party]);
    if (!h.ok()) {
      return absl::Status(h.status().code(), absl::StrCat(Who(from), ": ", h.status().message()));
    }
    const std::string who = Who(from);
    if (h->party != Party(from)) return Differs(who, "party number", h->party, Party(from));
    if (h->realm != options_.realm) return Differs(who, "realm", h->realm, options_.realm);
    if (h->cluster != options_.cluster) {
      return Differs(who, "cluster", h->cluster, options_.cluster);
    }
    if (h->rings != options_.rings) {
      return Differs(who, "number of workers", h->rings, options_.rings);
    }
    if (h->ring != options_.ring) return Differs(who, "ring", h->ring, options_.ring);
    if (h->randomness != options_.randomness) {
      return EngineDiffers(who, "randomness", RandomnessName(h->randomness),
                           RandomnessName(options_.randomness));
    }
    if (h->security != options_.security) {
      return EngineDiffers(who, "security", SecurityName(h->security),
                           SecurityName(options_.security));
    }
    hellos_[Party(from)] = *std::move(h);
    encoded_[Party(from)] = std::move(payload);
    return absl::OkStatus();
  }

  // Version and session number follow from the three hellos, so they come out the same everywhere.
  absl::Status Agree() {
    uint16_t lowest = 0, highest = UINT16_MAX;
    for (const Hello& h : hellos_) {
      lowest = std::max(lowest, h.min_version);
      highest = std::min(highest, h.max_version);
    }
    if (lowest > highest) {
      std::string text = "no common peer protocol version:";
      for (const Hello& h : hellos_) {
        text += VersionsOf(h.party, h.min_version, h.max_version);
      }
      return absl::FailedPreconditionError(text);
    }
    version_ = highest;
    HashHellos("mpc-kdc session v1", absl::MakeSpan(transcript_));
    HashHellos("mpc-kdc common v1", absl::MakeSpan(seeds_.common.Get()));
    std::memcpy(&session_, transcript_.data(), sizeof(session_));
    session_ = __builtin_bswap32(session_) | 1;  // never zero, the number before there is one
    return absl::OkStatus();
  }

  void HashHellos(const std::string& domain, absl::Span<uint8_t> out) const {
    crypto_generichash_state state;
    crypto_generichash_init(&state, nullptr, 0, out.size());
    crypto_generichash_update(&state, reinterpret_cast<const uint8_t*>(domain.c_str()),
                              domain.size() + 1);
    for (const SecretBytes& h : encoded_) crypto_generichash_update(&state, h.data(), h.size());
    crypto_generichash_final(&state, out.data(), out.size());
    Wipe(&state, sizeof(state));
  }

  absl::Status ExpectConfirmation(Neighbour from, const Digest& expected) {
    ASSIGN_OR_RETURN(SecretBytes got, Expect(from, FrameType::kConfirm));
    if (got.size() != 2 * sizeof(Digest)) return Lie(from, "confirms in another length");
    const auto hellos = absl::MakeConstSpan(got).first(sizeof(Digest));
    if (!std::equal(hellos.begin(), hellos.end(), transcript_.begin())) {
      return absl::DataLossError(absl::StrCat(
          Who(from), " confirms another session: the three servers did not see the same hellos"));
    }
    if (ConstantTimeEqual(absl::MakeConstSpan(got).last(sizeof(Digest)), expected)) {
      return absl::OkStatus();
    }
    return Lie(from, "confirms another session: it has another seed than the two agreed on");
  }

  // On a link that nobody else can write to, after hellos that name one version.
  absl::Status Lie(Neighbour from, absl::string_view what) const {
    return Deviation(Suspects::One(Party(from)), absl::StrCat(Who(from), " ", what));
  }
  // What is sent to confirm.
  std::array<uint8_t, 2 * sizeof(Digest)> Joined(const Digest& confirmation) const {
    std::array<uint8_t, 2 * sizeof(Digest)> out;
    std::copy(transcript_.begin(), transcript_.end(), out.begin());
    std::copy(confirmation.begin(), confirmation.end(), out.begin() + sizeof(Digest));
    return out;
  }

  const SessionOptions& options_;
  PeerChannel& channel_;
  const absl::Time deadline_;
  std::array<Hello, kParties> hellos_;
  std::array<SecretBytes, kParties> encoded_;
  Digest transcript_{};
  uint32_t session_ = 0;
  uint16_t version_ = 0;
  PairwiseSeeds seeds_;
};

absl::StatusOr<std::unique_ptr<PartyContext>> OpenSession(const SessionOptions& options,
                                                          PeerChannel& channel, Clock& clock,
                                                          RandomSource& random,
                                                          absl::Time deadline) {
  SessionOpener opener(options, channel, deadline);
  absl::Status s = opener.ExchangeHellos(random);
  if (s.ok()) s = opener.ExchangeSeeds(random);
  if (s.ok()) s = opener.Confirm();
  if (s.ok()) return opener.Finish(clock, random);
  TellBoth(channel, absl::StrCat("P", options.party, ": ", s.message()));
  return s;
}

const char* SecurityName(Security security) {
  switch (security) {
    case Security::kSemiHonest:
      return "semi-honest";
    case Security::kActive:
      return "active";
  }
  return "unknown";
}

PartyContext::PartyContext(const SessionOptions& options, PeerChannel& channel, Clock& clock,
                           uint32_t session, PairwiseSeeds seeds)
    : options_(options),
      channel_(channel),
      clock_(clock),
      session_(session),
      streams_(session, seeds),
      output_keys_(options.party, seeds),
      runner_(std::make_unique<RoundRunner>(*this)),
      proof_runner_(std::make_unique<RoundRunner>(*this)) {
  SetComparisonKey(seeds.own.Get(), &comparison_.own.Get());
  SetComparisonKey(seeds.next.Get(), &comparison_.next.Get());
  SetOnceKey(seeds.common, &once_.joint);
  SetOnceKey(seeds.own, &once_.with_prev);
  SetOnceKey(seeds.next, &once_.with_next);
}

PartyContext::~PartyContext() = default;

void PartyContext::BeginBatch(uint32_t number) {
  if (number <= batch_) {
    std::fprintf(stderr, "batch %u begun after batch %u\n", number, batch_);
    std::abort();
  }
  batch_ = number;
  next_round_ = 0;
  next_garbling_ = 0;
  random_position_ = 0;
}

void PartyContext::DrawRandom(absl::Span<SharedBlock> out) {
  SecretVector<Block> own(out.size()), next(out.size());
  const size_t bytes = out.size() * sizeof(Block);
  streams_.FillRandom({batch_, 0, random_position_},
                      {reinterpret_cast<uint8_t*>(own.data()), bytes},
                      {reinterpret_cast<uint8_t*>(next.data()), bytes});
  random_position_ += static_cast<uint32_t>(out.size());
  for (size_t i = 0; i < out.size(); ++i) out[i] = {XorBlocks(own[i], next[i]), next[i]};
}

void PartyContext::Abort(absl::string_view reason) {
  if (!status_.ok()) return;
  TellBoth(channel_, reason);
  status_ = absl::AbortedError(reason);
}

void PartyContext::SetVerifier(Verifier* verifier) {
  verifier_ = verifier;
  log_ = verifier == nullptr ? nullptr : &verifier->log();
}

bool PartyContext::verified() const { return verifier_ == nullptr || verifier_->log().empty(); }

absl::Status PartyContext::Verify(Cost* counted) {
  if (status_.ok() && verified() && !LacksVerifier()) return absl::OkStatus();
  return RunBy(*proof_runner_, nullptr, counted);
}

absl::Status PartyContext::Run(ChunkSource& source, Cost* counted) {
  return RunBy(*runner_, &source, counted);
}

// Without a source: a proof.
absl::Status PartyContext::RunBy(RoundRunner& runner, ChunkSource* source, Cost* counted) {
  if (!status_.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the session is over: ", status_.message()));
  }
  if (batch_ == 0) return absl::FailedPreconditionError("no batch was begun");
  if (LacksVerifier()) return absl::InternalError("an active session has nothing that verifies");
  absl::Status s = source == nullptr ? runner.Prove(counted) : runner.Run(*source, counted);
  if (!s.ok()) {
    Abort(absl::StrCat("P", options_.party, ": ", s.message()));
    status_ = s;
  }
  return s;
}

}  // namespace mpckdc
