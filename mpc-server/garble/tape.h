// SPDX-License-Identifier: Apache-2.0
// A recorded program (circuit/hash/bit_program.h) in the order in which it is garbled and
// evaluated. What is opened on shares is an AND gate here, one for each product. The stages of the
// program are of no use here: rounds cost nothing, and the AES units are busy with eight
// independent gates at once. So gates are put into groups of at most eight, those that most depends
// on first.
//
//     block    load    what is used here for the first time: inputs, public bits
//       group  xors    out = a + b + c
//              scales  out = a where a public bit is 1, else 0
//              gates   out = (x + x2) (y + y2) + z, independent of each other; filled up with
//                      gates of slot 0 to a multiple of kGatePad, which have no rows
//
// A value lives in a slot from its first use to its last one. Slot 0 is zero, slot 1 what a label
// changes by when its bit does, slot 2 is never read.
//
// Functions and containers are for who makes a tape; the instruction sets' files read the structs.
#ifndef MPC_SERVER_GARBLE_TAPE_H_
#define MPC_SERVER_GARBLE_TAPE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mpc-server/circuit/hash/bit_recorder.h"
#include "mpc-server/garble/tape_format.h"

namespace mpckdc::garble {

// A public bit that is computed of others, without labels: sums of at most three. The program's
// rows of public bits come first, then these.
struct PublicSum {
  uint32_t a, b, c;  // kNoPublic: none
  bool complement;
};
inline constexpr uint32_t kNoPublic = UINT32_MAX;

struct TapeLoad {
  uint16_t slot;
  uint32_t from;  // row of the inputs, or a public bit
};

struct TapeBlock {
  std::vector<TapeLoad> inputs, labels, masks;  // public bits as labels, and as all bits or none
  std::vector<TapeGroup> groups;
  std::vector<TapeXor> xors;
  std::vector<TapeScale> scales;
  std::vector<TapeGate> gates;
  size_t gate_count = 0;  // without those that fill up
};

class Tape {
 public:
  // With at least so many output rows: what the program has none for is zero.
  explicit Tape(const BitProgram& program, size_t output_rows = 0);

  const std::vector<TapeBlock>& blocks() const { return blocks_; }
  const std::vector<PublicSum>& public_sums() const { return public_sums_; }
  size_t public_rows() const { return public_rows_; }
  // One more than the last one that is read.
  size_t input_rows() const { return input_rows_; }
  // The slot of each output row.
  const std::vector<uint16_t>& outputs() const { return outputs_; }
  size_t slots() const { return slots_; }
  size_t gates() const { return gates_; }

 private:
  friend class TapeMaker;
  std::vector<TapeBlock> blocks_;
  std::vector<PublicSum> public_sums_;
  size_t public_rows_ = 0, input_rows_ = 0, slots_ = 0, gates_ = 0;
  std::vector<uint16_t> outputs_;
};

}  // namespace mpckdc::garble

#endif  // MPC_SERVER_GARBLE_TAPE_H_
