// SPDX-License-Identifier: Apache-2.0
// 64 lanes in a machine word.
#ifndef MPC_SERVER_CIRCUIT_BITSLICE_WORD_PORTABLE_H_
#define MPC_SERVER_CIRCUIT_BITSLICE_WORD_PORTABLE_H_

#include <cstddef>
#include <cstdint>

namespace mpckdc {

struct WordPortable {
  using T = uint64_t;
  static constexpr size_t kBytes = 8;
  static T Load(const uint8_t* p) {
    T v;
    __builtin_memcpy(&v, p, sizeof(v));
    return v;
  }
  static void Store(uint8_t* p, T v) { __builtin_memcpy(p, &v, sizeof(v)); }
  static void StoreForLater(uint8_t* p, T v) { Store(p, v); }
  static void FinishStores() {}
  static T Zero() { return 0; }
  static T Not(T a) { return ~a; }
  static T Xor(T a, T b) { return a ^ b; }
  static T Xor3(T a, T b, T c) { return a ^ b ^ c; }
  static T And(T a, T b) { return a & b; }
  static T AndXor(T a, T b, T acc) { return (a & b) ^ acc; }

  // For the transpose: independent 64-bit elements.
  template <int kShift>
  static T ShiftLeft(T a) {
    return a << kShift;
  }
  template <int kShift>
  static T ShiftRight(T a) {
    return a >> kShift;
  }
  static T Set1(uint64_t v) { return v; }
  // Element e comes from or goes to p + e * stride.
  static T Gather(const uint8_t* p, size_t) { return Load(p); }
  static void Scatter(uint8_t* p, size_t, T v) { Store(p, v); }
};

}  // namespace mpckdc

#endif  // MPC_SERVER_CIRCUIT_BITSLICE_WORD_PORTABLE_H_
