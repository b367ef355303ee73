// SPDX-License-Identifier: Apache-2.0
// AND gates as half gates (Zahur, Rosulek, Evans, Eurocrypt 2015): two rows of 16 bytes each. XOR
// and NOT are free (Kolesnikov, Schneider, ICALP 2008).
//
// The hash is that of Guo, Katz, Wang, Weng, Yu (CRYPTO 2020) with a key for each tweak:
//
//     H(x, t) = AES-128 under S + t of sigma(x), + sigma(x)       sigma(high | low) = (high+low |
//     high)
//
// Gate n has the tweaks 2n and 2n + 1, so each half has a key of its own. (One key for both halves
// is quicker and wrong: where both inputs are public, rows would add up to a multiple of Delta.)
// Lanes are garblings of the same circuit side by side: each has its own Delta, and they share
// tweaks. S + t is added modulo 2^64 in S's low half.
//
//     labels     [gate][lane]                    a, b: inputs; c: output
//     rows       [gate][lane][T_G, T_E]
//
// Nothing branches on a label or indexes by one.
#ifndef MPC_SERVER_GARBLE_HALF_GATES_H_
#define MPC_SERVER_GARBLE_HALF_GATES_H_

#include <cstddef>
#include <cstdint>

#include "mpc-server/garble/label.h"
#include "mpc-server/garble/tape_format.h"

namespace mpckdc {
template <class F>
class IsaTable;  // base/isa.h
}

namespace mpckdc::garble {

inline constexpr size_t kAndRows = 2;

struct GateRange {
  HashKey start;
  uint64_t first;  // the gates' numbers, one after the other: never again under the same S
  size_t gates, lanes;
};

struct HalfGateFunctions {
  // From the zero labels of a and b: rows, and c's zero labels. delta: one for each lane.
  void (*garble)(const GateRange& range, const Label* delta, const Label* a, const Label* b,
                 Label* rows, Label* c);
  // From the labels that the evaluator holds.
  void (*evaluate)(const GateRange& range, const Label* a, const Label* b, const Label* rows,
                   Label* c);
  // out[i] = H(x[i], first + i), for what is no gate.
  void (*hash)(const HashKey& start, uint64_t first_tweak, const Label* x, size_t count,
               Label* out);
  // A block of a tape: the same gates, of slots.
  void (*garble_block)(const BlockRun& run);
  void (*evaluate_block)(const BlockRun& run);
};

extern const HalfGateFunctions kHalfGatesPortable, kHalfGatesAesni, kHalfGatesVaes256,
    kHalfGatesVaes512;
const IsaTable<HalfGateFunctions>& AllHalfGates();

}  // namespace mpckdc::garble

#endif  // MPC_SERVER_GARBLE_HALF_GATES_H_
