// SPDX-License-Identifier: Apache-2.0
// One compression of many lanes: blocks to rows, the recorded program, rows to states. Padding is
// made here. Internal to circuit/.
#ifndef MPC_SERVER_CIRCUIT_HASH_HASH_RUN_H_
#define MPC_SERVER_CIRCUIT_HASH_HASH_RUN_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/circuit/bitslice/transpose.h"
#include "mpc-server/circuit/hash/bit_run.h"
#include "mpc-server/circuit/hash/hash_programs.h"
#include "mpc-server/share/replicated_share.h"

namespace mpckdc {

// A lane's block: number `index` of a message that follows one block of key.
struct HashBlock {
  const SharedBlock* state = nullptr;
  const SharedBlock* shared_message = nullptr;  // one of the two, by the run's kind
  const uint8_t* public_message = nullptr;
  size_t bytes = 0;   // of the message
  size_t index = 0;
  bool pads = true;   // false: the message is this block alone, as it is
};

class HashRun {
 public:
  HashRun(HashKind hash, Isa isa);

  // The lanes' memory is read here and not later.
  void Start(MessageKind message, Adder adder, absl::Span<const HashBlock> lanes);
  bool Done() const { return run_.Done(); }
  size_t MessageBytes() const { return run_.MessageBytes(); }
  void Produce(ZeroShares& zero, absl::Span<uint8_t> out) { run_.Produce(zero, out); }
  void Consume(absl::Span<const uint8_t> received);
  // After Done(): HashStateBlocks(hash) blocks, zeros behind the state's bytes.
  absl::Span<const SharedBlock> state(size_t lane) const {
    return states().subspan(lane * HashStateBlocks(hash_), HashStateBlocks(hash_));
  }
  // Those of all lanes.
  absl::Span<const SharedBlock> states() const { return states_; }

 private:
  void SliceStates(absl::Span<const HashBlock> lanes, size_t group);
  void SliceShared(absl::Span<const HashBlock> lanes, size_t group);
  void SlicePublic(absl::Span<const HashBlock> lanes, size_t group);
  uint8_t PaddingAt(const HashBlock& lane, size_t position) const;
  SharedBlock PaddedBlock(const HashBlock& lane, size_t position) const;
  void PublicBlock(const HashBlock& lane, uint8_t* out) const;
  void Finish();

  const HashKind hash_;
  const TransposeFunctions& transpose_;
  BitRun run_;
  SecretBytes scratch_;
  SecretVector<SharedBlock> padded_;  // of one group
  SecretBytes schedules_;             // of one group; public
  SecretVector<SharedBlock> states_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_HASH_HASH_RUN_H_
