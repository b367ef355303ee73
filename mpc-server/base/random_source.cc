// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/base/random_source.h"

#include <sodium.h>

#include <cstdlib>
#include <cstring>

namespace mpckdc {
namespace {

// The data of nothing may be nullptr, which libsodium forbids.
class KernelRandom : public RandomSource {
 public:
  KernelRandom() {
    if (sodium_init() < 0) std::abort();
  }
  void Fill(absl::Span<uint8_t> out) override {
    if (!out.empty()) randombytes_buf(out.data(), out.size());
  }
};

}  // namespace

RandomSource& SystemRandom() {
  static KernelRandom random;
  return random;
}

SeededRandomForTest::SeededRandomForTest(uint64_t seed) {
  static const char kDomain[] = "mpc-kdc seeded random for tests";
  if (sodium_init() < 0) std::abort();
  uint8_t number[8];
  for (int i = 0; i < 8; ++i) number[i] = static_cast<uint8_t>(seed >> 8 * i);
  crypto_generichash(key_, sizeof(key_), number, sizeof(number),
                     reinterpret_cast<const uint8_t*>(kDomain), sizeof(kDomain));
}

void SeededRandomForTest::Fill(absl::Span<uint8_t> out) {
  uint8_t nonce[crypto_stream_chacha20_NONCEBYTES] = {};
  static_assert(sizeof(nonce) == sizeof(calls_));
  std::memcpy(nonce, &calls_, sizeof(nonce));
  ++calls_;
  if (out.empty()) return;
  crypto_stream_chacha20(out.data(), out.size(), nonce, key_);
}

}  // namespace mpckdc
