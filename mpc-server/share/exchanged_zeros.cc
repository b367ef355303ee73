// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/share/exchanged_zeros.h"

#include <sodium.h>

#include <array>
#include <cstring>

namespace mpckdc {

void ExchangedZeros::Reset(absl::Span<Circuit* const> circuits, RandomSource& random, bool apart) {
  Cost cost;
  for (const Circuit* circuit : circuits) cost = Together(cost, circuit->DeclaredCost());
  random_ = &random;
  own_ = pool_.Refill(cost.bytes_to_next, apart);
}

// The system's generator, itself ChaCha20, gives a key, a fresh one each time: taken from it
// directly these bytes would be most of the protocol's cost.
void ExchangedZeros::Produce(ZeroShares&, RoundOut out) {
  static constexpr uint8_t kNonce[crypto_stream_chacha20_NONCEBYTES] = {};
  Secret<std::array<uint8_t, crypto_stream_chacha20_KEYBYTES>> key;
  random_->Fill(absl::MakeSpan(key.Get()));
  crypto_stream_chacha20(own_.data(), own_.size(), kNonce, key.Get().data());
  std::memcpy(out.to_next.data(), own_.data(), own_.size());
}

absl::Status ExchangedZeros::Consume(RoundIn in) {
  pool_.Add(in.from_prev);
  own_ = {};
  return absl::OkStatus();
}

}  // namespace mpckdc
