// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/testing/cancelling_errors.h"

#include <array>
#include <bitset>
#include <utility>

namespace mpckdc {
namespace {

constexpr size_t kTried = 65;  // as many vectors of 64 bits depend on each other

// A fixed generator (splitmix64).
uint64_t Fixed(uint64_t place) {
  uint64_t z = place * 0x9E3779B97F4A7C15u + 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

uint64_t Power(uint64_t base, uint64_t exponent) {
  uint64_t result = 1;
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) result = Multiply64(result, base);
    base = Multiply64(base, base);
  }
  return result;
}

// The root of y^4 = y + 1 in GF(2^64): GF(16)'s w. Elements of order dividing 15 are powers.
uint64_t EmbeddedOmega() {
  for (uint64_t base = 2;; ++base) {
    const uint64_t root = Power(base, ~uint64_t{0} / 15);
    for (uint64_t y = root, i = 1; i < 15; ++i, y = Multiply64(y, root)) {
      if (Power(y, 4) == (y ^ 1)) return y;
    }
  }
}

}  // namespace

void ApplyFlips(const std::vector<Flip>& flips, absl::Span<uint8_t> bytes) {
  for (const Flip& flip : flips) {
    if (flip.byte < bytes.size()) bytes[flip.byte] ^= flip.mask;
  }
}

uint64_t Multiply64(uint64_t a, uint64_t b) {
  uint64_t r = 0;
  for (; b != 0; b >>= 1) {
    if (b & 1) r ^= a;
    a = a << 1 ^ (a >> 63 != 0 ? 0x1B : 0);
  }
  return r;
}

uint64_t KnownWeight(size_t which, size_t row, size_t lane) {
  static const uint64_t omega = EmbeddedOmega();
  const uint64_t x_lane = uint64_t{1} << lane % 64;
  switch (which) {
    case 0:
      return 1;
    case 1:
      return Fixed(lane);
    case 2:
      return Fixed(row);
    case 3:
      return Multiply64(Power(omega, row % 4), x_lane);
    case 4:
      return Multiply64(Fixed(row), x_lane);
    default:
      return Fixed(row << 32 | lane);
  }
}

// Gaussian elimination as the bits come: `basis` has a vector for each leading bit, and which bits
// of the message it is the sum of.
std::vector<Flip> CancellingFlips(const Weight& weight, size_t size, size_t row_bytes,
                                  RandomSource& random) {
  using Members = std::bitset<kTried>;
  std::array<std::pair<uint64_t, Members>, 64> basis{};
  std::vector<Flip> tried;
  while (tried.size() < kTried && tried.size() < 8 * size) {
    uint64_t draw;
    random.Fill({reinterpret_cast<uint8_t*>(&draw), sizeof(draw)});
    const size_t byte = draw % size, bit = draw >> 32 & 7;
    const auto mask = static_cast<uint8_t>(1 << bit);
    bool twice = false;
    for (const Flip& flip : tried) twice |= flip.byte == byte && flip.mask == mask;
    if (twice) continue;
    uint64_t sum = weight(byte / row_bytes, 8 * (byte % row_bytes) + bit);
    Members members;
    members.set(tried.size());
    tried.push_back({byte, mask});
    while (sum != 0) {
      auto& [lead, of] = basis[static_cast<size_t>(63 - __builtin_clzll(sum))];
      if (lead == 0) {
        lead = sum;
        of = members;
        break;
      }
      sum ^= lead;
      members ^= of;
    }
    if (sum != 0) continue;
    std::vector<Flip> cancelling;
    for (size_t i = 0; i < tried.size(); ++i) {
      if (members[i]) cancelling.push_back(tried[i]);
    }
    return cancelling;
  }
  return {};
}

}  // namespace mpckdc
