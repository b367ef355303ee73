// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/share/output_masks.h"

#include <sodium.h>

#include <algorithm>
#include <cstring>

#include "mpc-server/share/hash_prf.h"

namespace mpckdc {
namespace {

// Purposes of the keys derived from a pairwise seed (after those of pairwise_streams.cc), and from
// the common one.
enum KeyNumber : uint64_t { kStreamKey = 3, kSaltKey = 4 };
constexpr char kPairContext[crypto_kdf_CONTEXTBYTES + 1] = "mpckdc-p";
constexpr char kCommonContext[crypto_kdf_CONTEXTBYTES + 1] = "mpckdc-c";

void Expand(const CtrFunctions& ctr, const Seed& seed, const char* context, uint64_t number,
            CtrKey* out) {
  uint8_t key[16];
  crypto_kdf_derive_from_key(key, sizeof key, number, context, seed.data());
  ctr.expand(key, out);
  Wipe(key, sizeof key);
}

void Follow(const CtrFunctions& ctr, const CtrKey& key, const std::array<uint8_t, 32>& hash,
            CtrKey* out) {
  uint8_t next[16];
  HashPrf(ctr, key, hash, next);
  ctr.expand(next, out);
  Wipe(next, sizeof next);
}

}  // namespace

OutputKeys::OutputKeys(int party, const PairwiseSeeds& seeds, Isa isa) : ctr_(&AllCtrs().For(isa)) {
  Keys& k = keys_.Get();
  Expand(*ctr_, seeds.own.Get(), kPairContext, kStreamKey, &k.stream_own);
  Expand(*ctr_, seeds.next.Get(), kPairContext, kStreamKey, &k.stream_next);
  Expand(*ctr_, seeds.own.Get(), kPairContext, kSaltKey, &k.salt_own);
  Expand(*ctr_, seeds.next.Get(), kPairContext, kSaltKey, &k.salt_next);
  for (int i = 0; i < 3; ++i) {
    const auto number = static_cast<uint64_t>((party + 2 + i) % 3);
    Expand(*ctr_, seeds.common.Get(), kCommonContext, number, &k.zeros[i]);
  }
}

OutputKeys OutputKeys::For(const std::array<uint8_t, 32>& hash) const {
  OutputKeys out(*ctr_);
  const Keys& from = keys_.Get();
  Keys& to = out.keys_.Get();
  Follow(*ctr_, from.stream_own, hash, &to.stream_own);
  Follow(*ctr_, from.stream_next, hash, &to.stream_next);
  Follow(*ctr_, from.salt_own, hash, &to.salt_own);
  Follow(*ctr_, from.salt_next, hash, &to.salt_next);
  for (int i = 0; i < 3; ++i) Follow(*ctr_, from.zeros[i], hash, &to.zeros[i]);
  return out;
}

void OutputMasks::SetHash(const std::array<uint8_t, 32>& hash) {
  const OutputKeys::Keys& k = keys_.keys_.Get();
  const CtrFunctions& ctr = *keys_.ctr_;
  Scratch& s = scratch_.Get();
  OutputKey next_key, before_salt;
  HashPrf(ctr, k.stream_own, hash, s.answer.key.data());
  HashPrf(ctr, k.stream_next, hash, next_key.data());
  HashPrf(ctr, k.salt_next, hash, s.answer.salt.data());
  HashPrf(ctr, k.salt_own, hash, before_salt.data());
  s.answer.next_key = CheckOfKey(next_key);
  ctr.expand(s.answer.key.data(), &s.stream_own);
  ctr.expand(next_key.data(), &s.stream_next);
  for (int i = 0; i < 3; ++i) Follow(ctr, k.zeros[i], hash, &s.zeros[i]);
  before_.emplace(before_salt);
  Wipe(next_key.data(), next_key.size());
  Wipe(before_salt.data(), before_salt.size());
}

void OutputMasks::Mask(uint32_t number, absl::Span<uint8_t> own, absl::Span<uint8_t> before) {
  const Scratch& s = scratch_.Get();
  XorStreams(s.zeros[1], s.zeros[2], s.stream_next, number, own);
  XorStreams(s.zeros[0], s.zeros[1], s.stream_own, number, before);
  before_->Add(before);
}

void OutputMasks::XorStreams(const CtrKey& zero1, const CtrKey& zero2, const CtrKey& stream,
                             uint32_t number, absl::Span<uint8_t> data) {
  const auto counter = FirstOutputCounter(number);
  CtrPrefix prefix;
  std::memcpy(prefix.bytes, counter.data(), sizeof prefix.bytes);
  const CtrFunctions& ctr = *keys_.ctr_;
  auto& mask = scratch_.Get().mask;
  for (size_t done = 0; done < data.size();) {
    const size_t n = std::min(sizeof(mask[0]), data.size() - done);
    const auto position = static_cast<uint32_t>(done / 16);
    ctr.fill_xor(zero1, zero2, prefix, position, mask[0], (n + 15) / 16);
    ctr.fill(stream, prefix, position, mask[1], (n + 15) / 16);
    for (size_t i = 0; i < n; ++i) data[done + i] ^= mask[0][i] ^ mask[1][i];
    done += n;
  }
}

AnswerKeys OutputMasks::Finish() {
  AnswerKeys answer = scratch_.Get().answer;
  answer.before_share = before_->Finish();
  before_.reset();
  return answer;
}

}  // namespace mpckdc
