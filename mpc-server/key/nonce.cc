// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/key/nonce.h"

#include <cassert>

#include "absl/strings/str_cat.h"

namespace mpckdc {

NonceFields SplitNonce(const Nonce& nonce) {
  NonceFields fields;
  for (int i = 0; i < 4; ++i) fields.seconds = fields.seconds << 8 | nonce[i];
  fields.cluster = static_cast<uint16_t>(nonce[4] << 8 | nonce[5]);
  for (int i = 6; i < 12; ++i) fields.sequence = fields.sequence << 8 | nonce[i];
  return fields;
}

Nonce JoinNonce(const NonceFields& fields) {
  assert(fields.sequence < kNonceSequenceEnd);
  Nonce nonce;
  for (int i = 0; i < 4; ++i) nonce[i] = static_cast<uint8_t>(fields.seconds >> (24 - 8 * i));
  nonce[4] = static_cast<uint8_t>(fields.cluster >> 8);
  nonce[5] = static_cast<uint8_t>(fields.cluster);
  for (int i = 0; i < 6; ++i) nonce[6 + i] = static_cast<uint8_t>(fields.sequence >> (40 - 8 * i));
  return nonce;
}

Nonce AdvanceNonce(const Nonce& nonce, uint64_t count) {
  NonceFields fields = SplitNonce(nonce);
  assert(count < kNonceSequenceEnd && fields.sequence + count < kNonceSequenceEnd);
  fields.sequence += count;
  return JoinNonce(fields);
}

std::string NonceText(const Nonce& nonce) {
  const NonceFields fields = SplitNonce(nonce);
  return absl::StrCat(fields.seconds, ".", fields.cluster, ".", fields.sequence);
}

}  // namespace mpckdc
