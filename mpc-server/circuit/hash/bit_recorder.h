// SPDX-License-Identifier: Apache-2.0
// Records a computation on bits as a program (bit_program.h): instead of computing, each operation
// notes what it would do.
//
// A value is free (an XOR, a complement, a product with a public bit) or opened: a sum of products
// whose result costs one bit of one message, however many products it has. An opened value's level
// is one more than the highest of what it is made of; the highest of all is the number of rounds.
// So what is known early leaves the critical path by itself. Finish() then moves everything as late
// as that number of rounds allows: values live shortly, and messages have about equal lengths.
#ifndef MPC_SERVER_CIRCUIT_HASH_BIT_RECORDER_H_
#define MPC_SERVER_CIRCUIT_HASH_BIT_RECORDER_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "mpc-server/circuit/hash/bit_program.h"

namespace mpckdc {

struct BitProgram {
  std::vector<BitStage> stages;  // rounds() + 1: the last one opens nothing
  std::vector<BitSection> sections;
  std::vector<uint16_t> args;
  size_t slots = 0;
  size_t opened = 0;             // bits of one lane in all messages

  size_t rounds() const { return stages.size() - 1; }
};

// A recorded value or its complement.
struct Bit {
  uint32_t id = 0;  // 2 * node + complement; 0 and 1 are the constants
  friend bool operator==(Bit, Bit) = default;
};
inline constexpr Bit kZeroBit{0}, kOneBit{1};

// A sum of values and of products of values.
struct BitSum {
  absl::InlinedVector<Bit, 4> linear;
  absl::InlinedVector<std::pair<Bit, Bit>, 8> products;
};

class BitRecorder {
 public:
  BitRecorder();

  Bit Input(size_t row);   // shared
  Bit Public(size_t row);  // known to all, other in each lane
  Bit Not(Bit a) const { return {a.id ^ 1}; }
  Bit Xor(Bit a, Bit b) { return Xor(a, b, kZeroBit); }
  Bit Xor(Bit a, Bit b, Bit c);

  // One bit each, unless constants or public bits make it free.
  Bit And(Bit a, Bit b) { return Open({{}, {{a, b}}}); }
  Bit Majority(Bit x, Bit y, Bit z);
  Bit Choose(Bit x, Bit y, Bit z);
  Bit Open(const BitSum& sum);

  // The number of messages after which it is known.
  uint32_t level(Bit a) const { return nodes_[a.id / 2].level; }
  size_t opened() const { return opened_; }

  // Where the recording stands. Rewind() forgets what came later.
  struct Mark {
    size_t nodes, args, opened;
  };
  Mark mark() const { return {nodes_.size(), args_.size(), opened_}; }
  void Rewind(const Mark& mark);

  // `outputs[i]` is output row i.
  BitProgram Finish(absl::Span<const Bit> outputs);

 private:
  friend class BitScheduler;
  struct Node {
    BitOp op;
    bool is_public;
    uint8_t linears, products;
    uint8_t arg_count;
    uint32_t level;
    uint32_t args;  // in args_: nodes, or an input's row
  };

  Bit Add(BitOp op, absl::Span<const uint32_t> args, uint8_t linears = 0, uint8_t products = 0);
  // The node of a value that is no complement: made where it is one.
  uint32_t Plain(Bit a);
  bool IsPublic(Bit a) const { return nodes_[a.id / 2].is_public; }
  Bit OpenChecked(BitSum sum);

  std::vector<Node> nodes_;  // the first is the constant 0
  std::vector<uint32_t> args_;
  size_t opened_ = 0;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_HASH_BIT_RECORDER_H_
