// SPDX-License-Identifier: Apache-2.0
// By which certificate a client was proved, as the servers are told.
#include <mutex>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kdc-plugin/tests/provider_fixture.h"

namespace mpckdc::test {
namespace {

constexpr krb5_preauthtype kPkinit = 16, kSpake = 151;

class CertificateTest : public ProviderTest {
 protected:
  CertificateTest() {
    // The fake servers verify no certificate.
    user_handle_ = realm_.AddKey("carol@EXAMPLE.COM", user_base_, v1::KEY_CLASS_USER,
                                 v1::GATE_KDC_TRUSTED);
    user_ = Reference(user_handle_);
    realm_.parties[1]->behaviour.received = [this](const v1::Job& job) {
      const std::lock_guard<std::mutex> lock(mutex_);
      told_.push_back(job);
    };
  }
  std::vector<v1::Job> Told() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return told_;
  }

  std::mutex mutex_;
  std::vector<v1::Job> told_;
};

TEST_F(CertificateTest, TheJobThatSealsTheTicketHasIt) {
  HintProved(kPkinit, "signed by alice", "body", 100);
  EXPECT_EQ(Open(Local(tgs_base_), 2, Seal(tgs_, 2, "a ticket")), "a ticket");
  ASSERT_EQ(Told().size(), 1u);
  const v1::Job job = Told()[0];
  EXPECT_EQ(job.operation(), v1::OPERATION_LOGIN);
  EXPECT_EQ(job.client(), user_handle_);
  EXPECT_EQ(job.certificate().pa_pk_as_req(), "signed by alice");
  EXPECT_EQ(job.certificate().request_body(), "body");
  EXPECT_EQ(job.opens_size(), 0);
  EXPECT_EQ(job.seals_size(), 1);
}

TEST_F(CertificateTest, ATicketThatIsLongerThanTheHintSaid) {
  HintProved(kPkinit, "signed by alice", "body", 4);
  EXPECT_EQ(Open(Local(tgs_base_), 2, Seal(tgs_, 2, "a longer ticket")), "a longer ticket");
  ASSERT_EQ(Told().size(), 1u);
  EXPECT_EQ(Told()[0].certificate().pa_pk_as_req(), "signed by alice") << "in a login of its own";
}

TEST_F(CertificateTest, OtherProofsStayWithTheKdc) {
  HintProved(kSpake, "whatever", "body", 100);
  Seal(tgs_, 2, "a ticket");
  EndRequest();
  HintProved(kPkinit, std::string(32769, 'x'), "body", 100);
  Seal(tgs_, 2, "a ticket");
  EndRequest();
  HintAs("", 100, 100);
  Seal(tgs_, 2, "a ticket");
  for (const v1::Job& job : Told()) EXPECT_FALSE(job.has_certificate());
  EXPECT_EQ(Told().size(), 3u);
}

TEST_F(CertificateTest, ItIsOfOneRequest) {
  HintProved(kPkinit, "signed by alice", "body", 100);
  Seal(tgs_, 2, "a ticket");
  EndRequest();
  HintAs("", 100, 100);
  Seal(tgs_, 2, "a ticket");
  EXPECT_FALSE(Told().back().has_certificate());
}

}  // namespace
}  // namespace mpckdc::test
