// SPDX-License-Identifier: Apache-2.0
// Parts under gcm keys by garbled circuits: blocks, powers, verdicts and times, against plain GCM.
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/circuit/gcm/gf128.h"
#include "mpc-server/compute/gcm_work.h"
#include "mpc-server/key/usage_keys.h"
#include "mpc-server/testing/gcm_plain.h"
#include "mpc-server/testing/nothing.h"
#include "mpc-server/testing/three_parties.h"

namespace mpckdc {
namespace {

// A key of a usage, plain and at each party.
struct Key {
  Key(int32_t enctype, uint32_t usage, KeyClass key_class, uint64_t seed) {
    SeededRandomForTest random(seed);
    SecretBytes base(FindEnctype(enctype)->key_bytes);
    random.Fill(absl::MakeSpan(base));
    plain = PlainUsageKey(base, usage);
    const std::array<uint8_t, 16> tag_key = PlainTagKey(plain);
    std::copy(tag_key.begin(), tag_key.end(), h.begin());
    const ExpandedUsage expanded = *ExpandUsage(*FindEnctype(enctype), base, usage);
    for (int p = 0; p < kParties; ++p) {
      info[p].enctype = enctype;
      info[p].handle[0] = static_cast<uint8_t>(seed);
      info[p].key_class = key_class;
      keys[p].usage = usage;
      keys[p].round_keys.resize(expanded.round_keys.size() / sizeof(Block));
    }
    for (size_t i = 0; i < keys[0].round_keys.size(); ++i) {
      Block block;
      std::copy_n(&expanded.round_keys[sizeof(Block) * i], sizeof(Block), block.begin());
      const auto shares = SplitForTest(block, random);
      for (int p = 0; p < kParties; ++p) keys[p].round_keys[i] = shares[p];
    }
    const auto shares = SplitForTest(h, random);
    for (int p = 0; p < kParties; ++p) keys[p].h = shares[p];
  }
  GcmKeyUse Use(int party) const { return {{&info[party], &keys[party]}}; }

