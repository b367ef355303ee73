// SPDX-License-Identifier: Apache-2.0
// The AES blocks of a whole batch, over all rings of a server and in chunks that overlap on each
// ring.
//
//   lanes    0 ............................................... n
//   rings    |        ring 0         |         ring 1          |   equal shares, in whole groups
//   chunks   | c0 | c1 | c2 | c3 | c4 | c0 | c1 | c2 | c3 | c4 |   chunk_lanes each
//   slots      s0   s1   s0   s1  ..                               under way at once: slots
//
// A chunk's buffers belong to its slot and are used again, so a long batch needs no more memory
// than a short one, but for inputs and outputs.
#ifndef MPC_SERVER_CIRCUIT_AES_AES_BATCH_H_
#define MPC_SERVER_CIRCUIT_AES_AES_BATCH_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "mpc-server/circuit/aes/aes_circuit.h"
#include "mpc-server/share/circuit.h"
#include "mpc-server/share/rings.h"

namespace mpckdc {

// How a batch is cut. The same at the three servers: limits.h has the values of production.
struct AesCut {
  size_t chunk_lanes = 0;  // of one chunk; a multiple of 512
  size_t slots = 0;        // chunks of one ring under way at once
  size_t ring_lanes = 0;  // a ring's share is at least so many, or the batch uses fewer rings
};
// The lanes of each chunk of each ring that a batch of one key size uses.
std::vector<std::vector<size_t>> ChunksOfRings(const AesCut& cut, size_t lanes, size_t rings);

class AesBatch {
 public:
  explicit AesBatch(const AesCut& cut, Isa isa = BestIsa());
  ~AesBatch();

  // Encrypts all lanes. `others` run together with the first chunk of ring 0. A batch must have
  // begun on every ring. `cost`, if given, grows by the rounds of the slowest ring and by the bytes
  // of all. Errors: those of RunTogether(); every ring's session is over then.
  absl::Status Run(Rings& rings, absl::Span<const AesLane> lanes128,
                   absl::Span<const AesLane> lanes256, Sbox sbox,
                   absl::Span<Circuit* const> others = {}, Cost* cost = nullptr);

  // Until the next Run(), in the order of the lanes.
  absl::Span<const SharedBlock> outputs128() const { return {outputs128_.data(), count128_}; }
  absl::Span<const SharedBlock> outputs256() const { return {outputs256_.data(), count256_}; }

 private:
  class RingChunks;

  const AesCut cut_;
  const Isa isa_;
  std::vector<std::unique_ptr<RingChunks>> rings_;
  SecretVector<SharedBlock> outputs128_, outputs256_;
  size_t count128_ = 0, count256_ = 0;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_AES_AES_BATCH_H_
