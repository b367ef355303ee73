// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/proof/transcript.h"

namespace mpckdc::proof {

Transcript::Transcript(absl::string_view domain) {
  crypto_generichash_init(&state_, nullptr, 0, sizeof(Digest));
  Add({reinterpret_cast<const uint8_t*>(domain.data()), domain.size()});
}

Transcript& Transcript::Add(absl::Span<const uint8_t> field) {
  Add(field.size());
  crypto_generichash_update(&state_, field.data(), field.size());
  return *this;
}

Transcript& Transcript::Add(uint64_t number) {
  uint8_t bytes[8];
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<uint8_t>(number >> (56 - 8 * i));
  crypto_generichash_update(&state_, bytes, sizeof(bytes));
  return *this;
}

Digest Transcript::Hash() const {
  crypto_generichash_state copy = state_;
  Digest digest;
  crypto_generichash_final(&copy, digest.data(), digest.size());
  return digest;
}

}  // namespace mpckdc::proof
