// SPDX-License-Identifier: Apache-2.0
//
// Certificates that are renewed while the server runs: when they are taken, and when not.
#include "mpc-server/service/identity_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "mpc-server/testing/certificates.h"
#include "mpc-server/testing/folder.h"

namespace mpckdc {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class StoppedClock : public Clock {
 public:
  absl::Time Now() override { return now_; }
  void SleepUntil(absl::Time when) override { now_ = std::max(now_, when); }

 private:
  absl::Time now_ = absl::Now();
};

class IdentityKeeperTest : public ::testing::Test {
 protected:
  IdentityKeeperTest() {
    config_.realm = "EXAMPLE.COM";
    config_.identity = {folder_.File("p0.pem"), folder_.File("p0.key"), folder_.File("ca.pem"), ""};
    WriteFileForTest(config_.identity.ca, authority_.ca_pem());
    WriteCert(folder_.path(), "p0", Issue(absl::Hours(1)));
  }

  TestCert Issue(absl::Duration ends) const { return Issue(authority_, ends); }
  static TestCert Issue(const TestAuthority& authority, absl::Duration ends) {
    TestCertOptions options;
    options.ends = ends;
    return authority.Issue(options);
  }
  void Open() {
    auto keeper = IdentityKeeper::Open(&config_, &clock_);
    ASSERT_TRUE(keeper.ok()) << keeper.status();
    keeper_ = *std::move(keeper);
  }
  // Looks until the files have settled.
  IdentityKeeper::Found Look() {
    const IdentityKeeper::Found first = keeper_->Tick();
    EXPECT_TRUE(first.status.ok() && !first.renewed) << "at the first look";
    return keeper_->Tick();
  }
  absl::Duration Left() const { return keeper_->State().expires - absl::Now(); }
  absl::Status Trusts(const TestAuthority& authority) const {
    return keeper_->authority()->Verify(authority.IssueRole("admin", "a").der, absl::Now());
  }

