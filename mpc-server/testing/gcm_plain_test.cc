// SPDX-License-Identifier: Apache-2.0
// The plain reference against proto/testdata/gcm_enctype_vectors.json, which the C side reads too.
#include "mpc-server/testing/gcm_plain.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "gtest/gtest.h"
#include "mpc-server/circuit/gcm/gf128.h"
#include "mpc-server/circuit/gcm/ghash.h"
#include "mpc-server/key/derivation.h"
#include "mpc-server/testing/bytes.h"

namespace mpckdc {
namespace {

using Json = nlohmann::json;

GcmNonce Nonce(const Json& j) {
  GcmNonce n{};
  const std::vector<uint8_t> bytes = FromHex(j);
  std::copy(bytes.begin(), bytes.end(), n.begin());
  return n;
}

const Json& Vectors() {
  static const Json vectors = SharedVectors();
  return vectors;
}

SecretBytes UsageKeyOf(const Json& v) { return PlainUsageKey(FromHex(v["base"]), v["usage"]); }

TEST(GcmVectorsTest, UsageKeys) {
  for (const Json& v : Vectors()["usage_keys"]) {
    EXPECT_EQ(Hex(UsageKeyOf(v)), v["key"]);
    EXPECT_EQ(Hex(PlainTagKey(UsageKeyOf(v))), v["h"]);
  }
}

TEST(GcmVectorsTest, Messages) {
  for (const Json& v : Vectors()["messages"]) {
    EXPECT_EQ(Hex(PlainSeal(UsageKeyOf(v), Nonce(v["nonce"]), FromHex(v["header"]),
                            FromHex(v["plaintext"]))),
              v["message"])
        << v["name"];
    absl::StatusOr<OpenedMessage> opened = PlainOpen(UsageKeyOf(v), FromHex(v["message"]));
    ASSERT_TRUE(opened.ok()) << v["name"] << opened.status();
    EXPECT_EQ(Hex(opened->plaintext), v["plaintext"]);
    EXPECT_EQ(Hex(opened->header), v["header"]);
    EXPECT_EQ(opened->nonce, Nonce(v["nonce"]));
  }
}

TEST(GcmVectorsTest, BadMessages) {
  for (const Json& v : Vectors()["bad_messages"]) {
    EXPECT_FALSE(PlainOpen(UsageKeyOf(v), FromHex(v["message"])).ok()) << v["why"];
  }
}

TEST(GcmVectorsTest, Checksums) {
  for (const Json& v : Vectors()["checksums"]) {
    EXPECT_EQ(Hex(PlainGmac(UsageKeyOf(v), Nonce(v["nonce"]), FromHex(v["data"]))), v["checksum"])
        << v["name"];
  }
}

// SP 800-38D's GCM from the circuits' own pieces: GHASH by powers, tag = GHASH ^ E(nonce | 1).
TEST(GcmVectorsTest, GhashOfTheStandardsCases) {
  for (Isa isa : SupportedIsas()) {
    for (const Json& v : Vectors()["gcm"]) {
      const std::vector<uint8_t> key = FromHex(v["key"]), aad = FromHex(v["aad"]);
      const std::vector<uint8_t> ciphertext = FromHex(v["ciphertext"]);
      ASSERT_EQ(FromHex(v["nonce"]).size(), 12u);
      const std::vector<Block> blocks = GhashBlocks(aad, ciphertext);
      EXPECT_EQ(blocks.size(), GhashBlockCount(aad.size(), ciphertext.size()));
      const Block h = PlainTagKey(key);
      std::vector<SharedBlock> powers;  // "shared" as the public values they are here
      Block p = GfOne();
      for (size_t i = 0; i < blocks.size(); ++i) {
        p = GfMultiply(p, h, isa);
        powers.push_back({Block{}, p});
      }
      Block tag = GhashLinear(blocks, powers, isa).a;
      const std::vector<uint8_t> mask = PlainGmac(key, Nonce(v["nonce"]), {});
      // GMAC of nothing is E(J0) ^ GHASH(length block 0) = E(J0).
      for (size_t i = 0; i < 16; ++i) tag[i] ^= mask[12 + i];
      EXPECT_EQ(Hex(tag), v["tag"]) << v["name"];
    }
  }
}

TEST(Gf128Test, InstructionSetsAgreeAndTheLawsHold) {
  Block x{}, y{}, z{};
  for (size_t i = 0; i < 16; ++i) {
    x[i] = static_cast<uint8_t>(37 * i + 1);
    y[i] = static_cast<uint8_t>(91 * i + 200);
    z[i] = static_cast<uint8_t>(i * i + 3);
  }
  for (int round = 0; round < 200; ++round) {
    const Block want = GfMultiply(x, y, Isa::kPortable);
    for (Isa isa : SupportedIsas()) EXPECT_EQ(GfMultiply(x, y, isa), want);
    EXPECT_EQ(GfMultiply(y, x), want);
    EXPECT_EQ(GfMultiply(x, XorBlocks(y, z)), XorBlocks(want, GfMultiply(x, z)));
    EXPECT_EQ(GfSquare(XorBlocks(x, y)), XorBlocks(GfSquare(x), GfSquare(y)));
    EXPECT_EQ(GfMultiply(x, GfOne()), x);
    x = y;
    y = XorBlocks(want, z);
  }
}

}  // namespace
}  // namespace mpckdc
