// SPDX-License-Identifier: Apache-2.0
//
// Servers whose records of a key are not of the same sharing: the key and the server are named, no
// job uses the key, and everybody else logs in.
#include "mpc-server/agree/different_records.h"

#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/agree/record_tags.h"
#include "mpc-server/share/deviation.h"
#include "mpc-server/testing/jobs.h"
#include "mpc-server/testing/three_parties.h"

namespace mpckdc {
namespace {

using ::testing::HasSubstr;

// Puts another record in the place of the one that the store has.
void Replace(ShareStore& store, const KeyRecord& record) {
  const Handle handle = record.info.handle;
  ASSERT_EQ(*store.Delete({&handle, 1}), 1u);
  static uint8_t transaction = 0;
  const TransactionId txn{0xd1, ++transaction};
  ASSERT_TRUE(store.Stage(txn, {&record, 1}, absl::Now()).ok());
  ASSERT_TRUE(store.Commit(txn, absl::Now()).ok());
}

struct Rot {
  const char* what;
  std::function<void(KeyRecord&)> alter;
  bool names_one;  // the server; otherwise it or its previous one
};
const Rot kRots[] = {
    {"one bit of x", [](KeyRecord& r) { r.usages[0].round_keys[3].x[5] ^= 4; }, false},
    {"one bit of a", [](KeyRecord& r) { r.usages[0].round_keys[3].a[5] ^= 4; }, true},
    {"one bit of H", [](KeyRecord& r) { r.usages[2].h.a[0] ^= 1; }, true},
    {"one bit of the base", [](KeyRecord& r) { r.base[0].x[15] ^= 0x80; }, false},
    {"the version", [](KeyRecord& r) { r.info.kvno += 1; }, true},
};

class RotTest : public ::testing::TestWithParam<std::tuple<size_t, int>> {};

TEST_P(RotTest, IsNamedAndHurtsNobodyElse) {
  const Rot& rot = kRots[std::get<0>(GetParam())];
  const int party = std::get<1>(GetParam());
  SCOPED_TRACE(rot.what);
  Realm realm;
  KeyRecord record = *realm.store(party).Get(realm.bob.info.handle);
  const KeyRecord good = record;
  rot.alter(record);
  Replace(realm.store(party), record);

  const uint64_t blocks = realm.engine(0).Status().aes_blocks;
  const PerParty<JobResult> answers = realm.RunEach(realm.Login(realm.bob));
  const std::string whose =
      rot.names_one ? absl::StrCat("server ", party, "'s differs from both others'")
                    : absl::StrCat("server ", PrevParty(party), "'s or server ", party, "'s");
  for (int p = 0; p < kParties; ++p) {
    ExpectRefused(answers[p], Verdict::kUnavailable, HandleText(realm.bob.info.handle));
    EXPECT_THAT(answers[p].judgement.detail, HasSubstr("bob@EXAMPLE.COM"));
    EXPECT_THAT(answers[p].judgement.detail, HasSubstr(whose));
    EXPECT_THAT(realm.engine(p).Status().different_record, HasSubstr(whose));
    EXPECT_EQ(realm.engine(p).Status().different_records, 1u);
    EXPECT_FALSE(realm.engine(p).Status().quarantine.has_value());
  }
  EXPECT_EQ(realm.engine(0).Status().aes_blocks, blocks) << "nothing was computed under it";
  const std::vector<JobResult> mixed = realm.RunAll(
      {realm.Login(realm.alice), realm.Login(realm.bob), realm.Login(realm.guest, "")});
  EXPECT_VERDICT(mixed[0], Verdict::kOk);
  EXPECT_VERDICT(mixed[1], Verdict::kUnavailable);
  EXPECT_VERDICT(mixed[2], Verdict::kOk);
  EXPECT_EQ(realm.engine(0).Status().sessions, 1u);

  const auto verified = realm.Verify({realm.bob.info.handle, realm.alice.info.handle});
  ASSERT_TRUE(verified.ok()) << verified.status();
  EXPECT_FALSE((*verified)[0].consistent);
  EXPECT_THAT((*verified)[0].detail, HasSubstr(whose));
  EXPECT_TRUE((*verified)[1].consistent);

  Replace(realm.store(party), good);
  EXPECT_VERDICT(realm.Run(realm.Login(realm.bob)), Verdict::kOk);
  for (int p = 0; p < kParties; ++p) {
    EXPECT_EQ(realm.engine(p).Status().different_records, 0u);
  }
}
INSTANTIATE_TEST_SUITE_P(All, RotTest,
                         ::testing::Combine(::testing::Range(size_t{0}, std::size(kRots)),
                                            ::testing::Range(0, kParties)));

TEST(DifferentRecords, ARecordOfAnEarlierSharing) {
  Realm realm;
  // The same key shared anew, and one server put back to the first sharing.
  const PerParty<KeyRecord> anew = ShareKey(realm.bob, realm.random());
  const KeyRecord old = *realm.store(2).Get(realm.bob.info.handle);
  for (int p = 0; p < kParties; ++p) Replace(realm.store(p), anew[p]);
  ASSERT_VERDICT_OK(realm.Run(realm.Login(realm.bob)));
  Replace(realm.store(2), old);
  ExpectRefused(realm.Run(realm.Login(realm.bob)), Verdict::kUnavailable,
                "server 2's differs from both others'");
  EXPECT_VERDICT(realm.Run(realm.Login(realm.alice)), Verdict::kOk);
}

class StockRecordTest : public ::testing::TestWithParam<ProtocolSetting> {};
INSTANTIATE_TEST_SUITE_P(Protocols, StockRecordTest, ::testing::ValuesIn(kForcedProtocols));

TEST_P(StockRecordTest, IsNamedToo) {
  Realm realm(kEnctypeAes256Sha1, Forced(GetParam()));
  KeyRecord record = *realm.store(1).Get(realm.bob.info.handle);
  record.usages.back().mac_states[1].a[0] ^= 1;
  Replace(realm.store(1), record);
  Job login = realm.Login(realm.bob);
  login.deadline_ms = 20000;
  ExpectRefused(realm.Run(login), Verdict::kUnavailable, "server 1's differs from both others'");
}

TEST(DifferentRecords, AKrbtgtOfTheRealmStopsItAndSaysSo) {
  Realm realm;
  KeyRecord record = *realm.store(0).Get(realm.tgt.info.handle);
  record.usages[0].h.a[0] ^= 1;
  Replace(realm.store(0), record);
  ExpectRefused(realm.Run(realm.Login(realm.alice)), Verdict::kUnavailable,
                "krbtgt/EXAMPLE.COM@EXAMPLE.COM");
}

// ---- Tags ----

TEST(RecordTags, AServerThatSpeaksOfAnotherNumberOfKeysDeviates) {
  EXPECT_TRUE(CheckCounts(1, 2, {2, 2, 2}).ok());
  EXPECT_EQ(SuspectsOf(CheckCounts(1, 2, {2, 2, 1})), Suspects::One(2));
  EXPECT_EQ(SuspectsOf(CheckCounts(1, 0, {1, 0, 0})), Suspects::One(0));
  EXPECT_TRUE(absl::IsInternal(CheckCounts(1, 2, {2, 0, 2})));
}

struct Contexts {
  Contexts() {
    std::array<Seed, 3> k;
    for (Seed& seed : k) SystemRandom().Fill(absl::MakeSpan(seed));
    for (int p = 0; p < kParties; ++p) {
      SessionOptions options;
      options.party = p;
      PairwiseSeeds seeds;
      seeds.own.Get() = k[p];
      seeds.next.Get() = k[NextParty(p)];
      party[p] = std::make_unique<PartyContext>(options, ring.channel(p), SystemClock(), 1,
                                                std::move(seeds));
    }
  }
  PerParty<RecordTags> Tags(const PerParty<KeyRecord>& records, uint32_t batch) {
    RecordTagger tagger;
    PerParty<RecordTags> tags;
    for (int p = 0; p < kParties; ++p) tags[p] = tagger.TagsOf(records[p], *party[p], batch);
    return tags;
  }
  MemoryRing ring;
  PerParty<std::unique_ptr<PartyContext>> party;
};

TEST(RecordTags, AreThePairsOwnAndOfOneBatch) {
  SeededRandomForTest random(5);
  const PlainKey key = MakePlainKey(random, "a@R", KeyClass::kUser, kEnctypeAes256Gcm);
  const PerParty<KeyRecord> records = ShareKey(key, random);
  Contexts contexts, others;
  const PerParty<RecordTags> tags = contexts.Tags(records, 7);
  EXPECT_EQ(Compare(tags), std::nullopt);
  const PerParty<RecordTags> later = contexts.Tags(records, 8);
  const PerParty<RecordTags> elsewhere = others.Tags(records, 7);
  for (int p = 0; p < kParties; ++p) {
    EXPECT_EQ(tags[p].with_next, tags[NextParty(p)].with_prev);
    EXPECT_NE(tags[p].with_next, tags[p].with_prev);
    EXPECT_NE(tags[p].with_next, later[p].with_next);
    EXPECT_NE(tags[p].with_next, elsewhere[p].with_next);
  }
}

// Each bit of either component shows to the one who shares it.
TEST(RecordTags, EveryBlockMatters) {
  SeededRandomForTest random(6);
  for (const int32_t enctype : {kEnctypeAes128Gcm, kEnctypeAes256Sha1}) {
    const PlainKey key = MakePlainKey(random, "a@R", KeyClass::kUser, enctype);
    PerParty<KeyRecord> records = ShareKey(key, random);
    Contexts contexts;
    const auto expect = [&](SharedBlock& block) {
      for (uint8_t* byte : {&block.x[15], &block.a[0]}) {
        *byte ^= 1;
        EXPECT_TRUE(Compare(contexts.Tags(records, 1)).has_value());
        *byte ^= 1;
      }
    };
    for (SharedBlock& block : records[1].base) expect(block);
    for (UsageKey& usage : records[1].usages) {
      for (SharedBlock& block : usage.round_keys) expect(block);
      for (SharedBlock& block : usage.mac_states) expect(block);
      expect(usage.h);
    }
    EXPECT_EQ(Compare(contexts.Tags(records, 1)), std::nullopt);
  }
}

}  // namespace
}  // namespace mpckdc
