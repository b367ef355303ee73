// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "gtest/gtest.h"
#include "mpc-server/bitslice/transpose.h"
#include "mpc-server/clock/random_source.h"

namespace mpckdc {
namespace {

class TransposeTest : public testing::TestWithParam<Isa> {};

// Against the layout as slices.h draws it, bit by bit.
TEST_P(TransposeTest, RowsAreTheDrawnLayoutAndBack) {
  const TransposeFunctions& f = TransposeFunctionsFor(GetParam());
  SeededRandomForTest random(1);
  for (size_t lanes : {1u, 7u, 64u, 65u, 255u, 257u, 511u, 512u}) {
    std::vector<uint8_t> blocks(kGroupLanes * 16), rows(kBlockRows * kRowBytes);
    random.Fill(absl::MakeSpan(blocks));
    f.to_rows(blocks.data(), rows.data(), lanes);
    for (size_t j = 0; j < lanes; ++j) {
      for (size_t s = 0; s < kBlockRows; ++s) {
        const int want = blocks[16 * j + s / 8] >> (s % 8) & 1;
        ASSERT_EQ(rows[s * kRowBytes + j / 8] >> (j % 8) & 1, want) << j << " " << s;
      }
    }
    std::vector<uint8_t> again(blocks.size());
    f.to_blocks(rows.data(), again.data(), lanes);
    again.resize(16 * lanes);
    blocks.resize(16 * lanes);
    EXPECT_EQ(again, blocks);
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, TransposeTest, testing::ValuesIn(SupportedIsas()),
                         [](const auto& i) { return std::string(IsaName(i.param)); });

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
