// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/key/text_shares.h"

#include "gtest/gtest.h"
#include "mpc-server/base/bytes.h"

namespace mpckdc {
namespace {

TEST(TextShares, ComponentsFitAndGiveTheText) {
  SeededRandomForTest random(1);
  for (const size_t size : {1u, 16u, 100u}) {
    const std::string text(size, 't');
    const auto shares = SplitText(AsBytes(text), random);
    std::string why;
    for (int p = 0; p < 3; ++p) {
      EXPECT_TRUE(TextSharesFit(shares[p], p, &why)) << why;
      EXPECT_FALSE(TextSharesFit(shares[p], (p + 1) % 3, &why)) << "another party's";
      EXPECT_EQ(shares[p].bytes(), size);
      EXPECT_EQ(shares[p].before, shares[(p + 2) % 3].own);
      EXPECT_EQ(shares[p].hashes, shares[0].hashes);
    }
    std::string sum(size, '\0');
    for (size_t i = 0; i < size; ++i) {
      for (const TextShares& s : shares) sum[i] ^= static_cast<char>(s.own[kTextSaltBytes + i]);
    }
    EXPECT_EQ(sum, text);
  }
  EXPECT_TRUE(SplitText({}, random)[0].empty());
}

// Component, salt and hash: whichever a KDC alters for one server, that server sees it. So no KDC
// has a component that its two holders both take and that differs.
TEST(TextShares, EveryAlteredBitIsSeen) {
  SeededRandomForTest random(2);
  const auto shares = SplitText(AsBytes("a text to seal"), random);
  std::string why;
  for (int p = 0; p < 3; ++p) {
    for (size_t bit = 0; bit < 8 * shares[p].own.size(); ++bit) {
      for (SecretBytes TextShares::*part : {&TextShares::own, &TextShares::before}) {
        TextShares altered = shares[p];
        (altered.*part)[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
        EXPECT_FALSE(TextSharesFit(altered, p, &why));
      }
    }
    int seen = 0;
    for (size_t at = 0; at < kTextHashesBytes; ++at) {
      TextShares altered = shares[p];
      altered.hashes[at] ^= 1;
      seen += !TextSharesFit(altered, p, &why);
    }
    EXPECT_EQ(seen, 2 * static_cast<int>(kTextHashBytes)) << "the third is in the digest alone";
  }
}

TEST(TextShares, SizesThatDoNotFitAreRefused) {
  SeededRandomForTest random(3);
  const TextShares good = SplitText(AsBytes("a text"), random)[0];
  std::string why;
  for (int change = 0; change < 6; ++change) {
    TextShares bad = good;
    if (change == 0) bad.own.clear();
    if (change == 1) bad.before.pop_back();
    if (change == 2) bad.own.push_back(0);
    if (change == 3) bad.hashes.pop_back();
    if (change == 4) bad.hashes.clear();
    if (change == 5) {
      bad.own.resize(kTextSaltBytes);
      bad.before.resize(kTextSaltBytes);
    }
    EXPECT_FALSE(bad.empty());
    EXPECT_FALSE(TextSharesFit(bad, 0, &why)) << change;
    EXPECT_FALSE(why.empty());
  }
}

}  // namespace
}  // namespace mpckdc
