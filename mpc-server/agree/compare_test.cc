// SPDX-License-Identifier: Apache-2.0
//
// Three servers compare staged keys with old ones: what they say, when they say nothing, and what
// one that lies comes to.
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/agree/agreement.h"
#include "mpc-server/testing/jobs.h"

namespace mpckdc {
namespace {

using ::testing::HasSubstr;
using Answers = PerParty<absl::StatusOr<std::vector<CompareResult>>>;

constexpr char kAlice[] = "alice@EXAMPLE.COM";

class CompareTest : public ::testing::Test {
 protected:
  PlainKey NewKey(const std::string& principal, int32_t enctype) {
    return MakePlainKey(realm_.random(), principal, KeyClass::kUser, enctype);
  }
  // The same password: another handle, another sharing.
  PlainKey Again(PlainKey key) {
    realm_.random().Fill(absl::MakeSpan(key.info.handle));
    ++key.info.kvno;
    return key;
  }
  void Enrolled(const PlainKey& key) {
    const PerParty<KeyRecord> records = ShareKey(key, realm_.random());
    for (int p = 0; p < kParties; ++p) {
      ASSERT_EQ(Enrol(realm_.store(p), records[p], absl::Now()), absl::OkStatus());
    }
  }
  Handle Staged(const PlainKey& key) {
    const PerParty<KeyRecord> records = ShareKey(key, realm_.random());
    for (int p = 0; p < kParties; ++p) {
      EXPECT_EQ(realm_.store(p).Stage(txn_, {&records[p], 1}, absl::Now()), absl::OkStatus());
    }
    return key.info.handle;
  }
  Answers Compare(const std::vector<Handle>& staged, const std::vector<Handle>& old) {
    return realm_.CompareEach([&](int) { return CompareRequest{{}, txn_, staged, old}; });
  }
  // All three say the same.
  std::vector<Comparison> Agreed(const Answers& answers) {
    std::vector<Comparison> said;
    for (const auto& answer : answers) {
      EXPECT_TRUE(answer.ok()) << answer.status();
      if (!answer.ok()) return {};
      std::vector<Comparison> own;
      for (const CompareResult& result : *answer) own.push_back(result.comparison);
      if (&answer != &answers[0]) {
        EXPECT_EQ(own, said);
      }
      said = own;
    }
    return said;
  }
  void ExpectAllFail(const Answers& answers, const std::string& text) {
    for (const auto& answer : answers) {
      EXPECT_TRUE(absl::IsUnavailable(answer.status())) << answer.status();
      EXPECT_THAT(answer.status().message(), HasSubstr(text));
    }
  }
  void ExpectNobodyAccused() {
    for (int p = 0; p < kParties; ++p) {
      EXPECT_FALSE(realm_.engine(p).Status().quarantine.has_value());
    }
  }

