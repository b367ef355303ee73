// SPDX-License-Identifier: Apache-2.0
// HMAC (RFC 2104) with SHA-1, SHA-256 or SHA-384 of many messages at once, on shares, each under a
// key of its own.
//
//   Hmac hmac(HashKind::kSha1);
//   hmac.Reset(lanes, Adder::kPrefix);        // any number of lanes of any lengths
//   RunTogether(party, {&hmac, ...}, &cost);
//   hmac.digest(3);                           // share of lane 3's whole digest
//
// A key comes as two states of the hash: after the block key ^ ipad and after the block key ^ opad.
// So a message of n bytes takes HmacInnerBlocks(hash, n) compressions in a row, and one more. Lanes
// that compress the same kind of block at the same time do it side by side; each goes on to its
// outer hash when its own message ends.
//
// A message's compressions are a chain of rounds for the whole batch: who takes messages from
// outside bounds their length (limits::kMaxCtsMessageBytes), and chooses the adder by load.
#ifndef MPC_SERVER_CIRCUIT_HASH_HMAC_H_
#define MPC_SERVER_CIRCUIT_HASH_HMAC_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "mpc-server/base/isa.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/circuit/hash/adder.h"
#include "mpc-server/circuit/hash/hash_run.h"
#include "mpc-server/key/hash_kind.h"
#include "mpc-server/share/circuit.h"
#include "mpc-server/share/replicated_share.h"

namespace mpckdc {

// One message. Exactly one of public_message and shared_message; what the pointers show stays the
// caller's and unchanged until the circuit is done.
struct HmacLane {
  const SharedBlock* states = nullptr;  // inner, outer: HashStateBlocks(hash) blocks each
  absl::Span<const uint8_t> public_message;
  const SharedBlock* shared_message = nullptr;  // if not null; the last block may be in part
  size_t bytes = 0;                             // of shared_message
};

class Hmac : public Circuit {
 public:
  explicit Hmac(HashKind hash, Isa isa = BestIsa())
      : hash_(hash), isa_(isa), blocks_(HashStateBlocks(hash)) {}

  // Starts anew. Lengths and kinds of the lanes and the adder are the same at the three parties.
  void Reset(absl::Span<const HmacLane> lanes, Adder adder);
  // The lane goes no further than the compression that is under way; its digest is never read. At
  // the three parties alike, between two rounds.
  void Abandon(size_t lane) { lanes_[lane].abandoned = true; }
  // After Done(), until the next Reset(): HashStateBlocks(hash) blocks. SHA-1's last 12 bytes are
  // shares of zero. SHA-384's last 16 bytes are of SHA-512's state and not of the digest: never
  // send them.
  absl::Span<const SharedBlock> digest(size_t lane) const {
    return absl::MakeConstSpan(states_).subspan(lane * blocks_, blocks_);
  }

  bool Done() const override { return active_ == 0; }
  RoundShape NextRound() const override;
  void Produce(ZeroShares& zero, RoundOut out) override;
  absl::Status Consume(RoundIn in) override;
  Cost DeclaredCost() const override;

 private:
  // `next` is the number of the compression that comes; the outer hash's is the last one.
  struct Lane {
    const SharedBlock* states;
    const SharedBlock* shared_message;
    const uint8_t* public_message;
    size_t bytes;
    size_t next;
    bool abandoned;
  };
  // Lanes that wait for the same kind of compression go through it together.
  struct Run {
    Run(HashKind hash, Isa isa, MessageKind of, size_t made)
        : kind(of), number(made), run(hash, isa) {}
    const MessageKind kind;
    const size_t number;
    HashRun run;
    std::vector<size_t> lanes;
  };
  static bool EarlierMade(const std::unique_ptr<Run>& a, const std::unique_ptr<Run>& b) {
    return a->number < b->number;
  }
  Run& FreeRun(MessageKind kind);
  void EndRun(size_t at);
  size_t InnerBlocks(const Lane& lane) const { return HmacInnerBlocks(hash_, lane.bytes); }
  MessageKind KindOfNext(const Lane& lane) const;
  HashBlock BlockOf(size_t at) const;
  void Advance(size_t at, absl::Span<const SharedBlock> state);
  void StartWaiting();

  const HashKind hash_;
  const Isa isa_;
  const size_t blocks_;
  Adder adder_ = Adder::kPrefix;
  std::vector<Lane> lanes_;
  std::vector<size_t> waiting_;
  std::vector<HashBlock> inputs_;
  std::vector<std::unique_ptr<Run>> runs_;   // the first active_ are under way
  size_t active_ = 0;
  SecretVector<SharedBlock> states_, inner_;  // after a lane's last compression; inner digests
};

// A message as the cost sees it.
struct HmacShape {
  size_t bytes = 0;
  bool shared = false;
};
// What one party pays, from the recorded programs themselves.
Cost CostOfHmac(HashKind hash, Adder adder, absl::Span<const HmacShape> lanes);

// Records the programs of a hash with this adder now and not at their first use, which then takes
// some ten milliseconds longer.
void PrepareHash(HashKind hash, Adder adder);

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_HASH_HMAC_H_
