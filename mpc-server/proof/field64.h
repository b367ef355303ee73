// SPDX-License-Identifier: Apache-2.0
// K = GF(2)[x] / (x^64 + x^4 + x^3 + x + 1). Bit i of a word is the coefficient of x^i, so 64 lanes
// of a bit-sliced row are one element of K.
//
// Nothing here branches on an element or indexes by one, except where it says "public". Addition
// may be inlined in the files of every instruction set and is therefore never a function of its
// own (bitslice/CMakeLists.txt, the note on leaks).
#ifndef MPC_SERVER_PROOF_FIELD64_H_
#define MPC_SERVER_PROOF_FIELD64_H_

#include <cstddef>
#include <cstdint>

#define MPCKDC_PROOF_INLINE inline __attribute__((always_inline))

namespace mpckdc::proof {

struct K {
  uint64_t v = 0;

  friend MPCKDC_PROOF_INLINE K operator+(K a, K b) { return K{a.v ^ b.v}; }
  friend MPCKDC_PROOF_INLINE K& operator+=(K& a, K b) {
    a.v ^= b.v;
    return a;
  }
  // Of public elements, or in tests.
  friend MPCKDC_PROOF_INLINE bool operator==(K a, K b) { return a.v == b.v; }
};

// A polynomial of degree < 128: the sum of products of elements before reduction. Sums of products
// are added so and reduced once.
struct WideK {
  uint64_t low = 0, high = 0;

  friend MPCKDC_PROOF_INLINE WideK operator+(WideK a, WideK b) {
    return WideK{a.low ^ b.low, a.high ^ b.high};
  }
  friend MPCKDC_PROOF_INLINE WideK& operator+=(WideK& a, WideK b) {
    a.low ^= b.low;
    a.high ^= b.high;
    return a;
  }
};

inline constexpr K kOne{1};
inline constexpr K kX{2};

K operator*(K a, K b);
K Square(K a);
K SquareRoot(K a);
K Inverse(K a);  // of zero: zero
K Reduce(WideK a);

// The sum of a[i] * b[i].
K Dot(const K* a, const K* b, size_t n);
// out[i] = a[i] * c. `out` may be `a`.
void Scale(const K* a, K c, size_t n, K* out);

}  // namespace mpckdc::proof

#endif  // MPC_SERVER_PROOF_FIELD64_H_
