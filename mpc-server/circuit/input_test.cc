// SPDX-License-Identifier: Apache-2.0
// share/input.h, with three parties.
#include "mpc-server/share/input.h"

#include "gtest/gtest.h"
#include "mpc-server/testing/three_parties.h"

namespace mpckdc {
namespace {

struct Given {
  explicit Given(size_t count) {
    SeededRandomForTest random(count);
    values.resize(count);
    for (int p = 0; p < kParties; ++p) {
      shares[p].resize(count);
      for (size_t i = 0; i < count; ++i) {
        random.Fill(absl::MakeSpan(shares[p][i]));
        values[i] = XorBlocks(values[i], shares[p][i]);
      }
    }
  }
  std::array<std::vector<Block>, kParties> shares;
  std::vector<Block> values;
};

using Outputs = std::array<std::vector<SharedBlock>, kParties>;

void RunInput(const std::array<std::vector<Block>, kParties>& shares, MemoryRing& ring,
              Outputs* out) {
  const auto make = [&](PartyContext& party) {
    auto input = std::make_unique<ShareInput>();
    input->Reset(shares[party.party()]);
    return input;
  };
  ASSERT_EQ(RunCircuit(ring, make, [&](int p, const ShareInput& input) {
    (*out)[p].assign(input.values().begin(), input.values().end());
  }), absl::OkStatus());
}

bool Join(const Outputs& out, size_t i, Block* value) {
  return JoinForTest({out[0][i], out[1][i], out[2][i]}, value);
}

TEST(ShareInputTest, GivesReplicatedSharesOfTheSum) {
  for (size_t count : {0u, 1u, 2u, 100u}) {
    const Given given(count);
    Outputs out;
    MemoryRing ring;
    RunInput(given.shares, ring, &out);
    ASSERT_EQ(out[0].size(), count);
    for (size_t i = 0; i < count; ++i) {
      Block value;
      ASSERT_TRUE(Join(out, i, &value));
      EXPECT_EQ(value, given.values[i]);
    }
  }
}

// What goes to the neighbour is not the share that was given.
TEST(ShareInputTest, MasksWhatIsSent) {
  const Given given(3);
  std::array<std::vector<uint8_t>, kParties> sent;
  Outputs out;
  MemoryRing ring;
  ring.SetInterceptor([&](MemoryRing::Intercepted& m) {
    if (m.step == "input shares") sent[m.from].assign(m.payload.begin(), m.payload.end());
  });
  RunInput(given.shares, ring, &out);
  for (int p = 0; p < kParties; ++p) {
    ASSERT_EQ(sent[p].size(), 3 * sizeof(Block));
    for (size_t i = 0; i < 3; ++i) {
      Block r;
      std::copy_n(sent[p].begin() + i * sizeof(Block), sizeof(Block), r.begin());
      EXPECT_NE(r, given.shares[p][i]);
      EXPECT_EQ(r, out[p][i].a);
    }
  }
}

// Whatever a giver sends is a consistent sharing of something: a changed share is another value,
// never a contradiction.
TEST(ShareInputTest, AnyInputsAreConsistent) {
  Given given(2);
  given.shares[1][0][5] ^= 0x40;
  Outputs out;
  MemoryRing ring;
  RunInput(given.shares, ring, &out);
  Block value;
  ASSERT_TRUE(Join(out, 0, &value));
  EXPECT_NE(value, given.values[0]);
  value[5] ^= 0x40;
  EXPECT_EQ(value, given.values[0]);
}

// A message changed on its way makes shares that do not fit each other: the check above can fail.
TEST(ShareInputTest, AChangedMessageIsSeen) {
  const Given given(1);
  Outputs out;
  MemoryRing ring;
  ring.SetInterceptor([](MemoryRing::Intercepted& m) {
    if (m.from == 0 && m.step == "input shares") m.payload[0] ^= 1;
  });
  RunInput(given.shares, ring, &out);
  Block value;
  EXPECT_FALSE(Join(out, 0, &value));
}

}  // namespace
}  // namespace mpckdc
