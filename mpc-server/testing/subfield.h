// SPDX-License-Identifier: Apache-2.0
// The subfields of K with 4, 16 and 256 elements, in which what is likely in theory is seen in
// tests.
#ifndef MPC_SERVER_TESTING_SUBFIELD_H_
#define MPC_SERVER_TESTING_SUBFIELD_H_

#include <vector>

#include "mpc-server/proof/field128.h"

namespace mpckdc::proof {

class Subfield {
 public:
  // `size`: 4, 16 or 256.
  explicit Subfield(size_t size) {
    // x^((2^64-1)/(size-1)) has an order that divides size-1; the first base for which it is all.
    for (uint64_t base = 2; elements_.size() != size; ++base) {
      const K generator = Power(K{base}, ~uint64_t{0} / (size - 1));
      elements_ = {K{}, kOne};
      for (K e = generator; !(e == kOne); e = e * generator) elements_.push_back(e);
    }
  }

  size_t size() const { return elements_.size(); }
  const std::vector<K>& elements() const { return elements_; }
  // Uniform if `drawn` is.
  K Of(K drawn) const { return elements_[drawn.v % elements_.size()]; }
  F Of(F drawn) const { return {Of(drawn.low), K{}}; }

 private:
  static K Power(K base, uint64_t exponent) {
    K result = kOne;
    for (; exponent != 0; exponent >>= 1, base = base * base) {
      if ((exponent & 1) != 0) result = result * base;
    }
    return result;
  }
  std::vector<K> elements_;
};

}  // namespace mpckdc::proof

#endif  // MPC_SERVER_TESTING_SUBFIELD_H_
