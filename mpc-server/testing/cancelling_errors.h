// SPDX-License-Identifier: Apache-2.0
//
// Errors of several bits that a check with weights known in advance does not see.
//
// A linear check with 64-bit weights adds up the weights of the bits that are wrong. Any 65 bits of
// a message have a subset whose weights add up to zero: whoever knows the weights before the
// message finds it by elimination.
#ifndef MPC_SERVER_TESTING_CANCELLING_ERRORS_H_
#define MPC_SERVER_TESTING_CANCELLING_ERRORS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "mpc-server/base/random_source.h"

namespace mpckdc {

struct Flip {
  size_t byte = 0;
  uint8_t mask = 0;
};
void ApplyFlips(const std::vector<Flip>& flips, absl::Span<uint8_t> bytes);

// Of the bit of `lane` in `row` of a message.
using Weight = std::function<uint64_t(size_t row, size_t lane)>;

// Weights that somebody might fix in advance:
//   0  all alike: an even number of wrong bits goes unseen
//   1  one for each lane, all rows alike
//   2  one for each row, all lanes alike
//   3  x^lane in GF(2^64), times w^(row mod 4): four bits as an embedded element of GF(16)
//   4  x^lane times a weight of the row that a fixed generator gives
//   5  a weight of the place that a fixed generator gives
inline constexpr size_t kKnownWeights = 6;
uint64_t KnownWeight(size_t which, size_t row, size_t lane);

// x^64 + x^4 + x^3 + x + 1.
uint64_t Multiply64(uint64_t a, uint64_t b);

// Random bits of a message of `size` bytes in rows of `row_bytes` whose weights add up to zero.
// Empty: the message is too short.
std::vector<Flip> CancellingFlips(const Weight& weight, size_t size, size_t row_bytes,
                                  RandomSource& random);

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_CANCELLING_ERRORS_H_