  Realm realm_;
  TransactionId txn_{7};
};

constexpr Comparison kDifferent = Comparison::kDifferent, kEqual = Comparison::kEqual,
                     kUnknown = Comparison::kUnknown;

TEST_F(CompareTest, SaysWhichOldKeysAreTheNewPasswords) {
  std::vector<Handle> staged, old;
  std::vector<Comparison> want;
  for (const Enctype& e : kEnctypes) {
    const PlainKey used = NewKey(kAlice, e.number), other = NewKey(kAlice, e.number);
    Enrolled(used);
    Enrolled(other);
    staged.push_back(Staged(Again(used)));
    old.push_back(used.info.handle);
    old.push_back(other.info.handle);
    want.push_back(kEqual);
    want.push_back(other.base == used.base ? kEqual : kDifferent);
  }
  EXPECT_EQ(Agreed(Compare(staged, old)), want);
  // Of one staged key alone: those of other types have nothing that they could be equal to.
  std::vector<Comparison> of_first(want.size(), kDifferent);
  of_first[0] = kEqual;
  EXPECT_EQ(Agreed(Compare({staged[0]}, old)), of_first);
  ExpectNobodyAccused();
  EXPECT_VERDICT(realm_.Run(realm_.Login(realm_.alice)), Verdict::kOk);
}

// Two staged keys of one type, as with two salts.
TEST_F(CompareTest, EqualToAnyOfTheStagedKeysOfItsType) {
  const PlainKey used = NewKey(kAlice, kEnctypeAes256Gcm);
  Enrolled(used);
  const Handle other = Staged(NewKey(kAlice, kEnctypeAes256Gcm)), same = Staged(Again(used));
  EXPECT_EQ(Agreed(Compare({other, same}, {used.info.handle})), std::vector<Comparison>{kEqual});
  EXPECT_EQ(Agreed(Compare({other}, {used.info.handle})), std::vector<Comparison>{kDifferent});
}

// The same bytes, but somebody else's.
TEST_F(CompareTest, SaysNothingOfKeysOfAnotherPrincipal) {
  const PlainKey bobs = NewKey("bob@EXAMPLE.COM", kEnctypeAes128Gcm);
  Enrolled(bobs);
  PlainKey guess = Again(bobs);
  guess.info.principal = kAlice;
  guess.info.principal_id = PrincipalIdOf(kAlice);
  EXPECT_EQ(Agreed(Compare({Staged(guess)}, {bobs.info.handle})),
            std::vector<Comparison>{kDifferent});
}

// What RenameKeys staged is an old key: each of the "old" ones would be a guess at it.
TEST_F(CompareTest, AStagedCopyIsNotCompared) {
  const PlainKey alices = NewKey(kAlice, kEnctypeAes256Gcm);
  PlainKey guess = Again(alices);
  guess.info.principal = "bob@EXAMPLE.COM";
  guess.info.principal_id = PrincipalIdOf(guess.info.principal);
  Enrolled(alices);
  Enrolled(guess);
  const RenamedKey key{{alices.info.handle, kAlice}, Handle{77}, 4, "salt"};
  for (int p = 0; p < kParties; ++p) {
    ASSERT_TRUE(realm_.store(p)
                    .StageRenamed(txn_, {key}, guess.info.principal, 1, absl::Now())
                    .ok());
  }
  ExpectAllFail(Compare({key.to}, {guess.info.handle}), "");
  ExpectNobodyAccused();
}

// The quotas have looked at the keys before; one that was exchanged since is somebody else's.
TEST_F(CompareTest, AnOldKeyThatIsNotWhoseItWasIsNotCompared) {
  const PlainKey used = NewKey(kAlice, kEnctypeAes256Gcm);
  Enrolled(used);
  const Handle staged = Staged(Again(used));
  const auto compare = [&](const PrincipalId& owner) {
    return realm_.CompareEach([&](int) {
      return CompareRequest{{}, txn_, {staged}, {used.info.handle}, {owner}};
    });
  };
  EXPECT_EQ(Agreed(compare(used.info.principal_id)), std::vector<Comparison>{kEqual});
  ExpectAllFail(compare(PrincipalId{9}), "exchanged while it was to be compared");
  ExpectAllFail(compare(PrincipalId{}), "exchanged");
  ExpectNobodyAccused();
}

TEST_F(CompareTest, AnOldKeyThatNobodyHasIsUnknown) {
  const PlainKey used = NewKey(kAlice, kEnctypeAes128Gcm);
  const PlainKey lost = NewKey(kAlice, kEnctypeAes128Gcm);
  Enrolled(used);
  Enrolled(lost);
  const Handle staged = Staged(Again(used));
  for (int p = 0; p < kParties; ++p) {
    ASSERT_EQ(*realm_.store(p).Delete({&lost.info.handle, 1}), 1u);
  }
  EXPECT_EQ(Agreed(Compare({staged}, {lost.info.handle, used.info.handle})),
            (std::vector<Comparison>{kUnknown, kEqual}));
}

// One server that lost a key: no answer of the three is whole.
TEST_F(CompareTest, AnOldKeyThatOneServerLacksIsAnError) {
  const PlainKey used = NewKey(kAlice, kEnctypeAes128Gcm);
  Enrolled(used);
  const Handle staged = Staged(Again(used));
  for (int lacks = 0; lacks < kParties; ++lacks) {
    const KeyRecord record = *realm_.store(lacks).Get(used.info.handle);
    ASSERT_EQ(*realm_.store(lacks).Delete({&used.info.handle, 1}), 1u);
    const Answers answers = Compare({staged}, {used.info.handle});
    for (int p = 0; p < kParties; ++p) {
      if (p == lacks) {
        ASSERT_TRUE(answers[p].ok()) << answers[p].status();
        EXPECT_EQ((*answers[p])[0].comparison, kUnknown);
      } else {
        EXPECT_TRUE(absl::IsUnavailable(answers[p].status())) << answers[p].status();
      }
    }
    const TransactionId back{0xb0, static_cast<uint8_t>(lacks)};
    ASSERT_TRUE(realm_.store(lacks).Stage(back, {&record, 1}, absl::Now()).ok());
    ASSERT_TRUE(realm_.store(lacks).Commit(back, absl::Now()).ok());
  }
  EXPECT_EQ(Agreed(Compare({staged}, {used.info.handle})), std::vector<Comparison>{kEqual});
}

// Whoever stages can give the three what does not fit together: refused, and nobody accused.
TEST_F(CompareTest, StagedKeysThatDifferAreRefused) {
  const PlainKey used = NewKey(kAlice, kEnctypeAes128Gcm);
  Enrolled(used);
  const PlainKey fresh = Again(used);
  const PerParty<KeyRecord> records = ShareKey(fresh, realm_.random());
  const PerParty<KeyRecord> others = ShareKey(fresh, realm_.random());
  for (int p = 0; p < kParties; ++p) {
    const KeyRecord& record = p == 1 ? others[p] : records[p];
    ASSERT_TRUE(realm_.store(p).Stage(txn_, {&record, 1}, absl::Now()).ok());
  }
  ExpectAllFail(Compare({fresh.info.handle}, {used.info.handle}), "differs from both others'");
  ExpectNobodyAccused();
  EXPECT_VERDICT(realm_.Run(realm_.Login(realm_.alice)), Verdict::kOk);
}

// A transaction that one has not, or has committed, or that is asked of in another way.
TEST_F(CompareTest, WithoutTheStagedKeysThereIsNoAnswer) {
  const PlainKey used = NewKey(kAlice, kEnctypeAes128Gcm);
  Enrolled(used);
  const Handle staged = Staged(Again(used));
  ASSERT_TRUE(realm_.store(2).Abort(txn_).ok());
  ExpectAllFail(Compare({staged}, {used.info.handle}), "");
  ExpectNobodyAccused();
}

TEST_F(CompareTest, OneServerDownIsAnOutageOfTheOthers) {
  const PlainKey used = NewKey(kAlice, kEnctypeAes128Gcm);
  Enrolled(used);
  const Handle staged = Staged(Again(used));
  realm_.Stop(2);
  const CompareRequest request{{9}, txn_, {staged}, {used.info.handle}};
  int told = 0;
  absl::Mutex mu;
  for (const int p : {0, 1}) {
    realm_.engine(p).CompareKeys(request, [&](const auto& answer) {
      EXPECT_TRUE(absl::IsUnavailable(answer.status())) << answer.status();
      const absl::MutexLock lock(&mu);
      ++told;
    });
  }
  EXPECT_TRUE(Eventually(
      [&] {
        const absl::MutexLock lock(&mu);
        return told == 2;
      },
      limits::kCompareTimeout + absl::Seconds(10)));
}

TEST_F(CompareTest, TooManyAreRefused) {
  const std::vector<Handle> many(limits::kMaxComparedKeys + 1);
  const std::vector<Handle> staged(limits::kMaxStagedCompared + 1);
  for (const auto& answer : Compare({Handle{1}}, many)) {
    EXPECT_TRUE(absl::IsInvalidArgument(answer.status()));
  }
  for (const auto& answer : Compare(staged, {Handle{1}})) {
    EXPECT_TRUE(absl::IsInvalidArgument(answer.status()));
  }
}

// A server that alters one bit of what it sends about the keys: one of the two others at least says
// nothing, which ends the change of the password, and one of the three says that somebody lied. No
// answer is flipped.
class LyingServerTest : public CompareTest, public ::testing::WithParamInterface<int> {
 protected:
  LyingServerTest() {
    realm_.hub().SetInterceptor([this](MemoryRing::Intercepted& message) { See(message); });
    realm_.RestartAll();
  }
  ~LyingServerTest() override { realm_.StopAll(); }  // which calls See()

