// SPDX-License-Identifier: Apache-2.0
// A session: what one party holds between connecting to its neighbours and losing them.
//
// OpenSession() runs three control messages per neighbour over a connected channel:
//   1. hello: version range, realm, cluster, party, a random nonce, the caller's greeting
//   2. seed:  P_i draws k_i and sends it to P_{i-1}; so P_i holds k_i and k_{i+1} (Araki 2.2)
//   3. confirm: the hash of the three hellos, and one of it and the pair's seed. Who told its two
//      neighbours different things shows in the first; so does a neighbour's connection that is
//      older than the other's, so this accuses nobody. Another seed under the same hellos is a
//      deviation (deviation.h)
// and nothing from an earlier session survives: seeds are fresh each time. The connection encrypts,
// so the three nonces together are a secret of the three servers: of the hellos they derive a seed
// that all have in common (PairwiseSeeds::common) beside the transcript's hash, which is no secret.
#ifndef MPC_SERVER_SHARE_SESSION_H_
#define MPC_SERVER_SHARE_SESSION_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpc-server/base/clock.h"
#include "mpc-server/base/random_source.h"
#include "mpc-server/share/output_masks.h"
#include "mpc-server/share/pairwise_streams.h"
#include "mpc-server/share/replicated_share.h"
#include "mpc-server/share/zero_shares.h"
#include "mpc-server/wire/peer_channel.h"

namespace mpckdc {

class Circuit;      // share/circuit.h
class ChunkSource;  // share/circuit.h
class RoundRunner;  // share/round_runner.h
class Verifier;     // share/verifier.h
struct Cost;

inline constexpr uint16_t kPeerProtocolMin = 13;
inline constexpr uint16_t kPeerProtocolMax = 13;

// What the servers verify of each other before anything leaves them.
enum class Security : uint8_t {
  kSemiHonest = 1,  // that they agree; not that each computes as it should
  kActive = 2,      // every value that leaves; such a session computes with a Verifier alone
};
const char* SecurityName(Security security);

struct SessionOptions {
  int party = 0;
  std::string realm;
  uint16_t cluster = 0;
  uint8_t ring = 0;      // of the server's rings (rings.h), each a session of its own
  uint8_t rings = 1;
  Randomness randomness = Randomness::kKeyed;
  Security security = Security::kActive;
  std::string greeting;  // opaque, at most 64 KiB: given to both neighbours
  uint16_t min_version = kPeerProtocolMin;
  uint16_t max_version = kPeerProtocolMax;
  absl::Duration round_timeout = absl::Seconds(2);  // of each exchange
};

// One party's end of a session. Used by one thread at a time.
class PartyContext {
 public:
  // Use OpenSession(). Directly only in tests and benches.
  PartyContext(const SessionOptions& options, PeerChannel& channel, Clock& clock,
               uint32_t session, PairwiseSeeds seeds);
  ~PartyContext();
  PartyContext(const PartyContext&) = delete;
  PartyContext& operator=(const PartyContext&) = delete;

  int party() const { return options_.party; }
  uint32_t session() const { return session_; }
  // The same at the three parties and of no other session: from the hash of the three hellos, each
  // of which has a random nonce.
  const std::array<uint8_t, 16>& session_id() const { return session_id_; }
  uint16_t version() const { return version_; }
  Randomness randomness() const { return options_.randomness; }
  Security security() const { return options_.security; }
  PeerChannel& channel() { return channel_; }
  Clock& clock() { return clock_; }
  // What the neighbour passed as SessionOptions::greeting.
  const std::string& greeting(Neighbour n) const {
    return n == Neighbour::kPrev ? greeting_prev_ : greeting_next_;
  }

  // A key of this session that only this server and that neighbour know, for what they compare
  // without showing it to the third (agree/record_tags.h).
  const Seed& ComparisonKey(Neighbour n) const {
    return n == Neighbour::kPrev ? comparison_.own.Get() : comparison_.next.Get();
  }

  // Keys for what is done once, when a session opens (agree/epoch_change.h): that of the three
  // servers, and that of this one and a neighbour. To be forgotten then: nothing that a session
  // keeps tells them, so an image of a server's memory of later does not either.
  struct OnceKeys {
    Secret<Seed> joint, with_prev, with_next;

    const Secret<Seed>& With(Neighbour n) const {
      return n == Neighbour::kPrev ? with_prev : with_next;
    }
  };
  const OnceKeys& once() const { return once_; }
  void ForgetOnceKeys() { once_ = OnceKeys(); }

