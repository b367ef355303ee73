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
