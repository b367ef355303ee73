// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "mpc-server/base/random_source.h"
#include "mpc-server/circuit/bitslice/transpose.h"

namespace mpckdc {
namespace {

class TransposeTest : public testing::TestWithParam<IsaVariant<TransposeFunctions>> {};

// Against the layout as slices.h draws it, bit by bit. The lanes lie in reverse, each at an odd
// address, and every third lane's pair is the first one's.
TEST_P(TransposeTest, RowsAreTheDrawnLayoutAndBack) {
  constexpr size_t kStride = 35, kOffset = 2;
  const TransposeFunctions& f = GetParam().functions;
  SeededRandomForTest random(1);
  std::vector<uint8_t> scratch(kTransposeScratchBytes);
  for (size_t lanes : {1u, 7u, 31u, 32u, 33u, 64u, 65u, 255u, 257u, 511u, 512u}) {
    std::vector<uint8_t> memory((kGroupLanes + 1) * kStride);
    std::vector<uint8_t> x(kBlockRows * kRowBytes), a(x.size());
    random.Fill(absl::MakeSpan(memory));
    std::vector<const uint8_t*> from(kGroupLanes);
    for (size_t j = 0; j < from.size(); ++j) {
      from[j] = memory.data() + (j % 3 == 2 ? 0 : kGroupLanes - j) * kStride;
    }
    f.to_rows({from.data(), lanes, kOffset}, x.data(), a.data(), scratch.data());
    for (size_t j = 0; j < lanes; ++j) {
      for (size_t s = 0; s < 2 * kBlockRows; ++s) {
        const int want = from[j][kOffset + s / 8] >> (s % 8) & 1;
        const uint8_t* row = (s < kBlockRows ? x : a).data() + s % kBlockRows * kRowBytes;
        ASSERT_EQ(row[j / 8] >> (j % 8) & 1, want) << j << " " << s;
      }
    }
    std::vector<uint8_t> again((lanes + 1) * kStride, 0xEE);
    f.to_pairs(x.data(), a.data(), {again.data(), kStride, lanes}, scratch.data());
    for (size_t j = 0; j < lanes; ++j) {
      ASSERT_EQ(std::memcmp(&again[j * kStride], from[j] + kOffset, kPairBytes), 0) << j;
      ASSERT_EQ(again[j * kStride + kPairBytes], 0xEE) << "written past the pair";
    }
    for (size_t i = lanes * kStride; i < again.size(); ++i) ASSERT_EQ(again[i], 0xEE);
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, TransposeTest, testing::ValuesIn(AllTransposes().supported()),
                         [](const auto& i) { return std::string(i.param.name); });

TEST(SlicesTest, CompactAndExpandAreInverse) {
  std::vector<uint8_t> rows(3 * kRowBytes, 0xAA), wire(15), back(3 * kRowBytes, 0xAA);
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i] = static_cast<uint8_t>(i % kRowBytes < 5 ? i : 0xAA);
  }
  CompactRows(rows.data(), 3, 5, wire.data());
  ExpandRows(wire.data(), 3, 5, back.data());
  EXPECT_EQ(rows, back);
  EXPECT_EQ(WireBytes(33, 64), 320u);
}

}  // namespace
}  // namespace mpckdc
