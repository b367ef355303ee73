// SPDX-License-Identifier: Apache-2.0
// Usage keys of enctypes 17 to 20, derived on shares, against the plain derivation. (Those of the
// GCM enctypes: facade_test.cc.)
#include "mpc-server/circuit/derive/usage_key.h"

#include <cstring>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"
#include "mpc-server/testing/three_parties.h"
#include "mpc-server/testing/usage_key_oracle.h"

namespace mpckdc {
namespace {

using Bytes = std::vector<uint8_t>;
using Shares = std::array<SecretVector<SharedBlock>, kParties>;

Bytes Hex(absl::string_view hex) {
  const std::string s = absl::HexStringToBytes(hex);
  return {s.begin(), s.end()};
}

constexpr int32_t kNumbers[] = {kEnctypeAes128Sha1, kEnctypeAes256Sha1, kEnctypeAes128Sha256,
                                kEnctypeAes256Sha384};

// RFC 8009, appendix A: the base keys of "Test case for the KDF", whose derived keys are in
// key/derivation_test.cc.
constexpr struct {
  int32_t enctype;
  const char* base;
} kKdfVectors[] = {
    {kEnctypeAes128Sha256, "3705d96080c17728a0e800eab6e0d23c"},
    {kEnctypeAes256Sha384, "6d404d37faf79f9df0d33568d320669800eb4836472ea8a026d16b7182460c52"}};

void Add(absl::Span<const uint8_t> bytes, RandomSource& random, Shares* to) {
  for (size_t at = 0; at < bytes.size(); at += sizeof(Block)) {
    Block block{};
    std::memcpy(block.data(), &bytes[at], sizeof(Block));
    const auto shares = SplitForTest(block, random);
    for (int p = 0; p < kParties; ++p) (*to)[p].push_back(shares[p]);
  }
}

using Derived = std::array<SecretVector<UsageKeyShare>, kParties>;

// Every base under every usage, on shares; the declared cost is the counted one.
Derived Derive(const Enctype& e, Adder adder, const std::vector<Bytes>& bases,
               absl::Span<const uint32_t> usages, MemoryRing& ring) {
  SeededRandomForTest random(bases.size());
  Shares base;
  for (const Bytes& b : bases) Add(b, random, &base);
  Derived out;
  const auto make = [&](PartyContext& party) {
    std::vector<UsageKeyRequest> requests;
    for (size_t i = 0; i < bases.size(); ++i) {
      for (const uint32_t usage : usages) {
        requests.push_back({&base[party.party()][i * e.base_blocks()], usage});
      }
    }
    auto derive = std::make_unique<UsageKeys>(e, adder);
    derive->Reset(requests);
    return derive;
  };
  EXPECT_EQ(RunCircuit(ring, make, [&](int p, const UsageKeys& keys) { out[p] = keys.results(); }),
            absl::OkStatus());
  return out;
}

std::vector<Block> Joined(const SecretVector<SharedBlock>& s0, const SecretVector<SharedBlock>& s1,
                          const SecretVector<SharedBlock>& s2) {
  std::vector<Block> out(s0.size());
  for (size_t i = 0; i < out.size(); ++i) {
    EXPECT_TRUE(JoinForTest({s0[i], s1[i], s2[i]}, &out[i])) << "block " << i;
  }
  return out;
}

PlainUsage JoinedUsage(const Derived& derived, size_t i) {
  const UsageKeyShare &k0 = derived[0][i], &k1 = derived[1][i], &k2 = derived[2][i];
  return {Joined(k0.round_keys, k1.round_keys, k2.round_keys),
          Joined(k0.mac_states, k1.mac_states, k2.mac_states)};
}

class UsageKeyTest : public testing::TestWithParam<int32_t> {};

TEST_P(UsageKeyTest, EqualsThePlainDerivation) {
  const Enctype& e = *FindEnctype(GetParam());
  SeededRandomForTest random(GetParam());
  std::vector<Bytes> bases;
  for (const auto& v : kKdfVectors) {
    if (v.enctype == e.number) bases.push_back(Hex(v.base));
  }
  while (bases.size() < 5) {
    random.Fill(absl::MakeSpan(bases.emplace_back(e.key_bytes)));
  }
  const uint32_t usages[] = {1, 2, 3, 17, 56};
  MemoryRing ring;
  const Derived derived = Derive(e, Adder::kPrefix, bases, usages, ring);
  for (size_t i = 0; i < bases.size(); ++i) {
    for (size_t u = 0; u < std::size(usages); ++u) {
      const PlainUsage got = JoinedUsage(derived, i * std::size(usages) + u);
      const PlainUsage want = PlainUsageOf(e, bases[i], usages[u]);
      EXPECT_EQ(want.round_keys.empty(), !IsEncryptionUsage(usages[u]));
      EXPECT_EQ(got.round_keys, want.round_keys) << "base " << i << " usage " << usages[u];
      EXPECT_EQ(got.mac_states, want.mac_states) << "base " << i << " usage " << usages[u];
    }
  }
}

TEST_P(UsageKeyTest, AloneAndUnderAnotherAdder) {
  const Enctype& e = *FindEnctype(GetParam());
  const std::vector<Bytes> bases = {Bytes(e.key_bytes, 0x3C)};
  for (const uint32_t usage : {56u, 1u}) {
    MemoryRing ring;
    const Derived derived = Derive(e, Adder::kRipple, bases, {usage}, ring);
    const PlainUsage got = JoinedUsage(derived, 0);
    const PlainUsage want = PlainUsageOf(e, bases[0], usage);
    EXPECT_EQ(got.round_keys, want.round_keys);
    EXPECT_EQ(got.mac_states, want.mac_states);
  }
}

// The harness sees flipped bits, in the first and in the last circuit. One alone may be absorbed by
// an AND whose other input is 0.
TEST_P(UsageKeyTest, FlippedBitsAreSeen) {
  const Enctype& e = *FindEnctype(GetParam());
  const std::vector<Bytes> bases = {Bytes(e.key_bytes, 0x11)};
  const PlainUsage want = PlainUsageOf(e, bases[0], 56);
  uint32_t last = 0;
  for (const bool at_end : {false, true}) {
    MemoryRing ring;
    ring.SetInterceptor([&, at_end](MemoryRing::Intercepted& m) {
      if (m.from != 1) return;
      if (!at_end) last = std::max<uint32_t>(last, m.round);
      if (m.round != (at_end ? last : 1)) return;
      for (uint8_t& byte : m.payload) byte ^= 1;
    });
    const Derived out = Derive(e, Adder::kPrefix, bases, {56}, ring);
    bool right = true;
    for (size_t i = 0; i < want.mac_states.size(); ++i) {
      Block value;
      right = JoinForTest({out[0][0].mac_states[i], out[1][0].mac_states[i],
                           out[2][0].mac_states[i]}, &value) &&
              value == want.mac_states[i] && right;
    }
    EXPECT_FALSE(right) << "at the end: " << at_end;
  }
}

INSTANTIATE_TEST_SUITE_P(Enctypes, UsageKeyTest, testing::ValuesIn(kNumbers),
                         [](const auto& i) { return "e" + std::to_string(i.param); });

}  // namespace
}  // namespace mpckdc
