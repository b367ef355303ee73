// SPDX-License-Identifier: Apache-2.0
//
// What three engines answer to logins by certificate: who asks for which ticket, replays, clocks,
// gates, and servers that find different things.
#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "mpc-server/pkinit/desk.h"
#include "mpc-server/testing/folder.h"
#include "mpc-server/testing/jobs.h"
#include "mpc-server/testing/pkinit.h"

namespace mpckdc {
namespace {

// Verifies after a while, as a server does that is busy.
class SlowVerifier : public CertificateVerifier {
 public:
  SlowVerifier(CertificateVerifier* behind, absl::Duration delay)
      : behind_(behind), delay_(delay) {}
  ~SlowVerifier() override { Join(); }
  int asked() const { return asked_; }
  void Join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  void Verify(const std::string& kdc, const CertificateProof& proof, absl::Time deadline,
              Done done) override {
    ++asked_;
    threads_.emplace_back([=, this, done = std::move(done)]() mutable {
      absl::SleepFor(delay_);
      behind_->Verify(kdc, proof, deadline, std::move(done));
    });
  }

 private:
  CertificateVerifier* const behind_;
  const absl::Duration delay_;
  std::atomic<int> asked_{0};
  std::vector<std::thread> threads_;
};

class CertificateLoginTest : public ::testing::Test {
 protected:
  CertificateLoginTest()
      : carol_(realm_.AddKey("carol@EXAMPLE.COM", KeyClass::kUser, kEnctypeAes128Gcm,
                             Gate::kPkinit)),
        dave_(realm_.AddKey("dave@EXAMPLE.COM", KeyClass::kUser, kEnctypeAes128Gcm,
                            Gate::kPkinit)),
        erin_(realm_.AddKey("erin@EXAMPLE.COM", KeyClass::kUser, kEnctypeAes128Gcm,
                            Gate::kTimestampOrPkinit)) {
    WriteFileForTest(folder_.File("anchors.pem"), authority_.pem());
    PkinitOptions options;
    options.anchors = folder_.File("anchors.pem");
    for (int party = 0; party < kParties; ++party) {
      desks_[party] = std::make_unique<CertificateDesk>(options, &SystemClock());
      EXPECT_TRUE(desks_[party]->Load().ok());
    }
    UseDesks();
  }
  ~CertificateLoginTest() override {
    for (auto& desk : desks_) desk->Stop();
    realm_.StopAll();
  }

  void UseDesks() {
    for (int party = 0; party < kParties; ++party) {
      realm_.SetCertificates(party, desks_[party].get());
    }
    realm_.RestartAll();
  }
  ClientCert CertificateOf(const std::string& name) const {
    return authority_.Issue({.sans = {PkinitSan("EXAMPLE.COM", {name})}});
  }
  CertificateProof Sign(const std::string& name, absl::Duration off = absl::ZeroDuration()) const {
    return SignLogin(CertificateOf(name), {.client = {name}, .time = absl::Now() + off});
  }
  Job Login(const PlainKey& key, const CertificateProof& proof) {
    Job job = realm_.NewJob(Operation::kLogin);
    job.client = key.info.handle;
    job.seals.push_back({realm_.tgt.info.handle, kUsageTicket, 100});
    job.certificate = proof;
    return job;
  }
  JobResult Run(const PlainKey& key, const CertificateProof& proof) {
    return realm_.Run(Login(key, proof));
  }

