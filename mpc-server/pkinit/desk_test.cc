// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/pkinit/desk.h"

#include <atomic>
#include <string>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/testing/folder.h"
#include "mpc-server/testing/pkinit.h"
#include "mpc-server/testing/slow_keys.h"

namespace mpckdc {
namespace {

using ::testing::HasSubstr;

class DeskTest : public ::testing::Test {
 protected:
  DeskTest() {
    WriteFileForTest(folder_.File("anchors.pem"), authority_.pem());
    options_.anchors = folder_.File("anchors.pem");
  }
  static CertificateFinding Ask(CertificateDesk& desk, const CertificateProof& proof,
                                absl::Time deadline = absl::InfiniteFuture(),
                                const std::string& kdc = "kdc") {
    CertificateFinding found;
    absl::BlockingCounter done(1);
    desk.Verify(kdc, proof, deadline, [&](CertificateFinding finding) {
      found = std::move(finding);
      done.DecrementCount();
    });
    done.Wait();
    return found;
  }

  TestFolder folder_;
  ClientAuthority authority_;
  PkinitOptions options_;
};

TEST_F(DeskTest, Verifies) {
  CertificateDesk desk(options_, &SystemClock());
  ASSERT_TRUE(desk.Load().ok());
  const CertificateProof proof = SignLogin(authority_.Issue());
  EXPECT_EQ(Ask(desk, proof).client, "alice@EXAMPLE.COM");
  EXPECT_EQ(Ask(desk, proof, absl::Now() - absl::Seconds(1)).judgement.verdict,
            Verdict::kDeadline);
  EXPECT_EQ(desk.counts().verified, 1u);
  EXPECT_EQ(desk.counts().refused, 1u);
}

TEST_F(DeskTest, WithoutAnchorsNobodyIsBelieved) {
  CertificateDesk desk({}, &SystemClock());
  ASSERT_TRUE(desk.Load().ok());
  const CertificateFinding finding = Ask(desk, SignLogin(authority_.Issue()));
  EXPECT_EQ(finding.judgement.verdict, Verdict::kRefused);
  EXPECT_THAT(finding.judgement.detail, HasSubstr("[pkinit] anchors"));
}

TEST_F(DeskTest, NewFilesCountFromTheNextOn) {
  CertificateDesk desk(options_, &SystemClock());
  ASSERT_TRUE(desk.Load().ok());
  const ClientAuthority other("others");
  const CertificateProof proof = SignLogin(other.Issue());
  EXPECT_FALSE(Ask(desk, proof).judgement.ok());
  WriteFileForTest(options_.anchors, other.pem());
  ASSERT_TRUE(desk.Load().ok());
  EXPECT_TRUE(Ask(desk, proof).judgement.ok());
  WriteFileForTest(options_.anchors, "damaged");
  EXPECT_FALSE(desk.Load().ok());
  EXPECT_TRUE(Ask(desk, proof).judgement.ok());
}

// One KDC's flood: its own line is full, another KDC's login has its turn next.
TEST_F(DeskTest, AFloodKeepsOnlyItsSenderWaiting) {
  absl::Mutex mutex;
  size_t answered = 0, over = 0;
  CertificateDesk desk(options_, &SystemClock());
  ASSERT_TRUE(desk.Load().ok());
  const CertificateProof proof = SignLogin(authority_.Issue());
  for (size_t i = 0; i < limits::kMaxProofsWaiting + 2000; ++i) {
    desk.Verify("flood", proof, absl::InfiniteFuture(), [&](CertificateFinding finding) {
      const absl::MutexLock lock(&mutex);
      ++answered;
      over += finding.judgement.verdict == Verdict::kQuota ? 1 : 0;
    });
  }
  EXPECT_TRUE(Ask(desk, proof).judgement.ok());
  const absl::MutexLock lock(&mutex);
  EXPECT_GT(over, 0u);
  EXPECT_LT(answered, limits::kMaxProofsWaiting);  // most of them still wait
}

// As large as they may be: the server has a copy of each.
TEST_F(DeskTest, ALineHoldsSoManyBytes) {
  absl::Notification go_on;
  std::atomic<size_t> over = 0;
  absl::BlockingCounter answered(static_cast<int>(limits::kMaxProofsWaiting));
  CertificateDesk desk(options_, &SystemClock());
  ASSERT_TRUE(desk.Load().ok());
  const CertificateProof large = {std::string(limits::kMaxProofBytes, 'x'),
                                  std::string(limits::kMaxProofBytes, 'y')};
  desk.Verify("first", large, absl::InfiniteFuture(),
              [&](const CertificateFinding&) { go_on.WaitForNotification(); });
  for (size_t i = 0; i < limits::kMaxProofsWaiting; ++i) {
    desk.Verify("flood", large, absl::InfiniteFuture(), [&](const CertificateFinding& finding) {
      over += finding.judgement.verdict == Verdict::kQuota ? 1 : 0;
      answered.DecrementCount();
    });
  }
  EXPECT_EQ(limits::kMaxProofsWaiting - over, 512u);
  go_on.Notify();
  answered.Wait();
  const CertificateProof good = SignLogin(authority_.Issue());
  EXPECT_TRUE(Ask(desk, good, absl::InfiniteFuture(), "flood").judgement.ok());
}

// Nobody vouches for these certificates: to decode their keys would take OpenSSL 20 s.
TEST_F(DeskTest, KeysThatTakeLongToDecodeKeepNobodyWaiting) {
  CertificateDesk desk(options_, &SystemClock());
  ASSERT_TRUE(desk.Load().ok());
  const std::vector<std::string> slow(8, CertificateOfKey(KeyOfItsOwnCurve()));
  const CertificateProof good = SignLogin(authority_.Issue());
  const absl::Time begin = absl::Now();
  desk.Verify("flood", {PaPkAsReq(CmsWith(slow)), good.request_body}, absl::InfiniteFuture(),
              [](const CertificateFinding&) {});
  EXPECT_TRUE(Ask(desk, good).judgement.ok());
  EXPECT_LT(absl::Now() - begin, absl::Seconds(2));
}

TEST_F(DeskTest, WhatIsLeftIsAnsweredAtTheEnd) {
  std::vector<Verdict> verdicts;
  {
    CertificateDesk desk(options_, &SystemClock());
    ASSERT_TRUE(desk.Load().ok());
    const CertificateProof proof = SignLogin(authority_.Issue());
    for (int i = 0; i < 300; ++i) {
      desk.Verify("kdc", proof, absl::InfiniteFuture(), [&](const CertificateFinding& finding) {
        verdicts.push_back(finding.judgement.verdict);  // the thread's, then this one's
      });
    }
  }
  ASSERT_EQ(verdicts.size(), 300u);
  EXPECT_EQ(verdicts.back(), Verdict::kUnavailable);
}

}  // namespace
}  // namespace mpckdc
