// SPDX-License-Identifier: Apache-2.0
// Keys drawn and verified on shares, of every enctype, with three parties and no engine around.
#include "mpc-server/compute/key_work.h"

#include <string>
#include <tuple>

#include "gtest/gtest.h"
#include "mpc-server/garble/program_run.h"
#include "mpc-server/testing/nothing.h"
#include "mpc-server/testing/three_parties.h"
#include "mpc-server/testing/usage_key_oracle.h"

namespace mpckdc {
namespace {

KeyInfo InfoOf(int32_t enctype, KeyClass key_class) {
  KeyInfo info;
  info.handle[0] = static_cast<uint8_t>(enctype);
  info.principal = "drawn@EXAMPLE.COM";
  info.principal_id = PrincipalIdOf(info.principal);
  info.kvno = 1;
  info.enctype = enctype;
  info.key_class = key_class;
  return info;
}

using Records = std::array<KeyRecord, kParties>;

KeyProtocol By(CtsProtocol protocol) { return {protocol, Sha256("a view")}; }

Records Draw(int32_t enctype, KeyClass key_class, CtsProtocol protocol) {
  Records records;
  MemoryRing ring;
  const auto statuses = RunThreeParties(ring, 7, [&](PartyContext& party) {
    Nothing first;
    Cost cost;
    party.BeginBatch(1);
    auto record = DrawRecord(party, InfoOf(enctype, key_class), By(protocol), first, &cost);
    if (record.ok()) records[party.party()] = *std::move(record);
    return record.status();
  });
  for (const absl::Status& s : statuses) EXPECT_TRUE(s.ok()) << s;
  return records;
}

std::vector<bool> Verify(const std::vector<Records>& keys, CtsProtocol protocol) {
  std::array<std::vector<bool>, kParties> found;
  MemoryRing ring;
  const auto statuses = RunThreeParties(ring, 8, [&](PartyContext& party) {
    std::vector<const KeyRecord*> records;
    for (const Records& key : keys) records.push_back(&key[party.party()]);
    Nothing first;
    Cost cost;
    party.BeginBatch(1);
    auto verified = VerifyRecords(party, records, By(protocol), first, &cost);
    if (verified.ok()) found[party.party()] = *std::move(verified);
    return verified.status();
  });
  for (const absl::Status& s : statuses) EXPECT_TRUE(s.ok()) << s;
  EXPECT_EQ(found[0], found[1]);
  EXPECT_EQ(found[0], found[2]);
  return found[0];
}

// Joins what `get` names in the three records.
template <class Get>
std::vector<Block> Joined(const Records& records, Get get) {
  std::vector<Block> out(get(records[0]).size());
  for (size_t i = 0; i < out.size(); ++i) {
    EXPECT_TRUE(JoinForTest({get(records[0])[i], get(records[1])[i], get(records[2])[i]}, &out[i]));
  }
  return out;
}

void ExpectUsageOf(const Enctype& e, const Records& records, size_t u, const SecretBytes& base) {
  const uint32_t usage = records[0].usages[u].usage;
  const auto keys = Joined(records, [u](const KeyRecord& r) { return r.usages[u].round_keys; });
  const auto states = Joined(records, [u](const KeyRecord& r) { return r.usages[u].mac_states; });
  const PlainUsage want = PlainUsageOf(e, base, usage);
  EXPECT_EQ(keys, want.round_keys) << e.name << " usage " << usage;
  EXPECT_EQ(states, want.mac_states) << e.name << " usage " << usage;
  if (!e.is_gcm()) return;
  const auto h = Joined(records, [u](const KeyRecord& r) {
    return SecretVector<SharedBlock>{r.usages[u].h};
  });
  EXPECT_EQ(h[0], want.h);
}

constexpr CtsProtocol kProtocols[] = {CtsProtocol::kReplicated, CtsProtocol::kGarbled};

class KeyWorkTest : public testing::TestWithParam<std::tuple<int32_t, CtsProtocol>> {
 protected:
  const Enctype& enctype() const { return *FindEnctype(std::get<0>(GetParam())); }
  CtsProtocol protocol() const { return std::get<1>(GetParam()); }
};

TEST_P(KeyWorkTest, DrawnKeysHaveTheUsageKeysOfTheirBase) {
  const Enctype& e = enctype();
  for (const KeyClass key_class : {KeyClass::kUser, KeyClass::kService}) {
    const Records records = Draw(e.number, key_class, protocol());
    SecretBytes base;
    for (const Block& b : Joined(records, [](const KeyRecord& r) { return r.base; })) {
      base.insert(base.end(), b.begin(), b.end());
    }
    ASSERT_EQ(base.size(), e.key_bytes);
    for (size_t u = 0; u < records[0].usages.size(); ++u) ExpectUsageOf(e, records, u, base);
  }
}

// One bit of any part, in a consistent sharing of another value: all three a change.
TEST_P(KeyWorkTest, VerifySeesOneWrongBit) {
  const Records good = Draw(enctype().number, KeyClass::kUser, protocol());
  std::vector<Records> keys = {good};
  const auto add = [&](auto part) {  // the shared value ^ 1
    Records bad = good;
    for (KeyRecord& record : bad) {
      if (SharedBlock* block = part(record)) block->a[7] ^= 1;
    }
    if (part(bad[0]) != nullptr) keys.push_back(std::move(bad));
  };
  add([](KeyRecord& r) { return &r.base[0]; });
  for (size_t u = 0; u < 3; ++u) {
    add([u](KeyRecord& r) {
      auto& keys = r.usages[u].round_keys;
      return keys.empty() ? nullptr : &keys.back();
    });
    add([u](KeyRecord& r) {
      auto& states = r.usages[u].mac_states;
      return states.empty() ? nullptr : &states.front();
    });
    add([u](KeyRecord& r) {
      auto& states = r.usages[u].mac_states;
      return states.empty() ? nullptr : &states.back();
    });
  }
  if (enctype().is_gcm()) add([](KeyRecord& r) { return &r.usages[1].h; });
  keys.push_back(good);
  ASSERT_GE(keys.size(), 6u);
  std::vector<bool> want(keys.size(), false);
  want.front() = want.back() = true;
  EXPECT_EQ(Verify(keys, protocol()), want);
}

// Another sharing of the same key, or of one that differs in a bit.
Records Resharing(const Records& of, uint8_t seed, size_t block, uint8_t flip) {
  Records out = of;
  for (size_t b = 0; b < of[0].base.size(); ++b) {
    std::array<Block, kParties> component;
    Block key;
    EXPECT_TRUE(JoinForTest({of[0].base[b], of[1].base[b], of[2].base[b]}, &key));
    if (b == block) key[seed % 16] ^= flip;
    for (int p = 0; p < 2; ++p) component[p].fill(static_cast<uint8_t>(seed * 7 + p * 31 + b));
    component[2] = XorBlocks(key, XorBlocks(component[0], component[1]));
    for (int p = 0; p < kParties; ++p) {  // x_p and a_p = x_{p-1} ^ x_p, of components a_p
      SharedBlock& share = out[p].base[b];
      share.a = component[p];
      share.x = XorBlocks(component[PrevParty(p)], component[p]);
    }
  }
  return out;
}

struct Compared {
  std::vector<bool> equal;
  Cost cost;
};

Compared CompareAll(const std::vector<std::pair<Records, Records>>& pairs) {
  std::array<Compared, kParties> found;
  MemoryRing ring;
  const auto statuses = RunThreeParties(ring, 9, [&](PartyContext& party) {
    std::vector<KeyPair> own;
    for (const auto& [one, other] : pairs) {
      own.push_back({&one[party.party()], &other[party.party()]});
    }
    Nothing first;
    party.BeginBatch(1);
    auto equal = CompareBases(party, own, first, &found[party.party()].cost);
    if (equal.ok()) found[party.party()].equal = *std::move(equal);
    return equal.status();
  });
  for (const absl::Status& s : statuses) EXPECT_TRUE(s.ok()) << s;
  EXPECT_EQ(found[0].equal, found[1].equal);
  EXPECT_EQ(found[0].equal, found[2].equal);
  return found[0];
}

// Which are equal is known from how they were made.
TEST(CompareBasesTest, SaysOfEachPairWhetherTheKeysAreEqual) {
  std::vector<std::pair<Records, Records>> pairs;
  std::vector<bool> want;
  for (const Enctype& e : kEnctypes) {
    const Records key = Draw(e.number, KeyClass::kUser, CtsProtocol::kReplicated);
    const size_t last = key[0].base.size() - 1;
    const Records other = Resharing(key, 8, last, 0x55);
    pairs.emplace_back(key, Resharing(key, 3, 0, 0));
    pairs.emplace_back(key, Resharing(key, 4, 0, 1));
    pairs.emplace_back(key, Resharing(key, 5, last, 0x80));
    pairs.emplace_back(key, other);
    pairs.emplace_back(other, key);
    pairs.emplace_back(Resharing(other, 15, 0, 0), other);
    for (const bool equal : {true, false, false, false, false, true}) {
      want.push_back(equal);
    }
  }
  const Compared compared = CompareAll(pairs);
  EXPECT_EQ(compared.equal, want);
  // The declared: rounds and bytes, of whichever way the messages are proved.
  EXPECT_EQ(CostOfCompare(pairs.size()).rounds, 2u);
  EXPECT_GE(compared.cost.rounds, CostOfCompare(pairs.size()).rounds);
}

TEST(CompareBasesTest, TakesNoPairOfTwoEnctypes) {
  const Records a = Draw(kEnctypeAes128Gcm, KeyClass::kUser, CtsProtocol::kReplicated);
  const Records b = Draw(kEnctypeAes128Sha1, KeyClass::kUser, CtsProtocol::kReplicated);
  MemoryRing ring;
  const auto statuses = RunThreeParties(ring, 9, [&](PartyContext& party) {
    const KeyPair pair{&a[party.party()], &b[party.party()]};
    Nothing first;
    Cost cost;
    party.BeginBatch(1);
    return CompareBases(party, {&pair, 1}, first, &cost).status();
  });
  for (const absl::Status& s : statuses) EXPECT_TRUE(absl::IsInternal(s)) << s;
}

// A key from before its class had its last usage is verified by those that it has, beside new ones.
TEST_P(KeyWorkTest, VerifyTakesARecordWithoutTheLastUsage) {
  const Records whole = Draw(enctype().number, KeyClass::kTgs, protocol());
  Records old = whole;
  for (KeyRecord& record : old) {
    record.usages.pop_back();
    ASSERT_TRUE(CheckKeyRecord(record).ok());
  }
  Records bad = old;
  for (KeyRecord& record : bad) {
    UsageKey& usage = record.usages.back();
    (enctype().is_gcm() ? usage.h : usage.mac_states[0]).a[3] ^= 1;
  }
  EXPECT_EQ(Verify({old, whole, bad, old}, protocol()),
            (std::vector<bool>{true, true, false, true}));
}

// What is left of a key for the history has nothing that could not belong together.
TEST_P(KeyWorkTest, VerifyPassesARecordOfABaseAlone) {
  const Records good = Draw(enctype().number, KeyClass::kUser, protocol());
  Records reduced = good, bad = good;
  for (KeyRecord& record : reduced) record.usages.clear();
  for (KeyRecord& record : bad) record.base[0].a[3] ^= 4;
  EXPECT_EQ(Verify({reduced, bad, good, reduced}, protocol()),
            (std::vector<bool>{true, false, true, true}));
  EXPECT_EQ(Verify({reduced}, protocol()), std::vector<bool>{true});
}

INSTANTIATE_TEST_SUITE_P(Enctypes, KeyWorkTest,
                         testing::Combine(testing::Values(kEnctypeAes128Gcm, kEnctypeAes256Gcm,
                                                          kEnctypeAes128Sha1, kEnctypeAes256Sha1,
                                                          kEnctypeAes128Sha256,
                                                          kEnctypeAes256Sha384),
                                          testing::ValuesIn(kProtocols)),
                         [](const auto& i) {
                           const int32_t number = std::get<0>(i.param);
                           return "e" + std::to_string(number < 0 ? -number : number) + "_" +
                                  ProtocolName(std::get<1>(i.param));
                         });

class KeyWork : public testing::TestWithParam<CtsProtocol> {};

// Keys of every enctype in one batch. Drawn in one way, they are good in the other.
TEST_P(KeyWork, EnctypesAreVerifiedSideBySide) {
  std::vector<Records> keys;
  for (const Enctype& e : kEnctypes) {
    keys.push_back(Draw(e.number, KeyClass::kTgs, CtsProtocol::kReplicated));
    keys.push_back(Draw(e.number, KeyClass::kUser, CtsProtocol::kGarbled));
  }
  EXPECT_EQ(Verify(keys, GetParam()), std::vector<bool>(keys.size(), true));
}

// More keys of a shape than a garbled run has lanes.
TEST_P(KeyWork, ManyKeysOfOneShape) {
  const Records good = Draw(kEnctypeAes128Gcm, KeyClass::kService, GetParam());
  std::vector<Records> keys(garble::kMostLanes + 3, good);
  std::vector<bool> want(keys.size(), true);
  for (const size_t bad : {size_t{4}, garble::kMostLanes + 1}) {
    for (KeyRecord& record : keys[bad]) record.usages[1].h.a[15] ^= 0x80;
    want[bad] = false;
  }
  EXPECT_EQ(Verify(keys, GetParam()), want);
}

TEST_P(KeyWork, AnUnknownEnctypeIsRefused) {
  MemoryRing ring;
  const auto statuses = RunThreeParties(ring, 9, [&](PartyContext& party) {
    Nothing first;
    Cost cost;
    party.BeginBatch(1);
    return DrawRecord(party, InfoOf(23, KeyClass::kUser), By(GetParam()), first, &cost).status();
  });
  for (const absl::Status& s : statuses) EXPECT_TRUE(absl::IsInvalidArgument(s)) << s;
}

INSTANTIATE_TEST_SUITE_P(Protocols, KeyWork, testing::ValuesIn(kProtocols),
                         [](const auto& i) { return std::string(ProtocolName(i.param)); });

}  // namespace
}  // namespace mpckdc
