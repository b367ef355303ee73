// SPDX-License-Identifier: Apache-2.0
// A recorded circuit, ready to run on rows: what bit_recorder.h writes and bit_run.h runs.
//
// Stage s is what is computed between two messages:
//
//     store    what was opened in stage s-1, now that it has arrived
//     local    inputs that are needed now, XORs, complements, products with public bits
//     open     sums of products into the message; one row for each
//
// A value lives in a slot: C rows (the components), from its first use to its last one. A stage is
// a list of sections, each many instructions of one form:
//
//     section  op, linears, products, count, at
//     args     at: count times the operands, 16 bits each, as listed at BitOp
//
// A header for the instruction sets' files too: plain types, no functions. Internal to circuit/.
#ifndef MPC_SERVER_CIRCUIT_HASH_BIT_PROGRAM_H_
#define MPC_SERVER_CIRCUIT_HASH_BIT_PROGRAM_H_

#include <cstddef>
#include <cstdint>

namespace mpckdc {

template <class F>
class IsaTable;  // base/isa.h

enum class BitOp : uint8_t {
  kInput,   // slot, row: a shared input
  kPublic,  // slot, row: a public input, shared as (0, value)
  kXor2,    // slot, a, b
  kXor3,    // slot, a, b, c
  kNot,     // slot, a
  kScale,   // slot, p, a: p is public
  kOutput,  // row, a
  // Opened, a row of the message each.
  kMajority,  // x, y, z: xy + xz + yz
  kChoose,    // x, y, z: x(y + z) + z
  kProducts,  // `linears` operands, then `products` pairs: their sum
};

struct BitSection {
  BitOp op;
  uint8_t linears, products;  // of kProducts
  uint32_t count;
  uint32_t at;  // in args
};

struct BitStage {
  uint32_t stores_at;  // in args: the slots of `stores` rows, in the order of the message
  uint32_t stores;
  uint32_t first_section, sections;
  uint32_t opened;     // rows of this stage's message
};

// Rows of one group of lanes. Rows of slots and messages are kRow bytes long (of the kernels),
// those of inputs and outputs 64.
struct BitRows {
  uint8_t* slots;
  const uint8_t* input[2];   // x, a
  const uint8_t* publics;
  uint8_t* output[2];
  uint8_t* msg;              // zero share on entry, message on return
  size_t width;              // bytes of each row to compute
};

// Where opened rows that follow each other are recorded (share/proof_log.h): the first one's rows,
// by role; the zero share's two parts.
struct BitRecord {
  const uint8_t* own;
  const uint8_t* next;
  uint8_t* wires[2];
  uint8_t* t[2];
};

// Records `count` of a section's opened rows, whose args are at `args`: the wires, tL, and tR but
// for what is to be received.
using BitRecordFunction = void (*)(const BitSection& section, const uint16_t* args, size_t count,
                                   const uint8_t* slots, const BitRecord& to);

// How one instruction set runs it. `row` is the length of rows in slots and messages, and where
// `record` writes, or `record_far` where the log's section is far (share/proof_log.h).
struct BitKernels {
  void (*store)(const uint16_t* slots, size_t count, const uint8_t* sent, const uint8_t* received,
                const BitRows& rows);
  void (*run)(const BitSection* sections, size_t count, const uint16_t* args, const BitRows& rows);
  BitRecordFunction record, record_far;
  size_t row;
};
extern const BitKernels kBitKernelsPortable, kBitKernelsAvx2, kBitKernelsAvx512;
extern const BitKernels kBitKernelsFew;  // rows of 8 bytes: at most 64 lanes
// From rows of 64 bytes to rows of 8: of a run of many lanes, its last group of at most 64.
extern const BitRecordFunction kBitRecordFewOfMany;
const IsaTable<BitKernels>& AllBitKernels();

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_HASH_BIT_PROGRAM_H_