  TestFolder folder_;
  TestAuthority authority_;
  Config config_;
  StoppedClock clock_;
  std::unique_ptr<IdentityKeeper> keeper_;
};

TEST_F(IdentityKeeperTest, NothingHappensWhileTheFilesStay) {
  Open();
  EXPECT_NEAR(absl::ToDoubleMinutes(Left()), 60, 1);
  EXPECT_NEAR(absl::ToDoubleHours(keeper_->State().authority_expires - absl::Now()), 48, 1);
  for (int i = 0; i < 3; ++i) {
    const IdentityKeeper::Found found = keeper_->Tick();
    EXPECT_FALSE(found.renewed);
    EXPECT_TRUE(found.status.ok());
  }
  EXPECT_FALSE(keeper_->Read().renewed) << "the same certificate";
}

TEST_F(IdentityKeeperTest, ARenewedOneIsTakenAtTheSecondLook) {
  Open();
  const std::string before = keeper_->State().fingerprint;
  WriteCert(folder_.path(), "p0", Issue(absl::Hours(20)));
  EXPECT_TRUE(Look().renewed);
  EXPECT_NEAR(absl::ToDoubleHours(Left()), 20, 0.1);
  EXPECT_NE(keeper_->State().fingerprint, before);
  EXPECT_FALSE(Look().renewed) << "once";
}

TEST_F(IdentityKeeperTest, HalfARenewalIsNotUsed) {
  Open();
  const TestCert renewed = Issue(absl::Hours(20));
  WriteFileForTest(folder_.File("p0.key"), renewed.key_pem);
  const IdentityKeeper::Found half = Look();
  EXPECT_FALSE(half.renewed);
  EXPECT_THAT(std::string(half.status.message()), HasSubstr("does not belong to the certificate"));
  EXPECT_THAT(keeper_->State().trouble, HasSubstr("does not belong"));
  EXPECT_NEAR(absl::ToDoubleHours(Left()), 1, 0.1);
  EXPECT_TRUE(keeper_->Tick().status.ok()) << "it is said once";
  WriteFileForTest(folder_.File("p0.pem"), renewed.certificate_pem);
  EXPECT_TRUE(Look().renewed);
  EXPECT_EQ(keeper_->State().trouble, "");
}

// The files do not change any more, and yet what is in them becomes good.
TEST_F(IdentityKeeperTest, OneThatIsNotValidYetIsTakenLater) {
  Open();
  TestCertOptions options;
  options.starts = absl::Seconds(90);
  options.ends = absl::Hours(20);
  WriteCert(folder_.path(), "p0", authority_.Issue(options));
  EXPECT_THAT(std::string(Look().status.message()), HasSubstr("not valid before"));
  clock_.Sleep(absl::Seconds(59));
  EXPECT_TRUE(keeper_->Tick().status.ok());
  clock_.Sleep(absl::Seconds(40));
  EXPECT_TRUE(keeper_->Tick().renewed);
}

TEST_F(IdentityKeeperTest, WhatIsWrongIsSaidAndTheOldOneStays) {
  Open();
  const struct {
    TestCert cert;
    const char* text;
  } wrong[] = {{authority_.IssueRole("kdc", "p0"), "expected role peer"},
               {authority_.IssueRole("peer", "p1"), "certificate of peer p1"},
               {Issue(-absl::Minutes(1)), "expired on"},
               {TestAuthority().IssueRole("peer", "p0"), "not trusted"},
               {{"", "", ""}, "no PEM certificate"}};
  for (const auto& w : wrong) {
    WriteCert(folder_.path(), "p0", w.cert);
    EXPECT_THAT(std::string(Look().status.message()), HasSubstr(w.text));
    EXPECT_NEAR(absl::ToDoubleHours(Left()), 1, 0.1);
  }
  fs::remove(folder_.File("p0.pem"));
  EXPECT_FALSE(Look().status.ok());
}

// A renewal goes on while the one before it is taken: the lines get what was judged.
TEST_F(IdentityKeeperTest, TheLinesToPeersReadNothingThatNobodyJudged) {
  Open();
  TlsPeerOptions options;
  options.realm = config_.realm;
  options.listen = "127.0.0.1:0";
  options.peers = {"127.0.0.1:1", "127.0.0.1:1", "127.0.0.1:1"};
  options = keeper_->ForPeers(options);
  const auto lines = TlsPeerConnector::Create(options, clock_);
  ASSERT_TRUE(lines.ok()) << lines.status();
  const TestCert renewed = Issue(absl::Hours(20));
  WriteCert(folder_.path(), "p0", renewed);
  ASSERT_TRUE(Look().renewed);
  WriteFileForTest(folder_.File("p0.key"), Issue(absl::Hours(20)).key_pem);  // another's
  WriteFileForTest(folder_.File("ca.pem"), TestAuthority().ca_pem());
  EXPECT_TRUE((*lines)->Reload().ok());
  EXPECT_EQ(ReadFileForTest(options.certificate_file), renewed.certificate_pem);
  EXPECT_EQ(ReadFileForTest(options.ca_file), authority_.ca_pem());
}

TEST_F(IdentityKeeperTest, AKeyThatOthersMayReadIsNotTaken) {
  Open();
  WriteCert(folder_.path(), "p0", Issue(absl::Hours(20)));
  ASSERT_EQ(chmod(folder_.File("p0.key").c_str(), 0644), 0);
  EXPECT_THAT(std::string(Look().status.message()), HasSubstr("chmod 0600"));
}

// An authority takes over from another: first both are trusted, then certificates change, then the
// old one goes.
TEST_F(IdentityKeeperTest, AuthoritiesOverlap) {
  Open();
  const TestAuthority next;
  EXPECT_FALSE(Trusts(next).ok());
  WriteFileForTest(folder_.File("ca.pem"), authority_.ca_pem() + next.ca_pem());
  EXPECT_TRUE(Look().renewed);
  EXPECT_TRUE(Trusts(next).ok());
  EXPECT_TRUE(Trusts(authority_).ok());
  WriteCert(folder_.path(), "p0", Issue(next, absl::Hours(3)));
  EXPECT_TRUE(Look().renewed);
  WriteFileForTest(folder_.File("ca.pem"), next.ca_pem());
  EXPECT_TRUE(Look().renewed);
  EXPECT_TRUE(Trusts(next).ok());
  EXPECT_FALSE(Trusts(authority_).ok());
}

TEST_F(IdentityKeeperTest, AnAuthorityThatWouldNotVouchForUsIsNotTaken) {
  Open();
  WriteFileForTest(folder_.File("ca.pem"), TestAuthority().ca_pem());
  EXPECT_THAT(std::string(Look().status.message()), HasSubstr("not trusted"));
  EXPECT_TRUE(Trusts(authority_).ok());
  WriteFileForTest(folder_.File("ca.pem"),
                   authority_.ca_pem() + TestAuthority().ca_pem().substr(0, 200));
  EXPECT_THAT(std::string(Look().status.message()), HasSubstr("certificate 2 in it is damaged"));
}

// cert-manager's secret as Kubernetes mounts it: tls.crt -> ..data/tls.crt, ..data -> ..1, which
// turns to ..2 in one step.
TEST_F(IdentityKeeperTest, AMountedSecret) {
  const fs::path secret = folder_.File("secret");
  const auto publish = [&](const char* version, const TestCert& cert) {
    fs::create_directories(secret / version);
    WriteFileForTest(secret / version / "tls.crt", cert.certificate_pem);
    WriteFileForTest(secret / version / "tls.key", cert.key_pem);
    WriteFileForTest(secret / version / "ca.crt", authority_.ca_pem());
    chmod((secret / version / "tls.key").c_str(), 0440);  // defaultMode 0440, group fsGroup
    fs::create_symlink(version, secret / "..new");
    fs::rename(secret / "..new", secret / "..data");
  };
  publish("..1", Issue(absl::Hours(1)));
  for (const char* name : {"tls.crt", "tls.key", "ca.crt"}) {
    fs::create_symlink(fs::path("..data") / name, secret / name);
  }
  config_.identity = {secret / "tls.crt", secret / "tls.key", secret / "ca.crt", ""};
  Open();
  publish("..2", Issue(absl::Hours(9)));
  fs::remove_all(secret / "..1");
  EXPECT_TRUE(Look().renewed);
  EXPECT_NEAR(absl::ToDoubleHours(Left()), 9, 0.1);
}

}  // namespace
}  // namespace mpckdc
