// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/hmac_workload.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "mpc-server/bench/workload.h"
#include "mpc-server/key/hash_plain.h"

namespace mpckdc::bench {
namespace {

constexpr size_t kKeyBytes = 32;

size_t StateBlocks(const BenchSetup& s) { return 2 * HashStateBlocks(s.hmac->hash); }
size_t MessageBlocks(const BenchSetup& s) { return (s.hmac->bytes + 15) / 16; }

std::vector<uint8_t> Draw(const BenchSetup& s, Stream purpose, uint64_t number, size_t size) {
  std::vector<uint8_t> bytes(size);
  DrawFromSeed(s.seed, purpose, number, absl::MakeSpan(bytes));
  return bytes;
}

std::vector<std::vector<uint8_t>> Keys(const BenchSetup& s) {
  std::vector<std::vector<uint8_t>> keys;
  for (size_t i = 0; i < kDistinctKeys; ++i) keys.push_back(Draw(s, Stream::kKeys, i, kKeyBytes));
  return keys;
}

// All messages but for their first block.
std::vector<uint8_t> Text(const BenchSetup& s) {
  return Draw(s, Stream::kText, 0, 16 * MessageBlocks(s));
}

// The states after key ^ ipad and key ^ opad, in whole blocks (RFC 2104).
std::vector<uint8_t> StatesOf(HashKind hash, absl::Span<const uint8_t> key) {
  std::vector<uint8_t> states(2 * 16 * HashStateBlocks(hash));
  for (size_t i = 0; i < 2; ++i) {
    std::vector<uint8_t> block(HashBlockBytes(hash), i == 0 ? 0x36 : 0x5c);
    for (size_t k = 0; k < key.size(); ++k) block[k] ^= key[k];
    const auto initial = HashInitialState(hash);
    uint8_t* state = &states[i * states.size() / 2];
    std::memcpy(state, initial.data(), initial.size());
    CompressPlain(hash, absl::MakeSpan(state, initial.size()), block.data());
  }
  return states;
}

// Party i's share of v is (x_i, x_{i-1} + v); x_0 and x_1 are drawn, x_2 is their sum.
void Share(const BenchSetup& s, int party, uint64_t number, absl::Span<const uint8_t> value,
           SharedBlock* out) {
  const std::vector<uint8_t> x = Draw(s, Stream::kSharing, number, 2 * value.size());
  const auto X = [&](int p, size_t i) -> uint8_t {
    const uint8_t x0 = x[i], x1 = x[value.size() + i];
    return p == 0 ? x0 : p == 1 ? x1 : x0 ^ x1;
  };
  for (size_t i = 0; i < value.size(); ++i) {
    out[i / 16].x[i % 16] = X(party, i);
    out[i / 16].a[i % 16] = X(PrevParty(party), i) ^ value[i];
  }
}

}  // namespace

HmacLanes::HmacLanes(const BenchSetup& s, int party)
    : bytes_(s.hmac->bytes), blocks_(MessageBlocks(s)), states_(s.lanes * StateBlocks(s)) {
  const std::vector<uint8_t> text = Text(s);
  std::vector<std::vector<uint8_t>> states;
  for (const auto& key : Keys(s)) states.push_back(StatesOf(s.hmac->hash, key));
  (s.hmac->shared ? shared_.resize(s.lanes * blocks_) : public_.resize(s.lanes * 16 * blocks_));
  for (size_t j = 0; j < s.lanes; ++j) {
    HmacLane lane;
    lane.states = &states_[j * StateBlocks(s)];
    Share(s, party, 2 * j, states[j % kDistinctKeys], &states_[j * StateBlocks(s)]);
    if (s.hmac->shared) {
      Share(s, party, 2 * j + 1, text, &shared_[j * blocks_]);
      lane.shared_message = &shared_[j * blocks_];
      lane.bytes = bytes_;
    } else {
      std::memcpy(&public_[j * 16 * blocks_], text.data(), text.size());
      lane.public_message = absl::MakeConstSpan(&public_[j * 16 * blocks_], bytes_);
    }
    lanes_.push_back(lane);
  }
}

// Batches differ by public bits, which a share takes into its a.
void HmacLanes::SetBatch(uint32_t batch) {
  for (size_t j = 0; j < lanes_.size(); ++j) {
    const Block change = XorBlocks(InputOf(j, batch - 1), InputOf(j, batch));
    const Block begin = batch == 1 ? InputOf(j, 1) : change;
    if (!shared_.empty()) {
      shared_[j * blocks_] = AddPublic(shared_[j * blocks_], begin);
    } else {
      for (size_t i = 0; i < begin.size(); ++i) public_[j * 16 * blocks_ + i] ^= begin[i];
    }
  }
}

size_t HmacLanes::bytes() const {
  return (states_.size() + shared_.size()) * sizeof(SharedBlock) + public_.size() +
         lanes_.size() * sizeof(HmacLane);
}

std::vector<size_t> SampleOfDigests(const BenchSetup& s) {
  std::vector<size_t> sample;
  for (size_t lane : SampleOfLanes(s.lanes)) {
    for (size_t b = 0; 16 * b < HashDigestBytes(s.hmac->hash); ++b) {
      sample.push_back(lane * HashStateBlocks(s.hmac->hash) + b);
    }
  }
  return sample;
}

HmacOracle::HmacOracle(const BenchSetup& setup)
    : setup_(setup), keys_(setup.hmac ? Keys(setup) : std::vector<std::vector<uint8_t>>()) {}

Block HmacOracle::Expected(size_t number, uint32_t batch) const {
  const HashKind hash = setup_.hmac->hash;
  const size_t lane = number / HashStateBlocks(hash), block = number % HashStateBlocks(hash);
  std::vector<uint8_t> text = Text(setup_);
  const Block begin = InputOf(lane, batch);
  for (size_t i = 0; i < begin.size(); ++i) text[i] ^= begin[i];
  const EVP_MD* md = hash == HashKind::kSha1     ? EVP_sha1()
                     : hash == HashKind::kSha256 ? EVP_sha256()
                                                 : EVP_sha384();
  const std::vector<uint8_t>& key = keys_[lane % kDistinctKeys];
  uint8_t digest[EVP_MAX_MD_SIZE] = {};
  if (HMAC(md, key.data(), static_cast<int>(key.size()), text.data(), setup_.hmac->bytes, digest,
           nullptr) == nullptr) {
    std::fprintf(stderr, "mpc-bench: OpenSSL's HMAC failed\n");
    std::abort();
  }
  Block found;
  std::memcpy(found.data(), digest + 16 * block, found.size());
  return found;
}

}  // namespace mpckdc::bench
