// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/job/nonce.h"

#include <cassert>

#include "absl/strings/str_cat.h"

namespace mpckdc {

NonceParts SplitNonce(const Nonce& nonce) {
  NonceParts parts;
  for (int i = 0; i < 4; ++i) parts.seconds = parts.seconds << 8 | nonce[i];
  parts.cluster = static_cast<uint16_t>(nonce[4] << 8 | nonce[5]);
  for (int i = 6; i < 12; ++i) parts.sequence = parts.sequence << 8 | nonce[i];
  return parts;
}

Nonce JoinNonce(const NonceParts& parts) {
  assert(parts.sequence < kNonceSequenceEnd);
  Nonce nonce;
  for (int i = 0; i < 4; ++i) nonce[i] = static_cast<uint8_t>(parts.seconds >> (24 - 8 * i));
  nonce[4] = static_cast<uint8_t>(parts.cluster >> 8);
  nonce[5] = static_cast<uint8_t>(parts.cluster);
  for (int i = 0; i < 6; ++i) nonce[6 + i] = static_cast<uint8_t>(parts.sequence >> (40 - 8 * i));
  return nonce;
}

Nonce AdvanceNonce(const Nonce& nonce, uint64_t count) {
  NonceParts parts = SplitNonce(nonce);
  assert(count < kNonceSequenceEnd && parts.sequence + count < kNonceSequenceEnd);
  parts.sequence += count;
  return JoinNonce(parts);
}

std::string NonceText(const Nonce& nonce) {
  const NonceParts parts = SplitNonce(nonce);
  return absl::StrCat(parts.seconds, ".", parts.cluster, ".", parts.sequence);
}

}  // namespace mpckdc
