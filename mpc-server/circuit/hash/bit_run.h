// SPDX-License-Identifier: Apache-2.0
// One recorded program on many lanes, round by round: groups of 512 lanes, each with slots of its
// own. At most 64 lanes have rows of 8 bytes instead of 64, which stay in the nearest cache.
//
//   Start(program, lanes)        then fill input and public rows, group by group
//   Produce(), Consume()         rounds() times
//   output rows                  of each group
//
// Internal to circuit/.
#ifndef MPC_SERVER_CIRCUIT_HASH_BIT_RUN_H_
#define MPC_SERVER_CIRCUIT_HASH_BIT_RUN_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "mpc-server/base/isa.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/circuit/bitslice/slices.h"
#include "mpc-server/circuit/hash/bit_log.h"
#include "mpc-server/circuit/hash/bit_recorder.h"
#include "mpc-server/share/circuit.h"

namespace mpckdc {

class BitRun {
 public:
  explicit BitRun(Isa isa) : isa_(isa) {}

  // `program` must outlive the run. Rows of one group: shared inputs and outputs, public inputs.
  // Buffers are kept from run to run.
  void Start(const BitProgram& program, size_t lanes, size_t input_rows, size_t public_rows);
  size_t lanes() const { return lanes_; }
  size_t groups() const { return GroupCount(lanes_); }

  // Rows of 64 bytes. c: 0 for x, 1 for a. Outputs lie where the inputs were.
  uint8_t* InputRows(size_t group, int c);
  uint8_t* PublicRows(size_t group);
  const uint8_t* OutputRows(size_t group, int c) { return InputRows(group, c); }

  bool Done() const { return stage_ == program_->rounds(); }
  size_t MessageBytes() const { return WireBytes(lanes_, program_->stages[stage_].opened); }
  void Produce(ZeroShares& zero, absl::Span<uint8_t> out);
  // After the last one the outputs are there.
  void Consume(absl::Span<const uint8_t> received);

 private:
  BitRows RowsOf(size_t group, uint8_t* msg);
  void RunStage(const BitRows& rows) const;
  void ProduceGroup(size_t group, absl::Span<uint8_t> wire);
  void RecordGroup(ProofLog& log, size_t group, const ZeroHalves& halves);
  const uint8_t* Widened(const uint8_t* wire, size_t rows, size_t group, uint8_t* scratch) const;
  void StoreGroup(size_t group, const uint8_t* sent, const uint8_t* received);

  const Isa isa_;
  const BitKernels* kernels_ = nullptr;
  const BitProgram* program_ = nullptr;
  size_t lanes_ = 0, input_rows_ = 0, public_rows_ = 0, stage_ = 0;
  absl::Span<const uint8_t> sent_;
  BitLog log_;
  SecretBytes slots_, inputs_, scratch_;
  SecretBytes publics_;  // public bits; here for its alignment
};

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_HASH_BIT_RUN_H_
