// SPDX-License-Identifier: Apache-2.0
//
// Without a check: with a control whose defences can be dropped one by one (the mutants
// Garbled*.patch) the deviations that garbled_attack_test.cc tries are not found, and what they
// give.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "mpc-server/testing/control.h"
#include "mpc-server/testing/cts.h"
#include "mpc-server/testing/garbled_attack.h"

namespace mpckdc::garbled_attack {
namespace {

class Without {
 public:
  explicit Without(std::string defence) : defence_(std::move(defence)) { DropForTest(defence_); }
  ~Without() { UpholdForTest(defence_); }
  Without(const Without&) = delete;
  Without& operator=(const Without&) = delete;

 private:
  const std::string defence_;
};

constexpr absl::Duration kShort = absl::Milliseconds(300);

std::string Accusations(GarbledAttack& attack) {
  std::string text;
  for (int p = 0; p < kParties; ++p) {
    if (const auto seen = attack.SeenBy(p)) {
      absl::StrAppend(&text, " P", p, " accuses ", seen->suspects.Text());
    }
  }
  return text.empty() ? " nobody is accused" : text;
}

TEST(ControlTest, WithoutItsCheckNoLieIsFound) {
  for (const Lie& lie : kLies) {
    SCOPED_TRACE(lie.what);
    const Without check(lie.defence);
    GarbledAttack attack(kEnctypeAes256Sha1);
    const End end = attack.Run(attack.OpenPreauth(), &lie);
    EXPECT_EQ(end.told, 1u);
    EXPECT_FALSE(attack.Found(lie, end.batch, kShort));
    std::printf("without %s, %s of P%d: %s,%s\n", lie.defence, lie.what,
                PartyOf(lie.liar, end.batch),
                std::string(VerdictName(end.combined.judgement.verdict)).c_str(),
                Accusations(attack).c_str());
  }
}

// Shares that are not those that the other holder has: of another record, or of another text.
const Lie kOtherShares[] = {
    {"G1 m", kG1, kE, 0, kE, false, kTables, "GarbledMac"},
    {"G2 m", kG2, kE, 0, kE, false, kTables, "GarbledMac"},
    {"G1 u", kG1, kE, 0, kE, true, kLabel, "GarbledLabelU"},
    {"G2 w", kG2, kE, 0, kE, true, kLabel, "GarbledLabelW"},
    {"G1 u", kG1, kE, 0, kE, true, kLabel, "GarbledOrder"},
    {"G2 w", kG2, kE, 0, kE, true, kLabel, "GarbledOrder"},
};

TEST(ControlTest, OtherSharesAreFound) {
  for (const int32_t enctype : {17, 18, 19, 20}) {
    for (const Lie& lie : kOtherShares) {
      for (const bool seal : {false, true}) {
        SCOPED_TRACE(lie.what);
        GarbledAttack attack(enctype);
        const Without honesty(absl::StrCat("GarbledShares ", lie.what));
        const End end = seal ? attack.Run(attack.SealReply("reply"), nullptr)
                             : attack.Run(attack.OpenPreauth(), nullptr);
        for (const JobResult& answer : end.answers) EXPECT_VERDICT(answer, Verdict::kUnavailable);
        EXPECT_TRUE(attack.Found(lie, end.batch)) << Accusations(attack);
        EXPECT_FALSE(end.result_left);
        attack.ExpectNoHonestServerAccusedAlone(PartyOf(lie.liar, end.batch));
      }
    }
  }
}

// One garbler alters a text, whose HMAC is right then.
TEST(ControlTest, WithoutCommitmentsATextIsAltered) {
  for (const Lie& lie : kOtherShares) {
    SCOPED_TRACE(absl::StrCat(lie.what, " without ", lie.defence));
    GarbledAttack attack(kEnctypeAes256Sha1);
    const Without honesty(absl::StrCat("GarbledShares ", lie.what)), check(lie.defence);
    const End end = attack.Run(attack.SealReply("reply"), nullptr);
    EXPECT_FALSE(attack.Found(lie, end.batch, kShort));
    std::string opened = "nothing";
    if (!end.combined.seals.empty()) {
      opened = OracleOpen(attack.realm().otp, kUsageAsReply, CtsOf(end.combined.seals[0]).share)
                   .value_or("garbage");
    }
    std::printf("without %s, another %s: %s, %s,%s\n", lie.defence, lie.what,
                std::string(VerdictName(end.combined.judgement.verdict)).c_str(),
                absl::CHexEscape(opened).c_str(), Accusations(attack).c_str());
    if (lie.alone) {
      EXPECT_VERDICT(end.combined, Verdict::kOk);
      EXPECT_EQ(opened, "repl\xf9");
    }
  }
}

// A commitment is opened if the bit is the one that it is to: whether E fails tells the bit.
TEST(ControlTest, WithoutTheMacAFailureTellsABit) {
  const Without mac("GarbledMac");
  int taken = 0, refused = 0;
  for (size_t bit = 0; bit < 12; ++bit) {
    const Lie lie = {
        "another commitment", kG1, kE, static_cast<ptrdiff_t>(16 + 64 * bit), kE, false, kTables,
        "GarbledMac"};
    GarbledAttack attack(kEnctypeAes256Sha1);
    const End end = attack.Run(attack.OpenPreauth(), &lie);
    EXPECT_EQ(end.told, 1u);
    ++(end.combined.judgement.ok() ? taken : refused);
  }
  std::printf("of 12 altered commitments to 0 without the MAC: %d taken, %d refused\n", taken,
              refused);
  EXPECT_GT(taken, 0);
  EXPECT_GT(refused, 0);
}

// The evaluator lets a wrong password in: so far as the two others can tell.
TEST(ControlTest, WithoutTheLabelsHashAnyPasswordIsGood) {
  for (const bool dropped : {false, true}) {
    std::optional<Without> check;
    if (dropped) check.emplace("GarbledVerdict");
    GarbledAttack attack(kEnctypeAes256Sha1);
    const std::string time = EncodePreauthTimestamp(LongNow());
    attack.wires().SetAlter([&](Role from, Role, size_t, absl::Span<uint8_t> bytes) {
      if (from != kE) return;
      bytes[0] |= 1;  // good; the time's bits come next
      for (size_t i = 0; i < 8 * time.size(); ++i) {
        const uint8_t bit = static_cast<uint8_t>(time[i / 8]) >> i % 8 & 1;
        uint8_t& byte = bytes[(1 + i) / 8];
        byte = static_cast<uint8_t>((byte & ~(1 << (1 + i) % 8)) | bit << (1 + i) % 8);
      }
    });
    Realm& realm = attack.realm();
    const Job job = GarbledAttack::OpenPreauth(realm, WrongPassword(realm.alice));
    const End end = attack.Run(job, nullptr);
    for (const Role garbler : {kG1, kG2}) {
      EXPECT_VERDICT(end.answers[PartyOf(garbler, end.batch)],
                     dropped ? Verdict::kOk : Verdict::kUnavailable);
    }
  }
}

// The evaluator flips a bit of what the KDC gets, for itself and for G1.
TEST(ControlTest, WithoutTheSumOutputsAreAltered) {
  const auto lie = std::find_if(std::begin(kLies), std::end(kLies), [](const Lie& l) {
    return std::string(l.what) == "other outputs";
  });
  for (const bool dropped : {false, true}) {
    std::optional<Without> check;
    if (dropped) check.emplace("GarbledSum");
    GarbledAttack attack(kEnctypeAes256Sha1);
    const absl::Time when = LongNow();
    Realm& realm = attack.realm();
    End end = attack.Run(GarbledAttack::OpenPreauth(realm, realm.alice, when), &*lie);
    if (!dropped) {
      EXPECT_TRUE(attack.Found(*lie, end.batch));
      continue;
    }
    auto& own = end.answers[PartyOf(kE, end.batch)].opens;
    ASSERT_FALSE(own.empty());
    std::visit([](auto& open) { open.share.back() ^= 1; }, own[0]);
    const JobResult combined = Combine(end.answers);
    ASSERT_VERDICT_OK(combined);
    std::string altered = EncodePreauthTimestamp(when);
    altered.back() ^= 1;
    EXPECT_EQ(CtsOf(combined.opens[0]).share, altered);
  }
}

// Whether the verdict comes out right tells a garbler what its altered label did.
TEST(ControlTest, WithoutTheOrderTheEvaluatorTellsFirst) {
  const auto lie = std::find_if(std::begin(kLies), std::end(kLies), [](const Lie& l) {
    return std::string(l.what) == "no label of w";
  });
  for (const bool dropped : {false, true}) {
    std::optional<Without> check;
    if (dropped) check.emplace("GarbledFirst");
    GarbledAttack attack(kEnctypeAes256Sha1);
    const End end = attack.Run(attack.OpenPreauth(), &*lie);
    EXPECT_EQ(end.result_left, dropped);
  }
}

}  // namespace
}  // namespace mpckdc::garbled_attack
