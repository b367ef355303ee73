// SPDX-License-Identifier: Apache-2.0
// Walks circuits through their rounds over a session's channel. Internal to share/.
#ifndef MPC_SERVER_SHARE_ROUND_RUNNER_H_
#define MPC_SERVER_SHARE_ROUND_RUNNER_H_

#include <deque>
#include <vector>

#include "mpc-server/share/circuit.h"
#include "mpc-server/share/exchanged_zeros.h"

namespace mpckdc {

// All circuits as one chunk.
class OneChunk : public ChunkSource {
 public:
  explicit OneChunk(absl::Span<Circuit* const> circuits) : circuits_(circuits) {}
  size_t chunks() const override { return 1; }
  size_t slots() const override { return 1; }
  absl::Span<Circuit* const> Begin(size_t, size_t) override { return circuits_; }
  void End(size_t, size_t) override {}

 private:
  const absl::Span<Circuit* const> circuits_;
};

// Each slot has sets of message buffers that take turns, so that a round's messages stay readable
// while the next round's are produced: two, and more where circuits run ahead. They grow and never
// shrink: no allocation in steady state.
class RoundRunner {
 public:
  explicit RoundRunner(PartyContext& party) : party_(party) {}

  absl::Status Run(ChunkSource& source, Cost* counted);
  // Runs the party's verifier over what is in its log.
  absl::Status Prove(Cost* counted);

 private:
  // A circuit's place in its slot's merged messages.
  struct Member {
    Circuit* circuit;
    RoundShape shape;
    size_t next_at, prev_at;            // of what is sent
    size_t from_prev_at, from_next_at;  // of what comes
  };
  struct Merged {
    size_t to_next = 0, to_prev = 0, from_prev = 0, from_next = 0;
    uint64_t to_prove = 0;  // bytes to next that are neither opened nor checked by their circuit
    bool opens = false;
    const char* step = "";
  };
  // A round that is planned, under way or just over.
  struct Round {
    std::vector<Member> members;
    Merged merged;
    RoundId id;
    SecretBytes to_next, to_prev;
  };
  struct Received {
    SecretBytes from_prev, from_next;
  };
  struct Slot {
    size_t chunk = 0;         // under way, or chunks() and more when the slot has ended
    bool exchanging = false;  // of the chunk's zero shares, before its first round
    absl::Span<Circuit* const> circuits;
    ExchangedZeros zeros;
    Circuit* zeros_only[1];
    std::deque<Round> rounds;
    std::deque<size_t> posted;  // which of them are under way, the oldest first
    // `last` was collected, and what it sent may be read yet; `planned` is another one.
    size_t planned = 0, last = 0;
    Received received[2];
    int turn = 0;
    Cost cost;

    Round& plan() { return rounds[planned]; }
    absl::Span<Circuit* const> running() const {
      return exchanging ? absl::Span<Circuit* const>(zeros_only) : circuits;
    }
  };

  void BeginChunk(ChunkSource& source, Slot& slot, size_t at);
  // Goes on to the next chunk while the present one has no round left.
  void Advance(ChunkSource& source, Slot& slot, size_t at);
  void Plan(Slot& slot);
  static bool RunsAhead(const Slot& slot);
  absl::Status PostAhead(Slot& slot);
  absl::Status Post(Slot& slot);
  absl::Status Collect(Slot& slot);
  bool ProofIsDue(const Slot& slot) const;
  absl::Status CollectAllAfter(size_t at, size_t used);
  absl::Status CheckRecorded(uint64_t before) const;

  ProofLog* Log() const;

  PartyContext& party_;
  bool proving_ = false;   // the runner of proofs, whose messages are not proved themselves
  uint64_t to_prove_ = 0;  // bytes that circuits sent to next in this run, without openings
  std::vector<Slot> slots_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_SHARE_ROUND_RUNNER_H_
