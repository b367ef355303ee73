// SPDX-License-Identifier: Apache-2.0
// Correlated randomness from pairwise keys (Araki et al. 2.2, computational).
//
// P_i draws k_i and gives it to P_{i-1}; so P_i holds k_i ("own") and k_{i+1} ("next"). Zero shares
// are alpha_i = F(k_i, c) ^ F(k_{i+1}, c), whose sum over the three parties vanishes. F is AES-128
// in counter mode and c a typed counter:
//
//     purpose (1) | round (3) | session (4) | batch (4) | position (4), big-endian: one AES block
//
// No counter may serve twice: positions only move forward within (purpose, batch, round), and
// these only move forward too. Going back aborts the process (StreamCursor).
#ifndef MPC_SERVER_SHARE_PAIRWISE_STREAMS_H_
#define MPC_SERVER_SHARE_PAIRWISE_STREAMS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "mpc-server/base/isa.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/share/ctr_stream.h"

namespace mpckdc {

using Seed = std::array<uint8_t, 32>;

// The two pairwise seeds that a party holds, and the one that all three do, and nobody else.
struct PairwiseSeeds {
  Secret<Seed> own;     // k_i
  Secret<Seed> next;    // k_{i+1}
  Secret<Seed> common;  // for the zero shares of outputs (output_masks.h)
};

enum class StreamPurpose : uint8_t {
  kZeroShare = 1,    // position: within the round's merged message
  kRandomShare = 2,  // round 0; position: within the batch
  kProof = 3,        // round: the proof's number in the batch; under the keys of random shares
  kGarbling = 4,     // round: the garbling's number in the batch; likewise
};

// A typed counter: the place in a stream. Ordered; each place is used at most once.
struct StreamPlace {
  uint32_t batch = 0;
  uint32_t round = 0;     // below 2^24
  uint32_t position = 0;  // AES blocks
};

// Enforces that places of one purpose are used in increasing order and never twice.
class StreamCursor {
 public:
  // Aborts the process unless `place` lies at or after everything taken so far. Then takes
  // `blocks` positions from it.
  void Take(const StreamPlace& place, uint32_t blocks);

 private:
  StreamPlace next_;
};

class PairwiseStreams {
 public:
  PairwiseStreams(uint32_t session, const PairwiseSeeds& seeds, Isa isa = BestIsa());

  // out = F(k_i, place...) ^ F(k_{i+1}, place...).
  void FillZeroShare(const StreamPlace& place, absl::Span<uint8_t> out);
  // out.sum as FillZeroShare(), and what it is the sum of: out.own = F(k_i, place...), out.next =
  // F(k_{i+1}, place...), each of `size` bytes.
  void FillZeroApart(const StreamPlace& place, const StreamsApart& out, size_t size);
  // Takes `size` bytes, a multiple of 16, for a caller that makes them itself. (Written in place:
  // see MakeCounterBlock() on loads of what was just stored.)
  void TakeZeroShare(const StreamPlace& place, size_t size, ZeroSource* source);
  // own = F(k_i, place...), next = F(k_{i+1}, place...). Equal lengths.
  void FillRandom(const StreamPlace& place, absl::Span<uint8_t> own, absl::Span<uint8_t> next) {
    Fill(StreamPurpose::kRandomShare, random_cursor_, place, own, next);
  }
  void FillProof(const StreamPlace& place, absl::Span<uint8_t> own, absl::Span<uint8_t> next) {
    Fill(StreamPurpose::kProof, proof_cursor_, place, own, next);
  }
  // Keys of one garbled run. Drawing them twice would give its evaluator two labels of a wire.
  void FillGarbling(const StreamPlace& place, absl::Span<uint8_t> own, absl::Span<uint8_t> next) {
    Fill(StreamPurpose::kGarbling, garbling_cursor_, place, own, next);
  }

 private:
  struct Keys {
    CtrKey zero_own, zero_next, random_own, random_next;
  };
  void Fill(StreamPurpose purpose, StreamCursor& cursor, const StreamPlace& place,
            absl::Span<uint8_t> own, absl::Span<uint8_t> next);

  const uint32_t session_;
  const CtrFunctions& ctr_;
  Secret<Keys> keys_;
  StreamCursor zero_cursor_, random_cursor_, proof_cursor_, garbling_cursor_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_SHARE_PAIRWISE_STREAMS_H_
