// SPDX-License-Identifier: Apache-2.0
// Fresh randomness as an injected interface: the kernel's in production, a seeded one in tests and
// in sim/.
#ifndef MPC_SERVER_BASE_RANDOM_SOURCE_H_
#define MPC_SERVER_BASE_RANDOM_SOURCE_H_

#include <cstdint>

#include "absl/types/span.h"

namespace mpckdc {

class RandomSource {
 public:
  virtual ~RandomSource() = default;
  // Fills `out` completely or does not return.
  virtual void Fill(absl::Span<uint8_t> out) = 0;
};

// getrandom(2) through libsodium. Stateless, thread safe.
RandomSource& SystemRandom();

// Deterministic: BLAKE2b-keyed ChaCha20 stream of `seed`. For tests and sim/ only; it says so in
// its name. Not thread safe.
class SeededRandomForTest : public RandomSource {
 public:
  explicit SeededRandomForTest(uint64_t seed);
  void Fill(absl::Span<uint8_t> out) override;

 private:
  uint8_t key_[32];
  uint64_t calls_ = 0;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_BASE_RANDOM_SOURCE_H_
