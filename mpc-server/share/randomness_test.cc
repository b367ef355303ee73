// SPDX-License-Identifier: Apache-2.0
#include <openssl/evp.h>

#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "mpc-server/base/isa.h"
#include "mpc-server/base/random_source.h"
#include "mpc-server/share/ctr_stream.h"
#include "mpc-server/share/hash_prf.h"
#include "mpc-server/share/pairwise_streams.h"

namespace mpckdc {
namespace {

PairwiseSeeds CopySeeds(const Seed& own, const Seed& next) {
  return {Secret<Seed>(own), Secret<Seed>(next), {}};
}

// P_i holds k_i and k_{i+1}.
std::vector<PairwiseStreams> ThreeParties(uint32_t session, Isa isa) {
  SeededRandomForTest random(7);
  Seed k[3];
  for (Seed& s : k) random.Fill(absl::MakeSpan(s));
  std::vector<PairwiseStreams> parties;
  for (int i = 0; i < 3; ++i) {
    parties.emplace_back(session, CopySeeds(k[i], k[(i + 1) % 3]), isa);
  }
  return parties;
}

// FIPS 197, appendix A.1.
TEST(CtrStreamTest, KeyExpansion) {
  const uint8_t key[16] = {0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6,
                           0xab, 0xf7, 0x15, 0x88, 0x09, 0xcf, 0x4f, 0x3c};
  const uint8_t last[16] = {0xd0, 0x14, 0xf9, 0xa8, 0xc9, 0xee, 0x25, 0x89,
                            0xe1, 0x3f, 0x0c, 0xc8, 0xb6, 0x63, 0x0c, 0xa6};
  const CtrKey want = ExpandCtrKey(AllCtrs().For(Isa::kPortable), key);
  for (Isa isa : SupportedIsas()) {
    const CtrKey k = ExpandCtrKey(AllCtrs().For(isa), key);
    EXPECT_EQ(std::memcmp(k.round_keys + 160, last, 16), 0) << IsaName(isa);
    EXPECT_EQ(std::memcmp(k.round_keys, want.round_keys, sizeof(k.round_keys)), 0);
  }
}

TEST(CtrStreamTest, EveryVariantEqualsOpenSsl) {
  const uint8_t kKey1[16] = {1, 2, 3}, kKey2[16] = {4, 5, 6};
  const CtrFunctions& reference = AllCtrs().For(Isa::kPortable);
  const CtrKey k1 = ExpandCtrKey(reference, kKey1), k2 = ExpandCtrKey(reference, kKey2);
  const CtrPrefix prefix = {{9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 255, 254}};
  for (const IsaVariant<CtrFunctions>& v : AllCtrs().supported()) {
    for (size_t blocks : {1u, 2u, 3u, 4u, 5u, 7u, 8u, 9u, 15u, 16u, 17u, 63u, 300u}) {
      for (uint32_t position : {0u, 1u, 254u, 65535u, 0x00ffffffu}) {
        std::vector<uint8_t> want(16 * blocks), got(16 * blocks + 1, 0xEE);
        reference.fill(k1, prefix, position, want.data(), blocks);
        v.functions.fill(k1, prefix, position, got.data(), blocks);
        EXPECT_EQ(std::memcmp(want.data(), got.data(), want.size()), 0) << v.name;
        reference.fill_xor(k1, k2, prefix, position, want.data(), blocks);
        v.functions.fill_xor(k1, k2, prefix, position, got.data(), blocks);
        EXPECT_EQ(std::memcmp(want.data(), got.data(), want.size()), 0) << v.name;
        EXPECT_EQ(got.back(), 0xEE);
        std::vector<uint8_t> own(16 * blocks + 1, 0xEE), next = own, sum = own;
        v.functions.fill_apart(k1, k2, prefix, position, {own.data(), next.data(), sum.data()},
                               blocks);
        EXPECT_EQ(sum, got) << v.name;
        v.functions.fill(k1, prefix, position, got.data(), blocks);
        EXPECT_EQ(own, got) << v.name;
        v.functions.fill(k2, prefix, position, got.data(), blocks);
        EXPECT_EQ(next, got) << v.name;
      }
    }
  }
}

TEST(PairwiseStreamsTest, ZeroSharesCancelAcrossInstructionSets) {
  const Isa best = SupportedIsas().back();
  auto a = ThreeParties(5, best);
  auto b = ThreeParties(5, Isa::kPortable);
  for (size_t size : {1u, 16u, 31u, 64u, 1000u}) {
    const StreamPlace place = {static_cast<uint32_t>(size), 2, 0};
    std::vector<uint8_t> s0(size), s1(size), s2(size);
    a[0].FillZeroShare(place, absl::MakeSpan(s0));
    b[1].FillZeroShare(place, absl::MakeSpan(s1));
    a[2].FillZeroShare(place, absl::MakeSpan(s2));
    bool zero = true;
    for (size_t i = 0; i < size; ++i) {
      EXPECT_EQ(s0[i] ^ s1[i] ^ s2[i], 0);
      zero = zero && s0[i] == 0;
    }
    if (size > 8) {
      EXPECT_FALSE(zero);
    }
  }
}

// The halves of a zero share: one is the neighbour's too, and their sum is the zero share.
TEST(PairwiseStreamsTest, ZeroSharesComeApart) {
  auto p = ThreeParties(5, BestIsa()), again = ThreeParties(5, Isa::kPortable);
  for (size_t size : {1u, 16u, 31u, 64u, 1000u}) {
    const StreamPlace place = {static_cast<uint32_t>(size), 2, 0};
    std::vector<uint8_t> whole(size), own[2], next[2], sum(size);
    for (int i : {0, 1}) {
      own[i].resize(size);
      next[i].resize(size);
      p[i].FillZeroApart(place, {own[i].data(), next[i].data(), sum.data()}, size);
    }
    again[1].FillZeroShare(place, absl::MakeSpan(whole));
    EXPECT_EQ(sum, whole);
    EXPECT_EQ(next[0], own[1]);
    for (size_t i = 0; i < size; ++i) EXPECT_EQ(own[1][i] ^ next[1][i], sum[i]);
  }
}

TEST(PairwiseStreamsTest, RandomStreamsAreTheNeighboursToo) {
  auto p = ThreeParties(5, BestIsa());
  std::vector<uint8_t> own0(48), next0(48), own1(48), next1(48);
  p[0].FillRandom({1, 0, 0}, absl::MakeSpan(own0), absl::MakeSpan(next0));
  p[1].FillRandom({1, 0, 0}, absl::MakeSpan(own1), absl::MakeSpan(next1));
  EXPECT_EQ(next0, own1);
  EXPECT_NE(own0, own1);
}

// With the key and the block of FIPS 197, appendix B, as the first half: what AES makes of it is
// known, so the second half can be chosen to give the same block again.
TEST(HashPrfTest, IsTwoStepsOfAes) {
  const uint8_t key[16] = {0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6,
                           0xab, 0xf7, 0x15, 0x88, 0x09, 0xcf, 0x4f, 0x3c};
  const uint8_t plain[16] = {0x32, 0x43, 0xf6, 0xa8, 0x88, 0x5a, 0x30, 0x8d,
                             0x31, 0x31, 0x98, 0xa2, 0xe0, 0x37, 0x07, 0x34};
  const uint8_t cipher[16] = {0x39, 0x25, 0x84, 0x1d, 0x02, 0xdc, 0x09, 0xfb,
                              0xdc, 0x11, 0x85, 0x97, 0x19, 0x6a, 0x0b, 0x32};
  std::array<uint8_t, 32> hash;
  for (int i = 0; i < 16; ++i) {
    hash[i] = plain[i];
    hash[16 + i] = cipher[i] ^ plain[i];  // so that the second step encrypts `plain` again
  }
  for (const Isa isa : {Isa::kPortable, BestIsa()}) {
    const CtrFunctions& ctr = AllCtrs().For(isa);
    const CtrKey expanded = ExpandCtrKey(ctr, key);
    std::array<uint8_t, 16> out, other;
    HashPrf(ctr, expanded, hash, out.data());
    EXPECT_TRUE(std::equal(out.begin(), out.end(), cipher));
    for (const size_t bit : {0u, 15u, 16u, 31u}) {
      std::array<uint8_t, 32> changed = hash;
      changed[bit] ^= 1;
      HashPrf(ctr, expanded, changed, other.data());
      EXPECT_NE(other, out);
    }
  }
}

TEST(PairwiseStreamsTest, EveryFieldOfTheCounterMatters) {
  const auto draw = [](uint32_t session, StreamPlace place) {
    auto p = ThreeParties(session, BestIsa());
    std::vector<uint8_t> out(16);
    p[0].FillZeroShare(place, absl::MakeSpan(out));
    return out;
  };
  const auto base = draw(1, {1, 1, 1});
  EXPECT_EQ(base, draw(1, {1, 1, 1}));
  EXPECT_NE(base, draw(2, {1, 1, 1}));
  EXPECT_NE(base, draw(1, {2, 1, 1}));
  EXPECT_NE(base, draw(1, {1, 2, 1}));
  EXPECT_NE(base, draw(1, {1, 1, 2}));
}

TEST(StreamCursorDeathTest, ReuseAborts) {
  StreamCursor cursor;
  cursor.Take({1, 1, 0}, 4);
  cursor.Take({1, 1, 4}, 4);
  cursor.Take({1, 2, 0}, 4);
  EXPECT_DEATH(cursor.Take({1, 2, 3}, 1), "used twice");
  EXPECT_DEATH(cursor.Take({1, 1, 8}, 1), "used twice");
  EXPECT_DEATH(cursor.Take({0, 9, 9}, 1), "used twice");
  cursor.Take({2, 0, 0}, 1);
}

TEST(PairwiseStreamsDeathTest, DrawingOnePlaceTwiceAborts) {
  auto p = ThreeParties(5, BestIsa());
  std::vector<uint8_t> out(32);
  p[0].FillZeroShare({1, 0, 0}, absl::MakeSpan(out));
  EXPECT_DEATH(p[0].FillZeroShare({1, 0, 1}, absl::MakeSpan(out)), "used twice");
}

TEST(IsaTest, Names) {
  EXPECT_EQ(ParseIsa("portable").value(), Isa::kPortable);
  EXPECT_FALSE(ParseIsa("sse9").ok());
  EXPECT_TRUE(ParseIsa("auto").ok());
}

}  // namespace
}  // namespace mpckdc
