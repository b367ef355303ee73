// SPDX-License-Identifier: Apache-2.0
// Several realms in one process: whose servers a handle goes to.
#include <cstring>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kdc-plugin/tests/provider_fixture.h"

extern "C" {
#include "kdc-plugin/provider/source.h"
}

namespace mpckdc::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Beside the fixture's realm and its context, OTHER.ORG with servers of its own in a context of its
// own, as krb5kdc has them.
class RealmsTest : public ProviderTest {
 protected:
  RealmsTest()
      : other_realm_("OTHER.ORG"),
        other_base_(32, 'o'),
        other_handle_(other_realm_.AddKey("krbtgt/OTHER.ORG@OTHER.ORG", other_base_,
                                          v1::KEY_CLASS_TGS)) {
    ForgetLog();
    if (krb5_init_secure_context(&other_) != 0) abort();
    mpc_options options = other_realm_.Options(3000);
    options.log = NoteLine;
    EXPECT_EQ(provider_register(other_, &options, CONTEXTS_OF_DATABASES), 0);
    other_tgs_ = Reference(other_handle_);
  }
  ~RealmsTest() override {
    EndRequest();
    provider_unregister();
    source_forget(other_);
    krb5_free_context(other_);
  }

  // Opens a ticket that was sealed under `base`, by the key's reference, in a context.
  krb5_error_code OpenIn(krb5_context context, const krb5_keyblock& key, const std::string& base) {
    const std::string message = Seal(Local(base), 2, "a ticket");
    const krb5_enc_data cipher = {0, key.enctype, 0, View(message)};
    std::string plain(message.size(), '\0');
    krb5_data out = View(plain);
    const krb5_error_code code = krb5_c_decrypt(context, &key, 2, nullptr, &cipher, &out);
    if (code == 0) {
      EXPECT_EQ(plain.substr(0, out.length), "a ticket");
    }
    why_.clear();
    if (code == 0 || context == nullptr) return code;
    const char* const text = krb5_get_error_message(context, code);
    why_ = text;
    krb5_free_error_message(context, text);
    return code;
  }
  void HintTgsIn(krb5_context context, const krb5_keyblock& key, const std::string& ticket) {
    const krb5_data cipher = View(ticket);
    const krb5_remote_key_tgs_hint hint = {&key, &cipher, nullptr, 0};
    krb5_c_remote_key_hint_tgs(context, &hint);
  }
  int OtherJobs() { return other_realm_.oracle->jobs(); }

  FakeRealm other_realm_;
  std::string other_base_, other_handle_;
  krb5_context other_ = nullptr;
  krb5_keyblock other_tgs_ = {};
  std::string why_;  // OpenIn() failed
};

TEST_F(RealmsTest, EachRealmsKeysAreUsedByItsOwnServers) {
  EXPECT_EQ(OpenIn(context_, tgs_, tgs_base_), 0);
  EndRequest();
  EXPECT_EQ(OpenIn(other_, other_tgs_, other_base_), 0);
  EndRequest();
  EXPECT_EQ(Jobs(), 1);
  EXPECT_EQ(OtherJobs(), 1);
}

// As when a dump of one realm was loaded into the other.
TEST_F(RealmsTest, AHandleOfAnotherRealmOpensNothing) {
  EXPECT_EQ(OpenIn(other_, tgs_, tgs_base_), KRB5KDC_ERR_SVC_UNAVAILABLE);
  EXPECT_EQ(Jobs(), 0) << "whose key it is was not asked";
  EXPECT_THAT(why_, HasSubstr("opening a ticket"));
  EndRequest();
  EXPECT_EQ(OpenIn(context_, tgs_, tgs_base_), 0) << "and it is a good one";
}

TEST_F(RealmsTest, WhoHasNoServersUsesNobodyElses) {
  krb5_context stock;
  ASSERT_EQ(krb5_init_secure_context(&stock), 0);
  EXPECT_EQ(OpenIn(stock, tgs_, tgs_base_), KRB5KDC_ERR_SVC_UNAVAILABLE);
  EXPECT_THAT(why_, HasSubstr("no MPC servers in this process"));
  EXPECT_EQ(OpenIn(nullptr, tgs_, tgs_base_), KRB5KDC_ERR_SVC_UNAVAILABLE);
  EXPECT_EQ(Jobs() + OtherJobs(), 0);
  krb5_free_context(stock);
}

TEST_F(RealmsTest, ARealmWhoseDatabaseWasClosedIsServedNoMore) {
  EXPECT_EQ(OpenIn(other_, other_tgs_, other_base_), 0);
  EndRequest();
  provider_forget(other_);
  EXPECT_EQ(OpenIn(other_, other_tgs_, other_base_), KRB5KDC_ERR_SVC_UNAVAILABLE);
  EXPECT_EQ(OtherJobs(), 1);
}

TEST_F(RealmsTest, ARequestIsOfOneRealm) {
  EXPECT_EQ(OpenIn(context_, tgs_, tgs_base_), 0);
  EXPECT_EQ(OpenIn(other_, other_tgs_, other_base_), KRB5KDC_ERR_SVC_UNAVAILABLE);
  EXPECT_THAT(why_, HasSubstr("keys of two realms"));
  EXPECT_EQ(OtherJobs(), 0);
  // What was learnt for one realm is no parent of the other's ticket either.
  EndRequest();
  EXPECT_EQ(OpenIn(other_, other_tgs_, other_base_), 0);
}

