// SPDX-License-Identifier: Apache-2.0
// Half gates with AES by OpenSSL, keyed anew for every hash: slow, and without tables.
#include <openssl/evp.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "mpc-server/garble/half_gates.h"
#include "mpc-server/garble/tape_run.h"

namespace mpckdc::garble {
namespace {

struct FreeCtx {
  void operator()(EVP_CIPHER_CTX* c) const { EVP_CIPHER_CTX_free(c); }
};

void Must(bool ok) {
  if (ok) return;
  std::fputs("OpenSSL refused AES-128\n", stderr);
  std::abort();
}

Label Sigma(Label x) { return {x.high, x.high ^ x.low}; }

// OpenSSL looks a cipher up each time it is named, which takes longer than a block: once a thread.
EVP_CIPHER_CTX* ThreadContext() {
  thread_local const std::unique_ptr<EVP_CIPHER_CTX, FreeCtx> ctx = [] {
    std::unique_ptr<EVP_CIPHER_CTX, FreeCtx> made(EVP_CIPHER_CTX_new());
    Must(made != nullptr &&
         EVP_EncryptInit_ex(made.get(), EVP_aes_128_ecb(), nullptr, nullptr, nullptr) == 1);
    return made;
  }();
  return ctx.get();
}

// H of `n` labels under one key.
void Hash(const HashKey& start, uint64_t tweak, Label* x, int n) {
  EVP_CIPHER_CTX* const ctx = ThreadContext();
  const Label key = {start.low + tweak, start.high};
  Label in[2], out[2];
  for (int i = 0; i < n; ++i) in[i] = Sigma(x[i]);
  Must(EVP_EncryptInit_ex(ctx, nullptr, nullptr, reinterpret_cast<const uint8_t*>(&key), nullptr) ==
       1);
  // Whole blocks are written at once; nothing is padded, for it never ends.
  int written = 0;
  Must(EVP_EncryptUpdate(ctx, reinterpret_cast<uint8_t*>(out), &written,
                         reinterpret_cast<const uint8_t*>(in), n * 16) == 1 &&
       written == n * 16);
  for (int i = 0; i < n; ++i) x[i] = out[i] ^ in[i];
}

void Garble(const GateRange& r, const Label* delta, const Label* a, const Label* b, Label* rows,
            Label* c) {
  for (size_t i = 0; i < r.gates * r.lanes; ++i) {
    const uint64_t tweak = 2 * (r.first + i / r.lanes);
    const Label d = delta[i % r.lanes];
    Label x[2] = {a[i], a[i] ^ d}, y[2] = {b[i], b[i] ^ d};
    Hash(r.start, tweak, x, 2);
    Hash(r.start, tweak + 1, y, 2);
    const Label tg = x[0] ^ x[1] ^ d.If(b[i].colour());
    const Label te = y[0] ^ y[1] ^ a[i];
    rows[kAndRows * i] = tg;
    rows[kAndRows * i + 1] = te;
    c[i] = x[0] ^ tg.If(a[i].colour()) ^ y[0] ^ (te ^ a[i]).If(b[i].colour());
  }
}

void Evaluate(const GateRange& r, const Label* a, const Label* b, const Label* rows, Label* c) {
  for (size_t i = 0; i < r.gates * r.lanes; ++i) {
    const uint64_t tweak = 2 * (r.first + i / r.lanes);
    const Label tg = rows[kAndRows * i], te = rows[kAndRows * i + 1];
    Label x = a[i], y = b[i];
    Hash(r.start, tweak, &x, 1);
    Hash(r.start, tweak + 1, &y, 1);
    c[i] = x ^ tg.If(a[i].colour()) ^ y ^ (te ^ a[i]).If(b[i].colour());
  }
}

void HashEach(const HashKey& start, uint64_t first_tweak, const Label* x, size_t count,
              Label* out) {
  for (size_t i = 0; i < count; ++i) {
    out[i] = x[i];
    Hash(start, first_tweak + i, &out[i], 1);
  }
}

struct Portable {
  static constexpr bool kGathers = false;
  struct Ahead {
    explicit Ahead(const BlockRun&) {}
  };
  static void Xor3(const Label* a, const Label* b, const Label* c, Label* out, size_t count) {
    for (size_t i = 0; i < count; ++i) out[i] = a[i] ^ b[i] ^ c[i];
  }
  static void Garble(const GateRange& r, const Label* delta, const Label* a, const Label* b,
                     Label* rows, Label* c) {
    garble::Garble(r, delta, a, b, rows, c);
  }
  static void Evaluate(const GateRange& r, const Label* a, const Label* b, const Label* rows,
                       Label* c) {
    garble::Evaluate(r, a, b, rows, c);
  }
};

}  // namespace

constexpr HalfGateFunctions kHalfGatesPortable = {
    Garble, Evaluate, HashEach, TapeRun<Portable>::GarbleBlock, TapeRun<Portable>::EvaluateBlock};

}  // namespace mpckdc::garble