  void See(MemoryRing::Intercepted& message) {
    const absl::MutexLock lock(&mu_);
    if (message.from != GetParam() || message.type != FrameType::kRound) return;
    longest_[message.step] = std::max(longest_[message.step], message.payload.size());
    if (step_ != message.step || message.payload.size() <= byte_) return;
    message.payload[byte_] ^= 1;
    step_.clear();
  }
  // The next message of this step.
  void Arm(const std::string& step, size_t byte) {
    const absl::MutexLock lock(&mu_);
    step_ = step;
    byte_ = byte;
  }
  bool Lied() {
    const absl::MutexLock lock(&mu_);
    return std::exchange(step_, "").empty();
  }
  std::map<std::string, size_t> Longest() {
    const absl::MutexLock lock(&mu_);
    return longest_;
  }
  // By one of the two others, or by the liar, whose program is an honest one but for what it sends:
  // where it gave two stories it may be the first to see that the others' differ, and hang up.
  bool Accused() {
    int accusations = 0;
    for (int p = 0; p < kParties; ++p) {
      const auto seen = realm_.engine(p).Status().quarantine;
      if (!seen.has_value()) continue;
      ++accusations;
      if (p != GetParam()) {
        EXPECT_TRUE(seen->suspects.Has(GetParam())) << seen->text;
      }
    }
    return accusations > 0;
  }
  void GoOn() {
    ASSERT_TRUE(Eventually([&] {
      for (int p = 0; p < kParties; ++p) {
        if (realm_.engine(p).Status().quarantine.has_value()) (void)realm_.engine(p).Readmit();
      }
      return realm_.WaitConnected(absl::Milliseconds(100));
    }));
  }

