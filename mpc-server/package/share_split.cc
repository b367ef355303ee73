// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/package/share_split.h"

#include <sodium.h>

#include <cstdlib>

namespace mpckdc::enroll {

std::array<SplitShare, 3> Split(absl::Span<const uint8_t> value) {
  if (sodium_init() < 0) std::abort();  // no randomness: nothing may leave
  std::array<SplitShare, 3> shares;
  for (SplitShare& share : shares) {
    share.x = SecretBytes(value.size());
    share.a = SecretBytes(value.size());
  }
  randombytes_buf(shares[0].x.data(), value.size());
  randombytes_buf(shares[1].x.data(), value.size());
  for (size_t i = 0; i < value.size(); ++i) {
    shares[2].x[i] = shares[0].x[i] ^ shares[1].x[i];
    for (int party = 0; party < 3; ++party) {
      shares[party].a[i] = shares[(party + 2) % 3].x[i] ^ value[i];
    }
  }
  return shares;
}

}  // namespace mpckdc::enroll
