// SPDX-License-Identifier: Apache-2.0
// By which name logs speak of a request, and as what its end is counted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "kdc-plugin/tests/provider_fixture.h"

extern "C" {
#include "kdc-plugin/provider/errors.h"
#include "kdc-plugin/provider/results.h"
}

namespace mpckdc::test {
namespace {

using ::testing::HasSubstr;

class RequestTest : public ProviderTest {
 protected:
  RequestTest() {
    for (auto& party : realm_.parties) {
      party->behaviour.received = [this](const v1::Job& job) {
        const std::lock_guard<std::mutex> lock(mutex_);
        told_.insert(job.request());
      };
    }
  }
  // The one number that the servers were told since the last call.
  uint64_t Told() {
    const std::lock_guard<std::mutex> lock(mutex_);
    EXPECT_EQ(told_.size(), 1u);
    const std::set<uint64_t> told = std::exchange(told_, {});
    return told.empty() ? 0 : *told.begin();
  }
  std::string Label(krb5_msgtype type = KRB5_AS_REQ, krb5_error_code code = 0) {
    const char* const label = krb5_c_remote_key_request_result(context_, type, code);
    return label == nullptr ? "" : label;
  }
  static std::string NameOf(uint64_t id) { return absl::StrFormat("request %016x", id); }

