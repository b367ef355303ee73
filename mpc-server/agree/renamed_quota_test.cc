// SPDX-License-Identifier: Apache-2.0
//
// Keys under other names (RenameKeys): guesses at them and their pre-auths, in three engines.
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "mpc-server/job/preauth_timestamp.h"
#include "mpc-server/key/message_format.h"
#include "mpc-server/store/replay_entry.h"
#include "mpc-server/testing/jobs.h"
#include "mpc-server/testing/quota_realm.h"

namespace mpckdc {
namespace {

INSTANTIATE_TEST_SUITE_P(Keys, KeyQuotaTest, ::testing::ValuesIn(kGcmAndStock), NameOf);

// ATTACK. If replay entries went by handle each name that a key gets would be another login by a
// message whose login is over: for a KDC, a ticket in a name whose user has not logged in.
TEST_P(KeyQuotaTest, APreauthIsSpentForTheCopiesOfItsKey) {
  QuotaRealm realm(GetParam().enctype, Of({}));
  const std::string preauth = realm.Preauth(realm.alice);
  EXPECT_VERDICT(realm.Run(realm.Login(realm.alice, preauth)), Verdict::kOk);
  const PlainKey copy = realm.Copy(realm.alice, "alice.smith@EXAMPLE.COM", Handle{77});
  const PlainKey next = realm.Copy(copy, "alice.brown@EXAMPLE.COM", Handle{78});
  realm.kdc().name = "another";
  for (const PlainKey& key : {realm.alice, copy, next}) {
    EXPECT_VERDICT(realm.Run(realm.Login(key, preauth)), Verdict::kReplay) << key.info.principal;
    EXPECT_EQ(realm.LoginVerdict(key), Verdict::kOk) << "with one of its own";
  }
  // The other way round: what the copy has accepted is spent for the old key, while both are there.
  const std::string after = realm.Preauth(next);
  EXPECT_VERDICT(realm.Run(realm.Login(next, after)), Verdict::kOk);
  realm.kdc().name = "a third";
  EXPECT_VERDICT(realm.Run(realm.Login(realm.alice, after)), Verdict::kReplay);
}

// ATTACK. The KDC that brought it may present a pre-auth again for a minute. That is for an answer that
// was lost, and not a login under the other name, whose user has shown nothing.
TEST_P(KeyQuotaTest, APreauthIsForOneName) {
  QuotaRealm realm(GetParam().enctype, Of({}));
  const PlainKey copy = realm.Copy(realm.alice, "alice.smith@EXAMPLE.COM", Handle{77});
  const std::string preauth = realm.Preauth(realm.alice), hers = realm.Preauth(copy);
  EXPECT_VERDICT(realm.Run(realm.Login(realm.alice, preauth)), Verdict::kOk);
  EXPECT_VERDICT(realm.Run(realm.Login(copy, preauth)), Verdict::kReplay)
      << "a TGT of " << copy.info.principal;
  EXPECT_VERDICT(realm.Run(realm.Login(realm.alice, preauth)), Verdict::kOk) << "as before";
  EXPECT_VERDICT(realm.Run(realm.Login(copy, hers)), Verdict::kOk);
  EXPECT_VERDICT(realm.Run(realm.Login(realm.alice, hers)), Verdict::kReplay);
}

// ATTACK. The version before wrote pre-auths down under the key's handle. Who has one and waits for the
// upgrade, of a few minutes, would log in with it at another KDC.
TEST_P(KeyQuotaTest, APreauthOfBeforeTheUpgradeIsSpent) {
  QuotaRealm realm(GetParam().enctype, Of({}));
  const std::string preauth = realm.Preauth(realm.alice);
  const Enctype& enctype = *FindEnctype(GetParam().enctype);
  ReplayEntry entry{realm.alice.info.handle, {}, absl::Now() + absl::Minutes(10)};
  entry.nonce = enctype.is_gcm() ? ParseMessage(preauth)->nonce
                                 : ReplayIdOf(*ParseCtsMessage(enctype, preauth));
  realm.StopAll();
  for (int p = 0; p < kParties; ++p) {
    ASSERT_TRUE(realm.store(p).ClaimReplayEntries({&entry, 1}, [](auto...) {
      return std::nullopt;
    }).ok());
  }
  realm.StartAll();
  ASSERT_TRUE(realm.WaitConnected());
  EXPECT_VERDICT(realm.Run(realm.Login(realm.alice, preauth)), Verdict::kReplay);
  EXPECT_EQ(realm.LoginVerdict(realm.alice), Verdict::kOk);
}

// Who gets the name when it is free again has nothing to do with the copies of the key that had it: the
// nonce is the client's, and one that he who was renamed has used is not spent for her.
TEST(RenamedReplays, AreNotThoseOfWhoGetsTheNameNext) {
  QuotaRealm realm;
  const PlainKey copy = realm.Copy(realm.alice, "alice.smith@EXAMPLE.COM", Handle{77});
  const PlainKey next = realm.AddKey(realm.alice.info.principal, KeyClass::kUser, kEnctypeAes128Gcm);
  const auto preauth = [](const PlainKey& key) {
    return PlainSealText(key, kUsagePreauth, Nonce{1, 2, 3}, "", EncodePreauthTimestamp(absl::Now()));
  };
  EXPECT_VERDICT(realm.Run(realm.Login(copy, preauth(copy))), Verdict::kOk);
  realm.kdc().name = "another";
  EXPECT_VERDICT(realm.Run(realm.Login(next, preauth(next))), Verdict::kOk);
}

// Names add no guesses: those at all copies of a key are one principal's, beside those at the key
// itself while it is there. They are not those of whoever gets the name next.
TEST_P(KeyQuotaTest, GuessesAtCopiesAreTheirLineages) {
  QuotaRealm realm(GetParam().enctype, Of(With(QuotaKind::kPrincipalFailures, kTwo)));
  const PlainKey copy = realm.Copy(realm.alice, "alice.smith@EXAMPLE.COM", Handle{77});
  const PlainKey back = realm.Copy(copy, realm.alice.info.principal, Handle{78});
  EXPECT_EQ(realm.LoginVerdict(copy), Verdict::kOk);
  EXPECT_VERDICT(realm.Guess(copy), Verdict::kBadTag);
  EXPECT_VERDICT(realm.Guess(back), Verdict::kBadTag);
  EXPECT_VERDICT(realm.Guess(copy), Verdict::kQuota);
  EXPECT_VERDICT(realm.Guess(back), Verdict::kQuota);
  for (const Verdict want : {Verdict::kBadTag, Verdict::kBadTag, Verdict::kQuota}) {
    EXPECT_VERDICT(realm.Guess(realm.alice), want) << "the key that keeps its name";
  }
  EXPECT_VERDICT(realm.Guess(realm.bob), Verdict::kBadTag);
}

// ATTACK. A job names its client by a handle, and opens under any of that name's keys. So guesses at
// a copy of alice's key must not be those of another key that has the same name, or each name that
// her key gets would be a quota of its own.
TEST_P(KeyQuotaTest, GuessesAtACopyAreItsLineagesWhicheverKeyTheClientIs) {
  QuotaRealm realm(GetParam().enctype, Of(With(QuotaKind::kPrincipalFailures, kTwo)));
  int guesses = 0;
  for (uint8_t name = 1; name <= 4; ++name) {
    const std::string principal = absl::StrCat("alice", name, "@EXAMPLE.COM");
    const PlainKey own = realm.AddKey(principal, KeyClass::kUser, GetParam().enctype);
    const PlainKey copy = realm.Copy(realm.alice, principal, Handle{77, name});
    Job good = realm.Login(copy);
    good.client = own.info.handle;
    EXPECT_VERDICT(realm.Run(good), name == 1 ? Verdict::kOk : Verdict::kQuota)
        << "it is alice's key that is opened";
    for (int i = 0; i < 2; ++i) {
      Job guess = realm.Login(copy, realm.AlteredPreauth(copy));
      guess.client = own.info.handle;
      guesses += realm.Run(guess).judgement.verdict == Verdict::kBadTag;
    }
  }
  EXPECT_EQ(guesses, 2) << "guesses at alice's key, of two";
}

}  // namespace
}  // namespace mpckdc
