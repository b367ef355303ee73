// SPDX-License-Identifier: Apache-2.0
// AES-128 in counter mode as a pseudorandom function of a 16-byte counter block, one
// implementation per instruction set.
#ifndef MPC_SERVER_SHARE_CTR_STREAM_H_
#define MPC_SERVER_SHARE_CTR_STREAM_H_

#include <cstddef>
#include <cstdint>

namespace mpckdc {

template <class F>
class IsaTable;  // base/isa.h

// An expanded AES-128 key. Trivially copyable: keep it in Secret<>. (Plain arrays: the files of the
// instruction sets must not instantiate inline functions of the standard library.)
struct CtrKey {
  alignas(16) uint8_t round_keys[176];
};

// The first 12 bytes of the counter block; the last 4 are the position, big-endian.
struct CtrPrefix {
  uint8_t bytes[12];
};

// Zero shares to be made later: F(own, prefix|position...) ^ F(next, prefix|position...). The
// places are taken; the keys are the streams'.
struct ZeroSource {
  const CtrKey* own;
  const CtrKey* next;
  CtrPrefix prefix;
  uint32_t position;
};

// Where two streams and their sum go.
struct StreamsApart {
  uint8_t* own;
  uint8_t* next;
  uint8_t* sum;
};

struct CtrFunctions {
  // FIPS 197, section 5.2; no table, no branch on the key.
  void (*expand)(const uint8_t key[16], CtrKey* out);
  // out = F(k1, prefix|position...) ^ F(k2, prefix|position...), `blocks` AES blocks.
  void (*fill_xor)(const CtrKey& k1, const CtrKey& k2, const CtrPrefix& prefix, uint32_t position,
                   uint8_t* out, size_t blocks);
  // out = F(k, prefix|position...).
  void (*fill)(const CtrKey& k, const CtrPrefix& prefix, uint32_t position, uint8_t* out,
               size_t blocks);
  // own = F(k1, ..), next = F(k2, ..), sum = own ^ next.
  void (*fill_apart)(const CtrKey& k1, const CtrKey& k2, const CtrPrefix& prefix, uint32_t position,
                     const StreamsApart& out, size_t blocks);
};
extern const CtrFunctions kCtrPortable, kCtrAesni, kCtrVaes256, kCtrVaes512;
const IsaTable<CtrFunctions>& AllCtrs();
CtrKey ExpandCtrKey(const CtrFunctions& ctr, const uint8_t key[16]);

}  // namespace mpckdc

#endif  // MPC_SERVER_SHARE_CTR_STREAM_H_