  SecretBytes plain;
  Block h;
  std::array<KeyInfo, kParties> info;
  std::array<UsageKey, kParties> keys;
};

Block Joined(const std::array<SharedBlock, kParties>& shares) {
  Block block;
  EXPECT_TRUE(JoinForTest(shares, &block));
  return block;
}

class GarbledGcmTest : public testing::TestWithParam<int32_t> {
 protected:
  // What each party does with the parts of a batch; `use` gets the work when it is done.
  using Add = std::function<void(int, GcmWork&)>;
  using Use = std::function<void(int, const GcmWork&)>;
  void Run(const Add& add, const Use& use, std::array<PowersCache, kParties>* caches = nullptr) {
    std::array<PowersCache, kParties> own;
    const auto statuses = RunThreeParties(RingsForTest{}, 3, [&](int p, Rings& rings) {
      AesBatch blocks({512, 1, 512});
      GcmWork work(blocks, caches != nullptr ? (*caches)[p] : own[p]);
      add(p, work);
      rings.BeginBatch(1);
      garble::RunQueue queue;
      work.BeginGarbled(rings.first(), Digest{}, queue);
      const Cost declared = queue.DeclaredCost();
      Cost cost;
      Circuit* const circuits[] = {&queue};
      absl::Status s = RunTogether(rings.first(), circuits, &cost);
      if (!s.ok()) return s;
      EXPECT_EQ(cost, declared);
      EXPECT_EQ(cost, queue.DeclaredCost());
      work.EndGarbled();
      use(p, work);
      return s;
    });
    for (const absl::Status& s : statuses) EXPECT_TRUE(s.ok()) << s;
  }
};

constexpr char kHeader[] = "ab";
constexpr char kTime[] = "a time of some bytes";

std::string Sealed(const Key& key, uint8_t nonce, const std::string& text) {
  const std::vector<uint8_t> n(12, nonce);
  const auto sealed = PlainSeal(key.plain, n, AsBytes(absl::string_view(kHeader)), AsBytes(text));
  return {sealed.begin(), sealed.end()};
}
MessageView ViewOf(const std::string& message) {
  auto view = ParseMessage(message);
  EXPECT_TRUE(view.has_value());
  return *view;
}

TEST_P(GarbledGcmTest, GoodMessagesShowTheirTimeAndOthersNothing) {
  const Key key(GetParam(), 1, KeyClass::kUser, 1);
  const std::string good = Sealed(key, 1, kTime);
  std::string bad_tag = Sealed(key, 2, kTime), bad_text = Sealed(key, 3, kTime);
  bad_tag.back() ^= 1;
  bad_text[bad_text.size() - 17] ^= 1;
  const std::string* const messages[] = {&good, &bad_tag, &bad_text};
  std::array<std::vector<GcmOpen>, kParties> opens;
  Run(
      [&](int p, GcmWork& work) {
        for (const std::string* m : messages) {
          GcmOpen open;
          open.key = key.Use(p);
          open.message = ViewOf(*m);
          open.is_preauth = true;
          opens[p].push_back(open);
        }
        for (GcmOpen& open : opens[p]) work.Add(open);
      },
      [&](int p, const GcmWork& work) {
        EXPECT_TRUE(work.good(opens[p][0]));
        EXPECT_EQ(std::string(AsText(work.opened_text(opens[p][0]))), kTime);
        for (size_t i : {1, 2}) {
          EXPECT_FALSE(work.good(opens[p][i]));
          EXPECT_TRUE(work.opened_text(opens[p][i]).empty());
        }
      });
}

TEST_P(GarbledGcmTest, BlocksAndPowersOfASeal) {
  const Key key(GetParam(), 3, KeyClass::kUser, 2);
  constexpr uint32_t kText = 100;
  std::array<GcmSeal, kParties> seals;
  std::array<std::vector<SharedBlock>, kParties> blocks, powers;
  Run(
      [&](int p, GcmWork& work) {
        seals[p].key = key.Use(p);
        seals[p].nonce.fill(7);
        seals[p].max_plaintext = kText;
        work.Add(seals[p]);
      },
      [&](int p, const GcmWork& work) {
        for (size_t i = 0; i < seals[p].lanes; ++i) blocks[p].push_back(work.Output(seals[p], i));
        const auto& all = work.PowersOf(seals[p]).powers;
        powers[p].assign(all.begin(), all.end());
      });
  // A text of zeros is sealed to the keystream.
  const auto sealed =
      PlainSeal(key.plain, std::vector<uint8_t>(12, 7), {}, std::vector<uint8_t>(kText));
  const std::string message(sealed.begin(), sealed.end());
  const MessageView view = ViewOf(message);
  std::string stream;
  for (size_t i = 1; i < blocks[0].size(); ++i) {
    const Block block = Joined({blocks[0][i], blocks[1][i], blocks[2][i]});
    stream.append(block.begin(), block.end());
  }
  EXPECT_EQ(stream.substr(0, view.ciphertext.size()), view.ciphertext);
  ASSERT_EQ(powers[0].size(), GhashBlockCount(1, kZeroBytes + kText));
  Block power = key.h;
  for (size_t i = 0; i < powers[0].size(); ++i, power = GfMultiply(power, key.h)) {
    EXPECT_EQ(Joined({powers[0][i], powers[1][i], powers[2][i]}), power) << i;
  }
}

// A krbtgt key's powers outlive the batch; the next one's checks take them from there.
TEST_P(GarbledGcmTest, TagsUnderAKeyWhosePowersAreKept) {
  const Key key(GetParam(), 2, KeyClass::kTgs, 3);
  std::array<PowersCache, kParties> caches;
  std::array<GcmMac, kParties> made;
  const std::string data = "what is signed";
  Run(
      [&](int p, GcmWork& work) {
        made[p].key = key.Use(p);
        made[p].data = data;
        work.Add(made[p]);
      },
      [&](int, const GcmWork&) {}, &caches);
  GcmNonce nonce{};
  nonce[0] = 9;
  const auto mac = PlainGmac(key.plain, nonce, AsBytes(data));
  for (const bool good : {true, false}) {
    std::array<GcmVerify, kParties> verifies;
    Run(
        [&](int p, GcmWork& work) {
          verifies[p].key = key.Use(p);
          verifies[p].nonce = nonce;
          verifies[p].data = data;
          std::copy_n(mac.end() - 16, 16, verifies[p].tag.begin());
          verifies[p].tag[3] ^= good ? 0 : 1;
          work.Add(verifies[p]);
        },
        [&](int p, const GcmWork& work) { EXPECT_EQ(work.good(verifies[p]), good); }, &caches);
  }
}

INSTANTIATE_TEST_SUITE_P(Enctypes, GarbledGcmTest,
                         testing::Values(kEnctypeAes128Gcm, kEnctypeAes256Gcm));

}  // namespace
}  // namespace mpckdc
