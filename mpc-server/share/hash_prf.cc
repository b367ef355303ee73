// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/share/hash_prf.h"

#include <cstring>

#include "mpc-server/base/secret.h"

namespace mpckdc {
namespace {

// The counter functions take a block as the prefix and the position in it.
void EncryptBlock(const CtrFunctions& ctr, const CtrKey& key, const uint8_t in[16],
                  uint8_t out[16]) {
  CtrPrefix prefix;
  std::memcpy(prefix.bytes, in, sizeof prefix.bytes);
  uint32_t position = 0;
  for (int i = 12; i < 16; ++i) position = position << 8 | in[i];
  ctr.fill(key, prefix, position, out, 1);
}

}  // namespace

void HashPrf(const CtrFunctions& ctr, const CtrKey& key, const std::array<uint8_t, 32>& hash,
             uint8_t out[16]) {
  uint8_t block[16];
  EncryptBlock(ctr, key, hash.data(), block);
  for (int i = 0; i < 16; ++i) block[i] ^= hash[16 + i];
  EncryptBlock(ctr, key, block, out);
  Wipe(block, sizeof block);
}

}  // namespace mpckdc
