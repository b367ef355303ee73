// SPDX-License-Identifier: Apache-2.0
// The plain reference against proto/testdata/gcm_enctype_vectors.json, which the C side reads too.
#include "mpc-server/testing/gcm_plain.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"
#include "mpc-server/circuit/gf128.h"
#include "mpc-server/circuit/ghash.h"
#include "mpc-server/circuit/usage_key.h"

namespace mpckdc {
namespace {

using Bytes = std::vector<uint8_t>;
using Json = nlohmann::json;

Bytes Hex(const Json& j) {
  const std::string s = absl::HexStringToBytes(j.get<std::string>());
  return {s.begin(), s.end()};
}
template <class C>
Bytes AsBytes(const C& c) {
  return {c.begin(), c.end()};
}
GcmNonce Nonce(const Json& j) {
  GcmNonce n{};
  const Bytes b = Hex(j);
  std::copy(b.begin(), b.end(), n.begin());
  return n;
}

const Json& Vectors() {
  static const Json vectors = [] {
    std::ifstream in(MPCKDC_TESTDATA "/gcm_enctype_vectors.json");
    return Json::parse(in);
  }();
  return vectors;
}

TEST(GcmVectorsTest, UsageKeys) {
  for (const Json& v : Vectors()["usage_keys"]) {
    const SecretBytes key = PlainUsageKey(Hex(v["base"]), v["usage"].get<uint32_t>());
    EXPECT_EQ(AsBytes(key), Hex(v["key"]));
    EXPECT_EQ(AsBytes(UsageConstant(v["usage"].get<uint32_t>())), Hex(v["folded"]));
    EXPECT_EQ(AsBytes(PlainTagKey(key)), Hex(v["h"]));
  }
}

TEST(GcmVectorsTest, Messages) {
  for (const Json& v : Vectors()["messages"]) {
    const SecretBytes key = PlainUsageKey(Hex(v["base"]), v["usage"].get<uint32_t>());
    EXPECT_EQ(PlainSeal(key, Nonce(v["nonce"]), Hex(v["header"]), Hex(v["plaintext"])),
              Hex(v["message"]))
        << v["name"];
    absl::StatusOr<OpenedMessage> opened = PlainOpen(key, Hex(v["message"]));
    ASSERT_TRUE(opened.ok()) << v["name"] << opened.status();
    EXPECT_EQ(AsBytes(opened->plaintext), Hex(v["plaintext"]));
    EXPECT_EQ(opened->header, Hex(v["header"]));
    EXPECT_EQ(opened->nonce, Nonce(v["nonce"]));
  }
}

TEST(GcmVectorsTest, BadMessages) {
  for (const Json& v : Vectors()["bad_messages"]) {
    const SecretBytes key = PlainUsageKey(Hex(v["base"]), v["usage"].get<uint32_t>());
    EXPECT_FALSE(PlainOpen(key, Hex(v["message"])).ok()) << v["why"];
  }
}

TEST(GcmVectorsTest, Checksums) {
  for (const Json& v : Vectors()["checksums"]) {
    const SecretBytes key = PlainUsageKey(Hex(v["base"]), v["usage"].get<uint32_t>());
    EXPECT_EQ(PlainGmac(key, Nonce(v["nonce"]), Hex(v["data"])), Hex(v["checksum"])) << v["name"];
  }
}

// SP 800-38D's GCM from this folder's own pieces: GHASH by powers, tag = GHASH ^ E(nonce | 1).
TEST(GcmVectorsTest, GhashOfTheStandardsCases) {
  for (Isa isa : SupportedIsas()) {
    for (const Json& v : Vectors()["gcm"]) {
      const Bytes key = Hex(v["key"]), nonce = Hex(v["nonce"]);
      ASSERT_EQ(nonce.size(), 12u);
      const std::vector<Block> blocks = GhashBlocks(Hex(v["aad"]), Hex(v["ciphertext"]));
      EXPECT_EQ(blocks.size(), GhashBlockCount(Hex(v["aad"]).size(), Hex(v["ciphertext"]).size()));
      const Block h = PlainTagKey(key);
      std::vector<SharedBlock> powers;  // "shared" as the public values they are here
      Block p = GfOne();
      for (size_t i = 0; i < blocks.size(); ++i) {
        p = GfMultiply(p, h, isa);
        powers.push_back(SharePublic(p));
      }
      Block tag = GhashLinearA(blocks, powers, isa);
      EXPECT_EQ(GhashLinear(blocks, powers, isa).a, tag);
      const Bytes mask = PlainGmac(key, Nonce(v["nonce"]), {});
      // GMAC of nothing is E(J0) ^ GHASH(length block 0) = E(J0).
      for (size_t i = 0; i < 16; ++i) tag[i] ^= mask[12 + i];
      EXPECT_EQ(AsBytes(tag), Hex(v["tag"])) << v["name"];
    }
  }
}

// RFC 3961, appendix A.1.
TEST(NFoldTest, Rfc3961) {
  const auto fold = [](absl::string_view s) {
    const Block b = NFold16({reinterpret_cast<const uint8_t*>(s.data()), s.size()});
    return absl::BytesToHexString({reinterpret_cast<const char*>(b.data()), b.size()});
  };
  EXPECT_EQ(fold("kerberos"), "6b65726265726f737b9b5b2b93132b93");
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