 private:
  absl::Mutex mu_;
  std::map<std::string, size_t> longest_ ABSL_GUARDED_BY(mu_);
  std::string step_ ABSL_GUARDED_BY(mu_);
  size_t byte_ ABSL_GUARDED_BY(mu_) = 0;
};

TEST_P(LyingServerTest, FlipsNoAnswer) {
  const PlainKey used = NewKey(kAlice, kEnctypeAes256Gcm),
                 other = NewKey(kAlice, kEnctypeAes256Gcm);
  Enrolled(used);
  Enrolled(other);
  const Handle staged = Staged(Again(used));
  const std::vector<Handle> old = {used.info.handle, other.info.handle};
  ASSERT_TRUE(realm_.WaitConnected());
  EXPECT_EQ(Agreed(Compare({staged}, old)), (std::vector<Comparison>{kEqual, kDifferent}));
  int lies = 0;
  for (const auto& [step, longest] : Longest()) {
    for (size_t byte = 0; byte < longest; byte += std::max<size_t>(1, longest / 4)) {
      SCOPED_TRACE(absl::StrCat(step, " byte ", byte));
      Arm(step, byte);
      const Answers answers = Compare({staged}, old);
      if (!Lied()) continue;
      ++lies;
      // Of a lie in the opening only one of them hears: the other has the right answer already.
      int told = 0;
      for (const int p : {NextParty(GetParam()), PrevParty(GetParam())}) {
        if (!answers[p].ok()) continue;
        ++told;
        EXPECT_EQ((*answers[p])[0].comparison, kEqual);
        EXPECT_EQ((*answers[p])[1].comparison, kDifferent);
      }
      EXPECT_LE(told, 1);
      // The session's end comes after the answers.
      EXPECT_TRUE(Eventually([&] { return Accused(); }, absl::Seconds(5)));
      GoOn();
    }
  }
  std::printf("P%d lied %d times\n", GetParam(), lies);
  EXPECT_GE(lies, 8);
  EXPECT_EQ(Agreed(Compare({staged}, old)), (std::vector<Comparison>{kEqual, kDifferent}));
}

INSTANTIATE_TEST_SUITE_P(Servers, LyingServerTest, ::testing::Range(0, kParties));

}  // namespace
}  // namespace mpckdc
