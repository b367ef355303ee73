// SPDX-License-Identifier: Apache-2.0
// A circuit is a computation on shares, cut at the points where a message is needed.
//
// A round of one circuit:   Produce()   local: sums of products and the zero share into to_next
//                           exchange    the runner's; the only place that waits
//                           Consume()   the neighbours' messages arrive
//
// Sum of products (Araki et al. 2.1, 2.3; characteristic 2). With z = sum of u*v over any number of
// products, P_i sends ONE element for the whole sum:
//
//     r_i = sum (x_i*y_i + a_i*b_i) + alpha_i        alpha_0 + alpha_1 + alpha_2 = 0
//     send r_i right, receive r_{i-1} from the left;   z_i = r_i + r_{i-1},   c_i = r_i
//
// and the same holds for any quadratic polynomial f without constant: r_i = f(x_i) + f(a_i) +
// alpha_i. Linear maps commute with resharing: they are applied to r_i before it is sent.
//
// RunTogether() merges the rounds of all circuits given: one message per neighbour and round.
// RunOverlapped() runs many chunks, each as RunTogether() does, with their rounds interleaved:
//
//     one chunk    compute r1 | wait r1      | compute r2 | wait r2      | ..
//     two chunks   compute r1 | compute r1'  | compute r2 | compute r2'  | ..
//                              r1 under way    r1' under way
//
// so that neither the wire nor this thread waits for the other. A circuit whose messages do not
// depend on each other (garble/) is not waited for either: some of its rounds are produced before
// the first is consumed (kRoundsAhead).
#ifndef MPC_SERVER_SHARE_CIRCUIT_H_
#define MPC_SERVER_SHARE_CIRCUIT_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "mpc-server/share/session.h"

namespace mpckdc {

// What a computation costs one party. Frame headers and the channel's own framing not counted.
struct Cost {
  uint64_t rounds = 0;
  uint64_t bytes_to_next = 0;
  uint64_t bytes_to_prev = 0;  // openings only

  // One after the other.
  friend Cost operator+(const Cost& a, const Cost& b) {
    return {a.rounds + b.rounds, a.bytes_to_next + b.bytes_to_next,
            a.bytes_to_prev + b.bytes_to_prev};
  }
  // Merged by RunTogether().
  friend Cost Together(const Cost& a, const Cost& b) {
    return {a.rounds > b.rounds ? a.rounds : b.rounds, a.bytes_to_next + b.bytes_to_next,
            a.bytes_to_prev + b.bytes_to_prev};
  }
  friend bool operator==(const Cost&, const Cost&) = default;
};

// The next round's message lengths. Where all parties do the same they are the same at each, so they
// also say what comes from the previous (to_next) and the next (to_prev) party.
struct RoundShape {
  size_t to_next = 0;
  size_t to_prev = 0;
  const char* step = "";  // the step's name in errors

  // Of circuits whose parties have different roles.
  struct Incoming {
    size_t from_prev = 0;
    size_t from_next = 0;
  };
  std::optional<Incoming> in = std::nullopt;
  // So much of both is no sum of products with zero shares and no opening, and the circuit itself
  // sees to it that it is right (garble/).
  size_t checked_to_next = 0;
  size_t checked_to_prev = 0;

  size_t from_prev() const { return in.has_value() ? in->from_prev : to_next; }
  size_t from_next() const { return in.has_value() ? in->from_next : to_prev; }
  // Openings go to both neighbours in equal parts; all else to the next one alone.
  size_t opened() const { return to_prev - checked_to_prev; }
  size_t to_prove() const { return to_next - checked_to_next - opened(); }
};

// A circuit's share of the round's messages. The memory stays valid and unchanged until the
// circuit's following Produce() has returned (or, after the last round, until Consume() has): a
// circuit may keep pointers and do a round's second half together with the next round's first.
struct RoundOut {
  absl::Span<uint8_t> to_next;
  absl::Span<uint8_t> to_prev;
};
struct RoundIn {
  absl::Span<const uint8_t> from_prev;
  absl::Span<const uint8_t> from_next;
};

class Circuit {
 public:
  virtual ~Circuit() = default;

  virtual bool Done() const = 0;
  // Only while !Done(). The lengths depend on public sizes only.
  virtual RoundShape NextRound() const = 0;
  // Whether the next round may be produced before those that were produced are consumed. What it
  // sends follows then from no message of theirs, nor does whether there is one.
  virtual bool RunsAhead() const { return false; }
  // Fills both spans completely. `zero` hands out this round's zero shares.
  virtual void Produce(ZeroShares& zero, RoundOut out) = 0;
  // An error (an opening whose two holders disagree) ends the session.
  virtual absl::Status Consume(RoundIn in) = 0;
  // What the whole circuit costs as it is set up now; tests compare it with what was counted.
  virtual Cost DeclaredCost() const = 0;
};

// Rounds of circuits that run ahead which are produced and not consumed: with messages of 128 KB a
// line of 1 Gb/s is kept full over 8 ms.
inline constexpr size_t kRoundsAhead = 8;

// Runs all circuits to their end. `counted`, if given, is increased by what was really exchanged.
// After an error the session is over: every later call on `party` fails with FailedPrecondition.
// The order of `circuits` must be the same at the three parties.
absl::Status RunTogether(PartyContext& party, absl::Span<Circuit* const> circuits,
                         Cost* counted = nullptr);

// Work cut into chunks that do not depend on each other. A chunk runs in a slot: slot s takes the
// chunks s, s + slots, s + 2*slots, .. one after the other, so what a slot needs may be kept from
// one chunk to the next. All answers are the same at the three parties.
class ChunkSource {
 public:
  virtual ~ChunkSource() = default;
  virtual size_t chunks() const = 0;
  virtual size_t slots() const = 0;
  // Sets a chunk up; its circuits, the slot's until End().
  virtual absl::Span<Circuit* const> Begin(size_t chunk, size_t slot) = 0;
  // The chunk's circuits have run to their end.
  virtual void End(size_t chunk, size_t slot) = 0;
};

// As RunTogether() for each chunk; slots() of them are under way at once. `counted->rounds` grows
// by the rounds of the slot that has the most: what a message's way costs is paid that often.
absl::Status RunOverlapped(PartyContext& party, ChunkSource& source, Cost* counted = nullptr);

}  // namespace mpckdc

#endif  // MPC_SERVER_SHARE_CIRCUIT_H_
