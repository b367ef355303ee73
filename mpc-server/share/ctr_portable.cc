// SPDX-License-Identifier: Apache-2.0
// Counter mode by OpenSSL, which is keyed with round key 0, the key itself; and a key expansion
// without table or branch, which is slow: AES-NI has an instruction for it.
#include <openssl/evp.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "mpc-server/base/secret.h"
#include "mpc-server/share/ctr_stream.h"

namespace mpckdc {
namespace {

struct FreeCtx {
  void operator()(EVP_CIPHER_CTX* c) const { EVP_CIPHER_CTX_free(c); }
};
using Ctx = std::unique_ptr<EVP_CIPHER_CTX, FreeCtx>;

void Must(bool ok) {
  if (ok) return;
  std::fputs("OpenSSL refused AES-128-CTR\n", stderr);
  std::abort();
}

EVP_CIPHER_CTX* ThreadContext() {
  thread_local Ctx ctx(EVP_CIPHER_CTX_new());
  Must(ctx != nullptr);
  return ctx.get();
}

// a^-1 in GF(2^8) as a^254, then the affine map of FIPS 197: no table, no branch on `a`.
uint8_t Times(uint8_t a, uint8_t b) {
  uint8_t r = 0;
  for (int i = 0; i < 8; ++i) {
    r ^= static_cast<uint8_t>(a & -(b >> i & 1));
    a = static_cast<uint8_t>(a << 1 ^ (0x1B & -(a >> 7)));
  }
  return r;
}
uint8_t Sub(uint8_t a) {
  uint8_t p = a, r = 1;
  for (int i = 1; i < 8; ++i) {
    p = Times(p, p);
    r = Times(r, p);
  }
  uint8_t s = 0x63;
  for (int k = 0; k < 5; ++k) s ^= static_cast<uint8_t>(r << k | r >> (8 - k));
  return s;
}

void Expand(const uint8_t key[16], CtrKey* out) {
  uint8_t* w = out->round_keys;
  std::memcpy(w, key, 16);
  uint8_t rcon = 1;
  for (size_t i = 16; i < 176; i += 4) {
    uint8_t t[4];
    std::memcpy(t, w + i - 4, 4);
    if (i % 16 == 0) {
      const uint8_t first = t[0];
      t[0] = Sub(t[1]) ^ rcon;
      t[1] = Sub(t[2]);
      t[2] = Sub(t[3]);
      t[3] = Sub(first);
      rcon = Times(rcon, 2);
    }
    for (int j = 0; j < 4; ++j) w[i + j] = w[i + j - 16] ^ t[j];
  }
}

void Fill(const CtrKey& k, const CtrPrefix& prefix, uint32_t position, uint8_t* out,
          size_t blocks) {
  uint8_t counter[16];
  std::memcpy(counter, prefix.bytes, sizeof(prefix.bytes));
  for (int i = 0; i < 4; ++i) counter[12 + i] = static_cast<uint8_t>(position >> (24 - 8 * i));
  EVP_CIPHER_CTX* ctx = ThreadContext();
  Must(EVP_EncryptInit_ex(ctx, EVP_aes_128_ctr(), nullptr, k.round_keys, counter) == 1);
  std::memset(out, 0, 16 * blocks);
  int written = 0;
  Must(EVP_EncryptUpdate(ctx, out, &written, out, static_cast<int>(16 * blocks)) == 1);
  EVP_CIPHER_CTX_reset(ctx);
}

void FillXor(const CtrKey& k1, const CtrKey& k2, const CtrPrefix& prefix, uint32_t position,
             uint8_t* out, size_t blocks) {
  Fill(k1, prefix, position, out, blocks);
  uint8_t second[4096];
  for (size_t done = 0; done < blocks;) {
    const size_t n = blocks - done < sizeof(second) / 16 ? blocks - done : sizeof(second) / 16;
    Fill(k2, prefix, position + static_cast<uint32_t>(done), second, n);
    for (size_t i = 0; i < 16 * n; ++i) out[16 * done + i] ^= second[i];
    done += n;
  }
  Wipe(second, sizeof(second));
}

void FillApart(const CtrKey& k1, const CtrKey& k2, const CtrPrefix& prefix, uint32_t position,
               const StreamsApart& out, size_t blocks) {
  Fill(k1, prefix, position, out.own, blocks);
  Fill(k2, prefix, position, out.next, blocks);
  for (size_t i = 0; i < 16 * blocks; ++i) out.sum[i] = out.own[i] ^ out.next[i];
}

}  // namespace

constexpr CtrFunctions kCtrPortable = {Expand, FillXor, Fill, FillApart};

}  // namespace mpckdc
