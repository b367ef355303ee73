// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/workload.h"

#include <openssl/evp.h>
#include <sodium.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "mpc-server/testing/aes_plain.h"
#include "mpc-server/testing/three_parties.h"

namespace mpckdc::bench {
namespace {

void Must(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "mpc-bench: %s failed\n", what);
  std::abort();
}

}  // namespace

void DrawFromSeed(uint64_t seed, Stream purpose, uint64_t number, absl::Span<uint8_t> out) {
  uint8_t key[crypto_stream_chacha20_KEYBYTES] = {};
  uint8_t nonce[crypto_stream_chacha20_NONCEBYTES];
  static_assert(sizeof(nonce) == sizeof(number));
  std::memcpy(key, &seed, sizeof(seed));
  key[sizeof(seed)] = static_cast<uint8_t>(purpose);
  std::memcpy(nonce, &number, sizeof(number));
  Must(crypto_stream_chacha20(out.data(), out.size(), nonce, key) == 0, "ChaCha20");
}

namespace {

std::vector<std::vector<uint8_t>> DistinctKeys(const BenchSetup& setup) {
  std::vector<std::vector<uint8_t>> keys(kDistinctKeys);
  for (size_t i = 0; i < keys.size(); ++i) {
    keys[i].resize(16 * AesKeyBlocks(setup.bits));
    DrawFromSeed(setup.seed, Stream::kKeys, i, absl::MakeSpan(keys[i]));
  }
  return keys;
}

}  // namespace

void SetBatch(Block& input, uint32_t batch) { std::memcpy(&input[8], &batch, sizeof(batch)); }

Block InputOf(size_t lane, uint32_t batch) {
  Block input{};
  const uint64_t number = lane;
  std::memcpy(input.data(), &number, sizeof(number));
  SetBatch(input, batch);
  return input;
}

// Party i's share of v is (x_i, x_{i-1} + v); x_0 and x_1 are drawn, x_2 is their sum. One key
// after the other, so that making them leaves no more memory behind than one key takes.
SecretVector<SharedBlock> SharesOfRoundKeys(const BenchSetup& setup, int party, size_t first,
                                           size_t lanes) {
  const size_t blocks = AesRoundKeys(setup.bits);
  const std::vector<std::vector<uint8_t>> keys = DistinctKeys(setup);
  const size_t stride = KeyStride(setup.bits);
  SecretVector<SharedBlock> shares(lanes * stride);
  std::vector<Block> x(kParties * blocks);
  const auto X = [&](int p, size_t k) -> Block& { return x[static_cast<size_t>(p) * blocks + k]; };
  for (size_t begin = 0; begin < std::min(lanes, kDistinctKeys); ++begin) {
    const SecretVector<Block> values = PlainKeySchedule(keys[(first + begin) % kDistinctKeys]);
    for (size_t j = begin; j < lanes; j += kDistinctKeys) {
      DrawFromSeed(setup.seed, Stream::kSharing, first + j,
                   absl::MakeSpan(x.front().data(), 2 * blocks * sizeof(Block)));
      for (size_t k = 0; k < blocks; ++k) {
        X(2, k) = XorBlocks(X(0, k), X(1, k));
        shares[j * stride + k] = {X(party, k), XorBlocks(X(PrevParty(party), k), values[k])};
      }
    }
  }
  return shares;
}

Oracle::Oracle(const BenchSetup& setup)
    : hmac_(setup),
      is_hmac_(setup.hmac.has_value()),
      bits_(setup.bits),
      keys_(DistinctKeys(setup)) {}

Block Oracle::Expected(size_t lane, uint32_t batch) const {
  if (is_hmac_) return hmac_.Expected(lane, batch);
  const std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> ctx(
      EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free);
  const Block in = InputOf(lane, batch);
  Block out{};
  int size = 0;
  Must(ctx != nullptr &&
           EVP_EncryptInit_ex(ctx.get(),
                              bits_ == AesBits::k128 ? EVP_aes_128_ecb() : EVP_aes_256_ecb(),
                              nullptr, keys_[lane % kDistinctKeys].data(), nullptr) == 1 &&
           EVP_EncryptUpdate(ctx.get(), out.data(), &size, in.data(), sizeof(in)) == 1 &&
           size == sizeof(out),
       "OpenSSL's AES");
  return out;
}

std::vector<size_t> SampleOfLanes(size_t lanes) {
  std::vector<size_t> sample;
  const size_t count = std::min(lanes, kVerifiedLanes);
  for (size_t i = 0; i < count; ++i) {
    sample.push_back(count == 1 ? 0 : i * (lanes - 1) / (count - 1));
  }
  return sample;
}

bool SharesAreRight(const Oracle& oracle, uint32_t batch, absl::Span<const size_t> sample,
                    const std::array<std::vector<SharedBlock>, kParties>& shares) {
  for (const std::vector<SharedBlock>& s : shares) {
    if (s.size() != sample.size()) return false;
  }
  for (size_t i = 0; i < sample.size(); ++i) {
    Block value;
    if (!JoinForTest({shares[0][i], shares[1][i], shares[2][i]}, &value)) return false;
    if (value != oracle.Expected(sample[i], batch)) return false;
  }
  return !sample.empty();
}

}  // namespace mpckdc::bench