  // Starts batch `number` (1 and up, strictly increasing within the session, the same at the three
  // parties): rounds count from 0 again under a new number. RunTogether() and DrawRandom() need a
  // batch. Aborts the process when the number was used: a counter used twice would void privacy.
  void BeginBatch(uint32_t number);
  uint32_t batch() const { return batch_; }
  // The number of the batch's next garbling, the same at the three (garble/garbled_run.h).
  uint32_t NextGarbling() { return next_garbling_++; }

  // Shares of uniformly random blocks that no party knows: (x_i, a_i) = (F(k_i) ^ F(k_{i+1}),
  // F(k_{i+1})). No message. The same calls in the same order at the three parties.
  void DrawRandom(absl::Span<SharedBlock> out);

  // From now on circuits note in `log` what is to be proved of their messages; null: they do not.
  // Between runs. A run in which they send more than they note fails. The log is the caller's: who
  // proves a batch opens it, reads it and clears it. The same choice at the three parties; the
  // messages are the same either way.
  void SetLog(ProofLog* log) { log_ = log; }
  ProofLog* log() const { return log_; }
  // From now on circuits note what they send, and Verify() has it proved; null: nothing is. Between
  // batches. The verifier is the caller's; the same choice at the three parties.
  void SetVerifier(Verifier* verifier);
  Verifier* verifier() const { return verifier_; }
  // Bytes that pass on each of the three lines in a moment: on a slow line one who waits for
  // others' messages hears something that often (garble/garbled_run.h). As the three have measured
  // it; before that as many as there may be. The same at the three parties.
  void SetQuickBytes(size_t bytes) { quick_bytes_ = bytes; }
  size_t quick_bytes() const { return quick_bytes_; }
  // Has all that was sent and not proved yet proved to the two others, and checks what they sent.
  // What rests on messages may leave only after it: openings to the servers wait for it by
  // themselves (RoundRunner), outputs are the caller's to hold back. Semi-honest, without a
  // verifier: nothing.
  // Errors: a Deviation, or as RunTogether(). The same calls at the three parties.
  absl::Status Verify(Cost* counted = nullptr);
  // Whether nothing that was sent waits for Verify().
  bool verified() const;

  // For what leaves toward the KDC. The caller's hash covers the job and the batch.
  const OutputKeys& output_keys() const { return output_keys_; }

  // OK, or the error that ended the session.
  const absl::Status& status() const { return status_; }
  // Tells both neighbours, best effort, and ends the session with Aborted(reason).
  void Abort(absl::string_view reason);

  PairwiseStreams& streams() { return streams_; }

 private:
  friend class RoundRunner;
  friend absl::Status RunTogether(PartyContext& party, absl::Span<Circuit* const> circuits,
                                  Cost* counted);
  friend absl::Status RunOverlapped(PartyContext& party, ChunkSource& source, Cost* counted);
  friend class SessionOpener;

  absl::Status Run(ChunkSource& source, Cost* counted);
  absl::Status RunBy(RoundRunner& runner, ChunkSource* source, Cost* counted);
  bool LacksVerifier() const {
    return options_.security == Security::kActive && verifier_ == nullptr;
  }

  SessionOptions options_;
  PeerChannel& channel_;
  Clock& clock_;
  uint32_t session_;
  std::array<uint8_t, 16> session_id_{};
  RandomSource* random_ = nullptr;  // for Randomness::kExchanged
  ProofLog* log_ = nullptr;
  Verifier* verifier_ = nullptr;
  uint16_t version_ = kPeerProtocolMax;
  uint32_t batch_ = 0;
  uint32_t next_round_ = 0;
  uint32_t next_garbling_ = 0;
  uint32_t random_position_ = 0;
  size_t quick_bytes_ = SIZE_MAX;
  std::string greeting_prev_, greeting_next_;
  PairwiseSeeds comparison_;
  OnceKeys once_;
  PairwiseStreams streams_;
  OutputKeys output_keys_;
  absl::Status status_;
  // Message buffers, kept between batches; those of proofs, which come amid other rounds.
  std::unique_ptr<RoundRunner> runner_, proof_runner_;
};

// Tells both neighbours why there will be no session, or no more of one, best effort: each hears it
// as Aborted.
void TellBoth(PeerChannel& channel, absl::string_view reason);

// Errors: FailedPrecondition (versions, realm, cluster, party, ring, randomness or security
// do not fit; the text names both sides' values), a deviation (deviation.h), or the channel's.
// `channel`, `clock` and `random` must outlive the context.
absl::StatusOr<std::unique_ptr<PartyContext>> OpenSession(const SessionOptions& options,
                                                          PeerChannel& channel, Clock& clock,
                                                          RandomSource& random,
                                                          absl::Time deadline);

}  // namespace mpckdc

#endif  // MPC_SERVER_SHARE_SESSION_H_
