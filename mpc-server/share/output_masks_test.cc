// SPDX-License-Identifier: Apache-2.0
// What leaves toward the KDC (key/output_format.h, share/output_masks.h): it comes out right, a
// server that alters its part is named, and two stories tell nothing.
#include "mpc-server/share/output_masks.h"

#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/random_source.h"

namespace mpckdc {
namespace {

using Hash = std::array<uint8_t, 32>;
constexpr uint32_t kNumber = OutputNumber(OutputField::kSeal, 1);
const std::array<std::string, 3> kNames = {"P0", "P1", "P2"};

int Before(int party) { return (party + 2) % 3; }
int After(int party) { return (party + 1) % 3; }

std::string Xor(std::string a, const std::string& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<char>(a[i] ^ b[i]);
  return a;
}
absl::Span<uint8_t> Writable(std::string& s) {
  return {reinterpret_cast<uint8_t*>(s.data()), s.size()};
}
std::string RandomText(RandomSource& random, size_t size) {
  std::string text(size, '\0');
  random.Fill(Writable(text));
  return text;
}

// P_i holds k_i and k_{i+1}, and the common seed.
std::vector<OutputKeys> ThreeKeys(Isa isa = BestIsa()) {
  SeededRandomForTest random(11);
  Seed k[3], common;
  for (Seed& seed : k) random.Fill(absl::MakeSpan(seed));
  random.Fill(absl::MakeSpan(common));
  std::vector<OutputKeys> out;
  for (int i = 0; i < 3; ++i) {
    out.emplace_back(
        i, PairwiseSeeds{Secret<Seed>(k[i]), Secret<Seed>(k[After(i)]), Secret<Seed>(common)}, isa);
  }
  return out;
}

struct Sent {
  std::string share;
  AnswerKeys keys;
};

// What P_i sends of a value with these components, asked under `hash`.
Sent Send(const OutputKeys& keys, int party, const std::array<std::string, 3>& a,
          const Hash& hash) {
  Sent sent{a[party], {}};
  std::string before = a[Before(party)];
  OutputMasks masks(keys);
  masks.SetHash(hash);
  masks.Mask(kNumber, Writable(sent.share), Writable(before));
  sent.keys = masks.Finish();
  return sent;
}

struct Joined {
  std::string value;
  std::vector<OutputJoiner::Contradiction> contradictions;
};
Joined Join(const std::array<Sent, 3>& sent) {
  Joined out{std::string(sent[0].share.size(), '\0'), {}};
  OutputJoiner joiner;
  for (const int party : {2, 0, 1}) {  // any order
    OutputJoiner::Answer answer(joiner, party, sent[party].keys);
    answer.Add(kNumber, sent[party].share, Writable(out.value));
  }
  out.contradictions = joiner.Contradictions();
  return out;
}

struct Value {
  Value(RandomSource& random, size_t size) : v(RandomText(random, size)) {
    a[0] = RandomText(random, size);
    a[1] = RandomText(random, size);
    a[2] = Xor(Xor(v, a[0]), a[1]);
  }
  std::string v;
  std::array<std::string, 3> a;
};

std::array<Sent, 3> SendAll(const std::vector<OutputKeys>& keys, const Value& value,
                            const std::array<Hash, 3>& hashes) {
  std::array<Sent, 3> sent;
  for (int p = 0; p < 3; ++p) sent[p] = Send(keys[p], p, value.a, hashes[p]);
  return sent;
}

TEST(OutputMasks, ThreeAnswersGiveTheValue) {
  SeededRandomForTest random(1);
  const auto best = ThreeKeys(), portable = ThreeKeys(Isa::kPortable);
  for (const size_t size : {1u, 12u, 16u, 28u, 512u, 700u}) {
    const Value value(random, size);
    const Hash h = {static_cast<uint8_t>(size)};
    const auto sent = SendAll(best, value, {h, h, h});
    const Joined joined = Join(sent);
    EXPECT_EQ(joined.value, value.v) << size;
    EXPECT_TRUE(joined.contradictions.empty()) << Blame(joined.contradictions, kNames);
    const auto same = SendAll(portable, value, {h, h, h});
    for (int p = 0; p < 3; ++p) {
      EXPECT_EQ(same[p].share, sent[p].share);
      EXPECT_EQ(same[p].keys, sent[p].keys);
    }
  }
}

TEST(OutputMasks, KeysOfABatchAreOthers) {
  SeededRandomForTest random(2);
  const auto session = ThreeKeys();
  const Value value(random, 40);
  std::array<Sent, 3> sent, of_batch;
  for (int p = 0; p < 3; ++p) {
    const OutputKeys batch = session[p].For(Hash{7});
    of_batch[p] = Send(batch, p, value.a, Hash{1});
    sent[p] = Send(session[p], p, value.a, Hash{1});
    EXPECT_NE(of_batch[p].keys.key, sent[p].keys.key);
    EXPECT_NE(of_batch[p].keys.salt, sent[p].keys.salt);
  }
  EXPECT_EQ(Join(of_batch).value, value.v);
  EXPECT_TRUE(Join(of_batch).contradictions.empty());
  of_batch[1] = sent[1];
  EXPECT_FALSE(Join(of_batch).contradictions.empty());
}

// Every byte that a server sends, each bit of it: the one that altered it is in what is said.
TEST(OutputMasks, EveryAlteredBitIsSeenAndItsServerNamed) {
  SeededRandomForTest random(3);
  const auto keys = ThreeKeys();
  const Value value(random, 13);
  const Hash h = {9};
  const auto honest = SendAll(keys, value, {h, h, h});
  for (int liar = 0; liar < 3; ++liar) {
    for (size_t bit = 0; bit < 8 * (13 + kAnswerKeysBytes); ++bit) {
      auto sent = honest;
      std::string bytes = EncodeAnswerKeys(sent[liar].keys);
      std::string& altered = bit < 8 * 13 ? sent[liar].share : bytes;
      const size_t at = bit < 8 * 13 ? bit : bit - 8 * 13;
      altered[at / 8] = static_cast<char>(altered[at / 8] ^ (1 << at % 8));
      sent[liar].keys = *DecodeAnswerKeys(bytes);
      const Joined joined = Join(sent);
      ASSERT_EQ(joined.contradictions.size(), 1u) << liar << " " << bit;
      const auto& c = joined.contradictions[0];
      EXPECT_TRUE(c.sender == liar || c.checker == liar) << liar << " " << bit;
    }
  }
}

TEST(OutputMasks, WhoContradictsBothOthersIsNamedAlone) {
  SeededRandomForTest random(4);
  const auto keys = ThreeKeys();
  const Value value(random, 20);
  const Hash h = {9};
  for (int liar = 0; liar < 3; ++liar) {
    auto sent = SendAll(keys, value, {h, h, h});
    sent[liar].share[0] ^= 1;
    EXPECT_THAT(Blame(Join(sent).contradictions, kNames), testing::HasSubstr("one of "));
    sent[liar].keys.key[0] ^= 1;
    EXPECT_THAT(Blame(Join(sent).contradictions, kNames),
                testing::StartsWith(kNames[liar] + " altered its answer"));
    // An answer that was computed under another hash as a whole.
    sent = SendAll(keys, value, {h, h, h});
    sent[liar] = Send(keys[liar], liar, value.a, Hash{10});
    EXPECT_THAT(Blame(Join(sent).contradictions, kNames),
                testing::StartsWith(kNames[liar] + " altered its answer"));
  }
}

// The stream under a key, as who has the key computes it.
std::string StreamOf(const OutputKey& key, size_t size) {
  std::string stream(size, '\0');
  OutputJoiner joiner;
  OutputJoiner::Answer(joiner, 0, {key, {}, {}, {}})
      .Add(kNumber, std::string(size, '\0'), Writable(stream));
  return stream;
}
OutputCheck CheckOf(const OutputKey& salt, const std::string& share) {
  ShareCheck check(salt);
  check.Add(AsBytes(share));
  return check.Finish();
}

// A KDC with server i, which knows all masks but those of the two others' key, tells j and k
// different things. What it lacks is a = a_j. It has all that j and k send; and it may even know a,
// and only want to be sure of it.
TEST(OutputMasks, TwoStoriesNeitherTellNorConfirmAComponent) {
  SeededRandomForTest random(5);
  const auto keys = ThreeKeys();
  for (const size_t size : {1u, 12u, 44u}) {
    const Value value(random, size);
    for (int i = 0; i < 3; ++i) {
      const int j = After(i), k = Before(i);
      for (const bool two : {false, true}) {
        const Hash hj = {1}, hk = {static_cast<uint8_t>(two ? 2 : 1)};
        const Sent from_j = Send(keys[j], j, value.a, hj), from_k = Send(keys[k], k, value.a, hk);
        // w_j is known to it: what an answer under zeros would be, without the key's stream. Of k's
        // story only the stream is k's own.
        const std::array<std::string, 3> zeros = {std::string(size, '\0'), std::string(size, '\0'),
                                                  std::string(size, '\0')};
        const auto w = [&](const Hash& h) {
          return Xor(Send(keys[j], j, zeros, h).share,
                     StreamOf(Send(keys[k], k, zeros, h).keys.key, size));
        };
        // j's share, freed of w and of the stream under the key that k gave.
        const std::string told = Xor(Xor(from_j.share, w(hj)), StreamOf(from_k.keys.key, size));
        // Whether k's check of j's share, or j's check of k's key, confirms what it knows already.
        const std::string guess = Xor(Xor(value.a[j], w(hk)), StreamOf(from_k.keys.key, size));
        const bool by_share = CheckOf(from_j.keys.salt, guess) == from_k.keys.before_share;
        const bool by_key = CheckOfKey(from_k.keys.key) == from_j.keys.next_key;
        EXPECT_EQ(by_share, !two) << i;
        EXPECT_EQ(by_key, !two) << i;
        EXPECT_TRUE(two || told == value.a[j]);
        if (size > 4) {
          EXPECT_EQ(told == value.a[j], !two) << i;
        }
      }
    }
  }
}

// What the KDC has of an honest answer, once the streams are off, are a_i + w_i: any two of them
// uniform and independent, whatever the components are; here they are always the same.
TEST(OutputMasks, TheKdcSeesNothingButTheValue) {
  const auto keys = ThreeKeys();
  const std::array<std::string, 3> a = {"\x11", "\x22", "\x44"};
  constexpr int kRuns = 1 << 15;
  std::vector<int> counts[3] = {std::vector<int>(256), std::vector<int>(256),
                                std::vector<int>(256)};
  std::vector<int> pairs(256);  // four bits of one, four of another
  std::array<OutputMasks, 3> masks = {OutputMasks(keys[0]), OutputMasks(keys[1]),
                                      OutputMasks(keys[2])};
  for (int run = 0; run < kRuns; ++run) {
    const Hash h = {static_cast<uint8_t>(run), static_cast<uint8_t>(run >> 8)};
    std::array<AnswerKeys, 3> answer;
    std::array<std::string, 3> sent;
    for (int p = 0; p < 3; ++p) {
      sent[p] = a[p];
      std::string before = a[Before(p)];
      masks[p].SetHash(h);
      masks[p].Mask(kNumber, Writable(sent[p]), Writable(before));
      answer[p] = masks[p].Finish();
    }
    std::array<uint8_t, 3> seen;
    for (int p = 0; p < 3; ++p) {
      seen[p] = static_cast<uint8_t>(Xor(sent[p], StreamOf(answer[After(p)].key, 1))[0]);
      ++counts[p][seen[p]];
    }
    ASSERT_EQ(seen[0] ^ seen[1] ^ seen[2], 0x77);
    ++pairs[(seen[0] & 15) << 4 | (seen[1] & 15)];
  }
  const auto chi_square = [](const std::vector<int>& bins) {
    const double want = static_cast<double>(kRuns) / static_cast<double>(bins.size());
    double sum = 0;
    for (const int n : bins) sum += (n - want) * (n - want) / want;
    return sum;
  };
  // 255 degrees of freedom: 255 +- 22.6.
  for (const auto& bins : counts) EXPECT_LT(chi_square(bins), 255 + 6 * 22.6);
  EXPECT_LT(chi_square(pairs), 255 + 6 * 22.6);
}

}  // namespace
}  // namespace mpckdc
