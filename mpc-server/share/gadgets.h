// SPDX-License-Identifier: Apache-2.0
// The gadgets: the kinds of statement that a log of messages holds and a proof knows. One has wires
// and bits; a bit is one that was opened to the next party, Q(wires) + l(wires) with Q quadratic
// without linear part and l linear. Here is how many there are of each and in which order; the
// formulas are in proof/gadget.h, and who records is free to have others that open the same.
//
//             wires, in order                           bits, in order
//   kSbox17   x0..x7, N0..N3, q, M0..M3                 N (4), q, M (4), the product (8): (a+b)M,
//   bM kSbox22   x0..x7, N0..N3, u0, u1, v0..v7            N (4), u (2), v (8), the product u*v (8)
//   kProductsK, K = 1..7
//             A1, B1, .., AK, BK                        A1*B1 + .. + AK*BK: one
//
// The S-boxes' letters are those of circuit/aes/sbox.h: x the byte to be inverted in the tower
// basis, a = x0..x3, b = x4..x7, N its norm, q the helper, M = N^-1; the product is taken before
// the linear layer after it.
#ifndef MPC_SERVER_SHARE_GADGETS_H_
#define MPC_SERVER_SHARE_GADGETS_H_

#include <cstddef>
#include <cstdint>

namespace mpckdc {

enum class Gadget : uint8_t {
  kSbox17,
  kSbox22,
  kProducts1,
  kProducts2,
  kProducts3,
  kProducts4,
  kProducts5,
  kProducts6,
  kProducts7,
};
inline constexpr size_t kGadgets = 9;
inline constexpr size_t kMaxGadgetWires = 22;
inline constexpr size_t kMaxGadgetBits = 22;
inline constexpr size_t kMaxGadgetProducts = 7;

// These are used in the files of every instruction set, and must leave no function of their own.
// Of kProductsK.
__attribute__((always_inline)) inline constexpr Gadget ProductsGadget(size_t products) {
  return static_cast<Gadget>(static_cast<size_t>(Gadget::kProducts1) + products - 1);
}
__attribute__((always_inline)) inline constexpr size_t GadgetProducts(Gadget gadget) {
  return static_cast<size_t>(gadget) - static_cast<size_t>(Gadget::kProducts1) + 1;
}

__attribute__((always_inline)) inline constexpr size_t GadgetWires(Gadget gadget) {
  return gadget == Gadget::kSbox17   ? 17
         : gadget == Gadget::kSbox22 ? 22
                                     : 2 * GadgetProducts(gadget);
}
__attribute__((always_inline)) inline constexpr size_t GadgetBits(Gadget gadget) {
  return gadget == Gadget::kSbox17 ? 17 : gadget == Gadget::kSbox22 ? 22 : 1;
}

}  // namespace mpckdc

#endif  // MPC_SERVER_SHARE_GADGETS_H_
