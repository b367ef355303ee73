// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/garble/draws.h"

#include <sodium.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "mpc-server/base/isa.h"

namespace mpckdc::garble {

Draws::Draws(const RunKey& key) : ctr_(AllCtrs().For(BestIsa())) {
  ctr_.expand(key.data(), &key_.Get());
}

void Draws::Fill(absl::Span<uint8_t> bytes) {
  const auto blocks = static_cast<uint32_t>(bytes.size() / 16);
  ctr_.fill(key_.Get(), CtrPrefix{}, position_, bytes.data(), blocks);
  position_ += blocks;
}

RunKey RunKeys::Take(const char* purpose, uint64_t run) {
  static_assert(crypto_kdf_KEYBYTES == 32 && crypto_kdf_CONTEXTBYTES == 8);
  char context[crypto_kdf_CONTEXTBYTES] = {};
  for (size_t i = 0; i < sizeof(context) && purpose[i] != '\0'; ++i) context[i] = purpose[i];
  uint64_t as_number;
  std::memcpy(&as_number, context, sizeof(as_number));
  as_number = __builtin_bswap64(as_number);
  // Within a run purposes rise too.
  if (run + 1 < next_ || (run + 1 == next_ && as_number <= last_purpose_)) {
    std::fprintf(stderr, "a garbling's key was asked for twice\n");
    std::abort();
  }
  next_ = run + 1;
  last_purpose_ = as_number;
  RunKey key;
  crypto_kdf_derive_from_key(key.data(), key.size(), run, context, key_.Get().data());
  return key;
}

}  // namespace mpckdc::garble