  TestFolder folder_;
  ClientAuthority authority_;
  std::array<std::unique_ptr<CertificateDesk>, kParties> desks_;
  Realm realm_;
  const PlainKey carol_, dave_, erin_;
};

TEST_F(CertificateLoginTest, ATicketForWhomTheCertificateNames) {
  const JobResult result = Run(carol_, Sign("carol"));
  ASSERT_VERDICT_OK(result);
  const auto header = DecodeTicketHeader(std::get<GcmSealResult>(result.seals[0]).header);
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(header->principal, PrincipalIdOf("carol@EXAMPLE.COM"));
  EXPECT_EQ(OracleOpen(realm_.tgt, kUsageTicket, realm_.FinishSeal(result, 0, "ticket")),
            "ticket");
  EXPECT_VERDICT(Run(carol_, Sign("carol")), Verdict::kOk);
}

TEST_F(CertificateLoginTest, NobodyElsesTicket) {
  ExpectRefused(Run(dave_, Sign("carol")), Verdict::kRefused,
                "signed a request of carol@EXAMPLE.COM, not of dave@EXAMPLE.COM");
  // A certificate of dave's under a request in carol's name.
  ExpectRefused(Run(carol_, SignLogin(CertificateOf("dave"), {.client = {"carol"}})),
                Verdict::kRefused, "it is for dave@EXAMPLE.COM");
  CertificateProof other_body = Sign("carol");
  other_body.request_body = Sign("dave").request_body;
  ExpectRefused(Run(dave_, other_body), Verdict::kRefused, "not about this request");
  ExpectRefused(Run(carol_, SignLogin(CertificateOf("carol"),
                                      {.client = {"carol"}, .realm = "EXAMPLE.ORG"})),
                Verdict::kRefused, "EXAMPLE.ORG");
}

TEST_F(CertificateLoginTest, NoTicketForAnotherService) {
  Job job = Login(carol_, Sign("carol"));
  job.seals[0].handle = realm_.kadmin.info.handle;
  ExpectRefused(realm_.Run(job), Verdict::kRefused,
                "not for a ticket for kadmin/admin@EXAMPLE.COM");
  job = Login(carol_, SignLogin(CertificateOf("carol"),
                                {.client = {"carol"}, .server = {"kadmin", "admin"}}));
  job.seals[0].handle = realm_.kadmin.info.handle;
  EXPECT_VERDICT(realm_.Run(job), Verdict::kOk);
}

TEST_F(CertificateLoginTest, TheGrantIsForTheSameService) {
  const JobResult login = Run(carol_, Sign("carol"));
  ASSERT_VERDICT_OK(login);
  ExpectRefused(realm_.Run(realm_.Granted(login.id, carol_,
                                          {realm_.kadmin.info.handle, kUsageTicket, 100})),
                Verdict::kRefused, "a ticket under another key");
  const SealPart again = {realm_.tgt.info.handle, kUsageTicket, 100};
  EXPECT_VERDICT(realm_.Run(realm_.Granted(login.id, carol_, again)), Verdict::kOk);
  ExpectRefused(realm_.Run(realm_.Granted(login.id, carol_, again)), Verdict::kRefused, "used up");
}

TEST_F(CertificateLoginTest, AReplayIsOneAcrossKdcsRestartsAndKeys) {
  const PlainKey second = realm_.AddKey("carol@EXAMPLE.COM", KeyClass::kUser, kEnctypeAes256Gcm,
                                        Gate::kPkinit);
  const CertificateProof proof = Sign("carol");
  ASSERT_VERDICT_OK(Run(carol_, proof));
  realm_.kdc().name = "another";
  ExpectRefused(Run(carol_, proof), Verdict::kReplay, "from another KDC");
  ExpectRefused(Run(second, proof), Verdict::kReplay, "from another KDC");
  realm_.RestartAll();
  ExpectRefused(Run(carol_, proof), Verdict::kReplay, "from another KDC");
  ExpectRefused(Run(second, proof), Verdict::kReplay, "from another KDC");
}

// As a pre-authentication is: doc/jobs.md, "Presented again".
TEST_F(CertificateLoginTest, WhatWasLostIsJudgedAgainOnce) {
  const CertificateProof proof = Sign("carol");
  ASSERT_VERDICT_OK(Run(carol_, proof));
  realm_.kdc().session[0] ^= 1;
  ASSERT_VERDICT_OK(Run(carol_, proof));
  ExpectRefused(Run(carol_, proof), Verdict::kReplay, "used up");
}

TEST_F(CertificateLoginTest, TimesOutsideTheWindow) {
  for (const int minutes : {-6, 6, 4, -4}) {
    EXPECT_VERDICT(Run(carol_, Sign("carol", absl::Minutes(minutes))),
                   std::abs(minutes) == 4 ? Verdict::kOk : Verdict::kClockSkew);
  }
  // Yesterday's, which nobody remembers.
  EXPECT_VERDICT(Run(carol_, Sign("carol", -absl::Hours(24))), Verdict::kClockSkew);
}

TEST_F(CertificateLoginTest, EachGateTakesWhatItSays) {
  ExpectRefused(Run(realm_.alice, Sign("alice")), Verdict::kRefused,
                "gate of alice@EXAMPLE.COM is timestamp and the job has no pre-auth");
  ExpectRefused(realm_.Run(realm_.Login(carol_)), Verdict::kRefused,
                "gate of carol@EXAMPLE.COM is pkinit and the job has no certificate");
  ExpectRefused(realm_.Run(realm_.OpenPreauth(carol_, realm_.Preauth(carol_))), Verdict::kRefused,
                "is pkinit");
  ExpectRefused(Run(carol_, {}), Verdict::kRefused, "is pkinit");
  ExpectRefused(Run(erin_, {}), Verdict::kRefused, "no pre-auth to open and no certificate");
  EXPECT_VERDICT(Run(erin_, Sign("erin")), Verdict::kOk);
  EXPECT_VERDICT(realm_.Run(realm_.Login(erin_)), Verdict::kOk);
  EXPECT_VERDICT(realm_.Run(realm_.Login(erin_, realm_.AlteredPreauth(erin_))), Verdict::kBadTag);
  // Where the KDC's word is enough the servers have nothing to say about its proof.
  EXPECT_VERDICT(Run(realm_.otp, {"garbage", "garbage"}), Verdict::kOk);
}

TEST_F(CertificateLoginTest, AProofGoesWithALoginThatSealsATicket) {
  const CertificateProof proof = Sign("erin");
  Job with_open = realm_.Login(erin_);
  with_open.certificate = proof;
  Job open = realm_.OpenPreauth(erin_, realm_.Preauth(erin_));
  open.certificate = proof;
  Job reply = Login(erin_, proof);
  reply.seals[0] = {erin_.info.handle, kUsageAsReply, 100};
  Job granted = realm_.Granted(1, erin_, {realm_.tgt.info.handle, kUsageTicket, 100});
  granted.certificate = proof;
  for (const Job& job : {with_open, open, reply, granted}) {
    Job next = job;
    next.id = realm_.NextId();
    ExpectRefused(realm_.Run(next), Verdict::kMalformed, "a proof by certificate goes with");
  }
  CertificateProof large = proof;
  large.request_body.resize(limits::kMaxProofBytes + 1);
  ExpectRefused(Run(erin_, large), Verdict::kMalformed, "at most 32768");
}

// Whatever two of them believe.
TEST_F(CertificateLoginTest, WhatOneServerDoesNotBelieveNoneAnswers) {
  const ClientAuthority other("others");
  WriteFileForTest(folder_.File("other.pem"), other.pem());
  PkinitOptions options;
  options.anchors = folder_.File("other.pem");
  for (int party = 0; party < kParties; ++party) {
    CertificateDesk unlike(options, &SystemClock());
    ASSERT_TRUE(unlike.Load().ok());
    UseDesks();
    realm_.Stop(party);
    realm_.SetCertificates(party, &unlike);
    realm_.Start(party);
    ASSERT_TRUE(realm_.WaitConnected());
    for (const JobResult& answer : realm_.RunEach(Login(carol_, Sign("carol")))) {
      EXPECT_VERDICT(answer, Verdict::kRefused);
    }
    unlike.Stop();
    realm_.StopAll();
  }
  UseDesks();
}

TEST_F(CertificateLoginTest, WithoutAVerifierNobodyIsBelieved) {
  realm_.SetCertificates(2, nullptr);
  realm_.RestartAll();
  ExpectRefused(Run(carol_, Sign("carol")), Verdict::kRefused, "");
  EXPECT_VERDICT(realm_.Run(realm_.Login(erin_)), Verdict::kOk);
}

// A server that has not looked yet has not got the job yet: the leader proposes it again, and what
// came meanwhile does not wait.
TEST_F(CertificateLoginTest, ABusyServerIsWaitedForAndKeepsNobodyWaiting) {
  for (int party = 0; party < kParties; ++party) {
    SlowVerifier slow(desks_[party].get(), absl::Milliseconds(800));
    UseDesks();
    realm_.Stop(party);
    realm_.SetCertificates(party, &slow);
    realm_.Start(party);
    ASSERT_TRUE(realm_.WaitConnected());
    JobResult by_certificate;
    std::atomic<bool> answered{false};
    Job job = Login(carol_, Sign("carol"));
    job.deadline_ms = 10000;
    std::thread waits([&] {
      by_certificate = realm_.Run(job);
      answered = true;
    });
    ASSERT_TRUE(Eventually([&] { return slow.asked() > 0; }));
    absl::SleepFor(absl::Milliseconds(50));  // the other servers have got it too
    EXPECT_VERDICT(realm_.Run(realm_.Login(realm_.bob)), Verdict::kOk);
    EXPECT_FALSE(answered) << "party " << party;
    waits.join();
    EXPECT_VERDICT(by_certificate, Verdict::kOk) << "party " << party;
    slow.Join();
    realm_.StopAll();
  }
  UseDesks();
}

// A KDC that sends garbage without end is refused, and others get in.
TEST_F(CertificateLoginTest, GarbageIsRefusedBeforeAnythingIsComputed) {
  const CertificateProof good = Sign("carol");
  std::vector<Job> jobs;
  for (size_t i = 0; i < 200; ++i) {  // each other byte of a signature is another one
    CertificateProof bad = good;
    bad.pa_pk_as_req[bad.pa_pk_as_req.size() - 1 - i % 50] ^= static_cast<char>(1 + i / 50);
    jobs.push_back(Login(carol_, bad));
  }
  EXPECT_EQ(CountGood(realm_.RunAll(jobs)), 0);
  for (const BatchReport& report : realm_.recorder(0).Batches()) {
    for (const BatchJob& job : report.jobs) EXPECT_FALSE(job.computed);
  }
  EXPECT_VERDICT(Run(carol_, good), Verdict::kOk);
  EXPECT_VERDICT(realm_.Run(realm_.Login(realm_.alice)), Verdict::kOk);
}

}  // namespace
}  // namespace mpckdc