  std::mutex mutex_;
  std::set<uint64_t> told_;
};

TEST_F(RequestTest, IsNamedAlikeToTheServersAndInTheLog) {
  EXPECT_EQ(Label(), "") << "of which the servers know nothing";
  Open(tgs_, 2, Seal(Local(tgs_base_), 2, "a ticket"));
  Open(tgs_, 2, Seal(Local(tgs_base_), 2, "another of the same request"));
  Checksum(tgs_, 17, "likewise");
  const uint64_t first = Told();
  EXPECT_NE(first, 0u);
  EXPECT_EQ(Label(KRB5_TGS_REQ), NameOf(first));
  EndRequest();
  EXPECT_EQ(Label(), "");
  const std::string preauth = Preauth();
  HintAs(preauth, 100, 100);
  Open(user_, 1, preauth);
  const uint64_t second = Told();
  EXPECT_NE(second, first);
  EXPECT_EQ(Label(), NameOf(second));
}

TEST_F(RequestTest, IsNamedInLinesAboutItsTroubles) {
  realm_.parties[1]->Stop();
  std::string plain;
  EXPECT_EQ(Decrypt(tgs_, 2, Seal(Local(tgs_base_), 2, "a ticket"), &plain),
            KRB5KDC_ERR_SVC_UNAVAILABLE);
  EXPECT_THAT(Logged(), HasSubstr("remote keys: " + Label() + ": "));
}

// A stranger who guesses, or sends a request again, brings these about: no administrator is to be woken.
TEST_F(RequestTest, WhatClientsCanBringAboutIsNoOutage) {
  const std::map<v1::Verdict, kdc_result> results = {
      {v1::VERDICT_QUOTA, KDC_OVER_QUOTA},     {v1::VERDICT_REPLAY, KDC_REPLAY},
      {v1::VERDICT_UNPROVED, KDC_TRY_STREAM},  {v1::VERDICT_UNAVAILABLE, KDC_UNAVAILABLE},
      {v1::VERDICT_DEADLINE, KDC_UNAVAILABLE}, {v1::VERDICT_UNKNOWN_HANDLE, KDC_UNAVAILABLE}};
  std::string plain;
  for (const auto& [verdict, result] : results) {
    realm_.Answer(verdict);
    const krb5_error_code code = Decrypt(user_, 1, Preauth("t"), &plain);
    EXPECT_EQ(code, KRB5KDC_ERR_SVC_UNAVAILABLE);
    EXPECT_EQ(result_of(request_current(0), KRB5_AS_REQ, code), result)
        << v1::Verdict_Name(verdict);
    EndRequest();
  }
  realm_.Answer(v1::VERDICT_QUOTA);
  krb5_boolean valid = TRUE;
  const std::string data = "a PAC", sum(28, 's');
  const krb5_data input = View(data);
  const krb5_checksum checksum = {KV5M_CHECKSUM, -24002, static_cast<unsigned>(sum.size()),
                                  reinterpret_cast<krb5_octet*>(const_cast<char*>(sum.data()))};
  EXPECT_EQ(krb5_c_verify_checksum(context_, &tgs_, 17, &input, &checksum, &valid),
            KRB5KDC_ERR_SVC_UNAVAILABLE);
  EXPECT_EQ(result_of(request_current(0), KRB5_TGS_REQ, KRB5KDC_ERR_SVC_UNAVAILABLE),
            KDC_OVER_QUOTA);
}

TEST_F(RequestTest, WhatClientsBringAboutHidesNoTrouble) {
  std::string plain;
  for (const v1::Verdict verdict : {v1::VERDICT_QUOTA, v1::VERDICT_UNPROVED, v1::VERDICT_REFUSED}) {
    realm_.Answer(verdict);
    for (int i = 0; i < 2 * LOG_LINES_PER_PERIOD; ++i) {
      EXPECT_NE(Decrypt(user_, 1, Preauth("t"), &plain), 0);
      EndRequest();
    }
  }
  realm_.Answer(v1::VERDICT_UNKNOWN_HANDLE);
  EXPECT_EQ(Decrypt(user_, 1, Preauth("t"), &plain), KRB5KDC_ERR_SVC_UNAVAILABLE);
  EXPECT_THAT(Logged(), HasSubstr("run mpc-admin doctor"));
}

TEST(ResultTest, IsWhatAnAdministratorWouldCallIt) {
  request r = {};
  const auto as = [&r](krb5_error_code code) { return result_of(&r, KRB5_AS_REQ, code); };
  const auto tgs = [&r](krb5_error_code code) { return result_of(&r, KRB5_TGS_REQ, code); };
  EXPECT_EQ(as(0), KDC_OK);
  EXPECT_EQ(as(KRB5KDC_ERR_PREAUTH_REQUIRED), KDC_PREAUTH_REQUIRED);
  EXPECT_EQ(as(KRB5KDC_ERR_PREAUTH_FAILED), KDC_WRONG_PASSWORD);
  EXPECT_EQ(tgs(KRB5KRB_AP_ERR_BAD_INTEGRITY), KDC_BAD_TICKET);
  EXPECT_EQ(tgs(KRB5KRB_AP_ERR_TKT_EXPIRED), KDC_BAD_TICKET);
  EXPECT_EQ(as(KRB5KDC_ERR_CLIENT_REVOKED), KDC_CLIENT_REFUSED);
  EXPECT_EQ(as(KRB5KDC_ERR_C_PRINCIPAL_UNKNOWN), KDC_UNKNOWN_CLIENT);
  EXPECT_EQ(tgs(KRB5KDC_ERR_S_PRINCIPAL_UNKNOWN), KDC_UNKNOWN_SERVICE);
  EXPECT_EQ(as(KRB5KRB_AP_ERR_SKEW), KDC_CLOCK_SKEW);
  EXPECT_EQ(as(KRB5KDC_ERR_POLICY), KDC_POLICY);
  EXPECT_EQ(as(KRB5KDC_ERR_ETYPE_NOSUPP), KDC_UNSUPPORTED);
  EXPECT_EQ(as(ENOMEM), KDC_OTHER);
  EXPECT_EQ(as(KRB5KDC_ERR_SVC_UNAVAILABLE), KDC_UNAVAILABLE);
  r.try_stream = 1;  // no outage: the client comes again
  EXPECT_EQ(as(KRB5KDC_ERR_SVC_UNAVAILABLE), KDC_TRY_STREAM);
  EXPECT_EQ(result_of(nullptr, KRB5_AS_REQ, KRB5KDC_ERR_SVC_UNAVAILABLE), KDC_UNAVAILABLE);
}

}  // namespace
}  // namespace mpckdc::test
