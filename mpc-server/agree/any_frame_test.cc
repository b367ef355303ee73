// SPDX-License-Identifier: Apache-2.0
//
// Three engines, one of which sends a frame of any bytes: a greeting, a proposal, a vote, a message
// of a garbled batch. Whatever it is, a login is right or does not come, and the realm goes on.
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "mpc-server/testing/cts.h"
#include "mpc-server/testing/jobs.h"
#include "mpc-server/testing/mutations.h"

namespace mpckdc {
namespace {

constexpr FrameType kTypes[] = {FrameType::kHello, FrameType::kAgreement, FrameType::kRound};

class AnyFrameTest : public ::testing::TestWithParam<int> {
 protected:
  AnyFrameTest()
      : realm_(kEnctypeAes128Sha1, Forced(ProtocolSetting::kGarbled)),
        mutations_(static_cast<uint64_t>(liar()) + 1) {
    realm_.hub().SetInterceptor([this](MemoryRing::Intercepted& frame) { See(frame); });
    realm_.RestartAll();
  }
  ~AnyFrameTest() override { realm_.StopAll(); }  // which calls See()

  static int liar() { return GetParam(); }

  void See(MemoryRing::Intercepted& frame) {
    const absl::MutexLock lock(&mu_);
    if (!type_.has_value() || frame.from != liar() || frame.type != *type_) return;
    if (frame.payload.empty() || skip_-- > 0) return;
    if (mutations_.Chance(3)) {
      std::vector<uint8_t> bytes(frame.payload.begin(), frame.payload.end());
      mutations_.AlterLength(bytes);
      frame.instead.emplace(bytes.begin(), bytes.end());
    } else {
      mutations_.Alter(frame.payload);
    }
    ++altered_[std::string(FrameTypeName(*type_))];
    type_.reset();
  }
  // One of the frames that come next.
  void Arm(FrameType type) {
    const absl::MutexLock lock(&mu_);
    type_ = type;
    skip_ = static_cast<int>(mutations_.Below(type == FrameType::kRound ? 6 : 2));
  }
  void Disarm() {
    const absl::MutexLock lock(&mu_);
    type_.reset();
  }

  JobResult OpenPreauth(absl::Time when) {
    Job job = realm_.OpenPreauth(realm_.alice, SealPreauth(realm_.alice, when, realm_.random()));
    job.deadline_ms = 3000;
    return realm_.Run(job);
  }
  void GoOn() {
    ASSERT_TRUE(Eventually([&] {
      for (int p = 0; p < kParties; ++p) {
        if (realm_.engine(p).Status().quarantine.has_value()) (void)realm_.engine(p).Readmit();
      }
      return realm_.WaitConnected(absl::Milliseconds(100)) &&
             OpenPreauth(absl::Now()).judgement.ok();
    }));
  }

  absl::Mutex mu_;
  Realm realm_;
  Mutations mutations_;
  std::optional<FrameType> type_;
  int skip_ = 0;
  std::map<std::string, int> altered_;
};

TEST_P(AnyFrameTest, OfOneServer) {
  int good = 0, none = 0;
  for (size_t i = 0; i < 12 && !HasFailure(); ++i) {
    const FrameType type = kTypes[i % std::size(kTypes)];
    Arm(type);
    if (type == FrameType::kHello) realm_.hub().CloseCurrent();
    const absl::Time when = absl::Now();
    const JobResult result = OpenPreauth(when);
    Disarm();
    if (result.judgement.ok()) {
      EXPECT_EQ(CtsOf(result.opens[0]).share, EncodePreauthTimestamp(when));
      ++good;
    } else {
      const Verdict verdict = result.judgement.verdict;
      EXPECT_TRUE(verdict == Verdict::kUnavailable || verdict == Verdict::kDeadline) << result;
      ++none;
    }
    for (int p = 0; p < kParties; ++p) {
      const auto seen = realm_.engine(p).Status().quarantine;
      if (p != liar() && seen.has_value()) {
        EXPECT_TRUE(seen->suspects.Has(liar())) << seen->text;
      }
    }
    GoOn();
  }
  std::printf("P%d: %d good, %d not;", liar(), good, none);
  for (const auto& [type, count] : altered_) std::printf(" %d of %s", count, type.c_str());
  std::printf("\n");
  for (const FrameType type : kTypes) EXPECT_GT(altered_[std::string(FrameTypeName(type))], 0);
  EXPECT_GT(none, 1);
}

INSTANTIATE_TEST_SUITE_P(Servers, AnyFrameTest, ::testing::Range(0, kParties));

}  // namespace
}  // namespace mpckdc
