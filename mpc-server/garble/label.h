// SPDX-License-Identifier: Apache-2.0
// A wire's label of a garbled circuit: 128 bits. Of a wire's two labels the garbler keeps the one
// for 0; that for 1 is it plus Delta, whose lowest bit is 1. So the lowest bit, the colour, is the
// wire's value under a mask that the garbler knows: the zero label's colour.
//
// Plain types: the instruction sets' files include this header.
#ifndef MPC_SERVER_GARBLE_LABEL_H_
#define MPC_SERVER_GARBLE_LABEL_H_

#include <cstddef>
#include <cstdint>

namespace mpckdc::garble {

struct Label {
  uint64_t low, high;

  friend Label operator^(Label a, Label b) { return {a.low ^ b.low, a.high ^ b.high}; }
  friend bool operator==(Label a, Label b) { return a.low == b.low && a.high == b.high; }
  bool colour() const { return (low & 1) != 0; }
  // This, or zero if `bit` is 0, without a branch.
  Label If(bool bit) const {
    const uint64_t mask = ~(static_cast<uint64_t>(bit) - 1);
    return {low & mask, high & mask};
  }
};
static_assert(sizeof(Label) == 16);

}  // namespace mpckdc::garble

#endif  // MPC_SERVER_GARBLE_LABEL_H_