// krb5kdc puts off what requests of all realms ask in a slice.
TEST_F(RealmsTest, WhatIsPutOffGoesToItsOwnRealm) {
  const std::string ours = Seal(Local(tgs_base_), 2, "ours"),
                    theirs = Seal(Local(other_base_), 2, "theirs");
  void* requests[4] = {};
  in_slice = true;
  for (int i = 0; i < 4; ++i) {
    request_pointer = nullptr;
    if (i % 2 == 0) HintTgsIn(context_, tgs_, ours);
    if (i % 2 == 1) HintTgsIn(other_, other_tgs_, theirs);
    requests[i] = request_pointer;
  }
  EXPECT_EQ(Jobs() + OtherJobs(), 0);
  krb5_c_remote_key_flush();
  in_slice = false;
  for (int i = 0; i < 4; ++i) {
    request_pointer = requests[i];
    const std::string& message = i % 2 == 0 ? ours : theirs;
    const krb5_keyblock& key = i % 2 == 0 ? tgs_ : other_tgs_;
    const krb5_enc_data cipher = {0, key.enctype, 0, View(message)};
    std::string plain(message.size(), '\0');
    krb5_data out = View(plain);
    EXPECT_EQ(krb5_c_decrypt(i % 2 == 0 ? context_ : other_, &key, 2, nullptr, &cipher, &out), 0);
    EXPECT_EQ(plain.substr(0, out.length), i % 2 == 0 ? "ours" : "theirs");
    EndRequest();
  }
  EXPECT_EQ(Jobs(), 2);
  EXPECT_EQ(OtherJobs(), 2);
}

// Neither realm's servers can tell that the other realm's serve the same host.
TEST_F(RealmsTest, ASourceHasAnotherNumberInEachRealm) {
  const std::string masters[] = {std::string(32, 'm'), std::string(32, 'n')};
  const krb5_keyblock ours = Local(masters[0], ENCTYPE_AES256_CTS_HMAC_SHA1_96),
                      theirs = Local(masters[1], ENCTYPE_AES256_CTS_HMAC_SHA1_96);
  source_use_master_key(context_, &ours);
  source_use_master_key(other_, &theirs);
  uint8_t bytes[] = {192, 0, 2, 1};
  krb5_address address = {KV5M_ADDRESS, ADDRTYPE_INET, sizeof(bytes), bytes};
  ::mpckdc::test::request_source = {&address, true, nullptr, {}};
  struct request_source first = {}, second = {}, again = {}, unknown = {};
  source_of_request(context_, &first);
  source_of_request(other_, &second);
  source_of_request(context_, &again);
  source_of_request(nullptr, &unknown);
  ::mpckdc::test::request_source = {};
  source_forget(context_);
  EXPECT_NE(first.id, 0u);
  EXPECT_NE(second.id, 0u);
  EXPECT_NE(first.id, second.id);
  EXPECT_EQ(first.id, again.id);
  EXPECT_EQ(unknown.id, 0u);
}

TEST_F(RealmsTest, OneRealmHasOneSetOfServers) {
  mpc_options options = other_realm_.Options();
  options.realm = "EXAMPLE.COM";
  EXPECT_EQ(provider_register(other_, &options, CONTEXTS_OF_DATABASES), EINVAL);
  const char* const text = krb5_get_error_message(other_, EINVAL);
  EXPECT_THAT(text, HasSubstr("EXAMPLE.COM is served by other MPC servers"));
  krb5_free_error_message(other_, text);
  EXPECT_EQ(OpenIn(other_, other_tgs_, other_base_), 0) << "as before";
}

// kadmind: GSSAPI opens the tickets of its clients in contexts of its own.
TEST_F(ProviderTest, AProgramOfOneRealmUsesItsKeysInAnyContext) {
  krb5_context own;
  ASSERT_EQ(krb5_init_secure_context(&own), 0);
  mpc_options options = realm_.Options();
  options.log = NoteLine;
  ASSERT_EQ(provider_register(context_, &options, CONTEXTS_ANY), 0);
  ForgetLog();
  const std::string message = Seal(Local(tgs_base_), 2, "a ticket");
  const krb5_enc_data cipher = {0, tgs_.enctype, 0, View(message)};
  std::string plain(message.size(), '\0');
  krb5_data out = View(plain);
  EXPECT_EQ(krb5_c_decrypt(own, &tgs_, 2, nullptr, &cipher, &out), 0);
  EXPECT_EQ(Jobs(), 1);
  EXPECT_THAT(Logged(), Not(HasSubstr("EXAMPLE.COM: ")));
  // With two realms nobody could say whose key it is.
  FakeRealm second("OTHER.ORG");
  options = second.Options();
  krb5_context other;
  ASSERT_EQ(krb5_init_secure_context(&other), 0);
  ASSERT_EQ(provider_register(other, &options, CONTEXTS_ANY), 0);
  EndRequest();
  EXPECT_EQ(krb5_c_decrypt(own, &tgs_, 2, nullptr, &cipher, &out), KRB5KDC_ERR_SVC_UNAVAILABLE);
  EndRequest();
  provider_unregister(); // before the servers go
  krb5_free_context(other);
  krb5_free_context(own);
}

}  // namespace
}  // namespace mpckdc::test
