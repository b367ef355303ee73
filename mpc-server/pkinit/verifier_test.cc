// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/pkinit/verifier.h"

#include <openssl/ui.h>

#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/base/der.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/pkinit/request.h"
#include "mpc-server/testing/folder.h"
#include "mpc-server/testing/mutations.h"
#include "mpc-server/testing/pkinit.h"
#include "mpc-server/testing/slow_keys.h"

namespace mpckdc {
namespace {

using ::testing::HasSubstr;

class VerifierTest : public ::testing::Test {
 protected:
  VerifierTest() { options_.anchors = File("anchors.pem", authority_.pem()); }

  std::string File(const std::string& name, const std::string& text) {
    WriteFileForTest(folder_.File(name), text);
    return folder_.File(name);
  }
  CertificateFinding Find(const CertificateProof& proof, absl::Time now = absl::Now()) {
    auto verifier = PkinitVerifier::Load(options_);
    EXPECT_TRUE(verifier.ok()) << verifier.status();
    return (*verifier)->Verify(proof, now);
  }
  void ExpectGood(const CertificateProof& proof, const std::string& client = "alice@EXAMPLE.COM") {
    const CertificateFinding finding = Find(proof);
    EXPECT_TRUE(finding.judgement.ok()) << finding.judgement.detail;
    EXPECT_EQ(finding.client, client);
  }
  void ExpectRefused(const CertificateProof& proof, const std::string& why,
                     absl::Time now = absl::Now()) {
    const CertificateFinding finding = Find(proof, now);
    EXPECT_EQ(finding.judgement.verdict, Verdict::kRefused);
    EXPECT_THAT(finding.judgement.detail, HasSubstr(why));
    EXPECT_EQ(finding.client, "");
  }

  TestFolder folder_;
  ClientAuthority authority_;
  PkinitOptions options_;
};

TEST_F(VerifierTest, AGoodLogin) {
  const LoginOptions login{.time = absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now()))};
  const CertificateFinding finding = Find(SignLogin(authority_.Issue(), login));
  ASSERT_TRUE(finding.judgement.ok()) << finding.judgement.detail;
  EXPECT_EQ(finding.client, "alice@EXAMPLE.COM");
  EXPECT_EQ(finding.server, "krbtgt/EXAMPLE.COM@EXAMPLE.COM");
  EXPECT_EQ(finding.time, login.time);
}

TEST_F(VerifierTest, RsaKeysAndOtherDigests) {
  const ClientCert rsa = authority_.Issue({.rsa_bits = 2048});
  for (const EVP_MD* md : {EVP_sha256(), EVP_sha384(), EVP_sha512()}) {
    ExpectGood(SignLogin(rsa, {.md = md}));
  }
  ExpectGood(SignLogin(rsa, {.second = EVP_sha256()}));
  ExpectRefused(SignLogin(rsa, {.second = EVP_sha512()}), "second checksum");
}

// ---- Whose certificate ----

TEST_F(VerifierTest, TheNameMustBeTheClients) {
  const ClientCert bob = authority_.Issue({.sans = {PkinitSan("EXAMPLE.COM", {"bob"})}});
  ExpectGood(SignLogin(bob, {.client = {"bob"}}), "bob@EXAMPLE.COM");
  ExpectRefused(SignLogin(bob), "it is for bob@EXAMPLE.COM, and the request is of alice");
  for (const std::string& near :
       {PkinitSan("EXAMPLE.ORG", {"alice"}), PkinitSan("EXAMPLE.COM", {"Alice"}),
        PkinitSan("EXAMPLE.COM", {"alice", "admin"}), PkinitSan("example.com", {"alice"}),
        PkinitSan("EXAMPLE.COM", {"alice@EXAMPLE.COM"})}) {
    ExpectRefused(SignLogin(authority_.Issue({.sans = {near}})), "and the request is of alice");
  }
}

TEST_F(VerifierTest, ACertificateWithoutAPrincipal) {
  ExpectRefused(SignLogin(authority_.Issue({.sans = {}})), "names no principal");
  ExpectRefused(SignLogin(authority_.Issue({.sans = {DnsSan("alice.example.com")}})),
                "names no principal");
}

// Both names are its owner's, as with MIT's KDC: which of them asks is in the body, and signed.
TEST_F(VerifierTest, TwoNames) {
  const ClientCert both = authority_.Issue(
      {.sans = {PkinitSan("EXAMPLE.COM", {"bob"}), PkinitSan("EXAMPLE.COM", {"bob", "admin"})}});
  ExpectGood(SignLogin(both, {.client = {"bob", "admin"}}), "bob/admin@EXAMPLE.COM");
  ExpectRefused(SignLogin(both), "it is for bob@EXAMPLE.COM, bob/admin@EXAMPLE.COM");
}

TEST_F(VerifierTest, AnotherRealmsRequest) {
  const ClientCert alice = authority_.Issue();
  ExpectRefused(SignLogin(alice, {.realm = "EXAMPLE.ORG"}), "the request is of alice@EXAMPLE.ORG");
}

TEST_F(VerifierTest, UserPrincipalNamesCountIfConfigured) {
  const ClientCert upn = authority_.Issue({.sans = {UpnSan("alice@example.com")}});
  ExpectRefused(SignLogin(upn), "names no principal");
  options_.allow_upn = true;
  ExpectGood(SignLogin(upn));
  ExpectRefused(SignLogin(authority_.Issue({.sans = {UpnSan("Alice@EXAMPLE.COM")}})), "it is for");
  ExpectRefused(SignLogin(authority_.Issue({.sans = {UpnSan("alice")}})), "it is for");
  ExpectRefused(SignLogin(authority_.Issue({.sans = {UpnSan("alice@example.co")}})), "it is for");
}

// ---- What the certificate is for ----

TEST_F(VerifierTest, Purposes) {
  const auto with = [&](const std::string& eku, const std::string& usage) {
    return SignLogin(authority_.Issue({.eku = eku, .key_usage = usage}));
  };
  const std::string kWrong = "extended key usage is not for PKINIT clients";
  ExpectRefused(with("clientAuth", "digitalSignature"), kWrong);
  ExpectRefused(with("", "digitalSignature"), kWrong);
  ExpectRefused(with("1.3.6.1.5.2.3.5", "digitalSignature"), kWrong);  // a KDC's
  ExpectRefused(with(kSmartCardEku, "digitalSignature"), kWrong);
  ExpectRefused(with(kPkinitClientEku, "keyEncipherment"), "is not digitalSignature");
  ExpectRefused(with(kPkinitClientEku, ""), "does not say that it may sign");
  options_.eku = EkuRule::kSmartCard;
  ExpectGood(with(kSmartCardEku, "digitalSignature"));
  ExpectGood(with(kPkinitClientEku, "digitalSignature"));
  ExpectRefused(with("clientAuth", "digitalSignature"), kWrong);
  options_.eku = EkuRule::kNone;
  ExpectGood(with("clientAuth", "digitalSignature"));
  ExpectGood(with("", ""));
  ExpectRefused(with("", "keyEncipherment"), "is not digitalSignature");
}

// ---- Who vouches for it ----

TEST_F(VerifierTest, ForeignAuthorities) {
  const ClientAuthority foreign("clients");  // of the same name
  const ClientCert stranger = foreign.Issue();
  ExpectRefused(SignLogin(stranger), "is not good here");
  ExpectRefused(SignLogin(stranger, {.also_sent = {foreign.certificate()}}), "is not good here");
  // A client's certificate vouches for nobody.
  const ClientCert alice = authority_.Issue();
  ClientCert self = foreign.Issue();
  X509_set_issuer_name(self.certificate.get(), X509_get_subject_name(alice.certificate.get()));
  X509_sign(self.certificate.get(), alice.key.get(), EVP_sha256());
  ExpectRefused(SignLogin(self, {.also_sent = {alice.certificate.get()}}), "is not good here");
}

TEST_F(VerifierTest, TimesOfTheCertificate) {
  const ClientCert alice = authority_.Issue();
  ExpectGood(SignLogin(alice));
  ExpectRefused(SignLogin(alice), "certificate has expired", absl::Now() + absl::Hours(2));
  ExpectRefused(SignLogin(alice), "certificate is not yet valid", absl::Now() - absl::Hours(2));
}

TEST_F(VerifierTest, CertificatesBetween) {
  const ClientAuthority middle(authority_, "middle");
  const ClientCert alice = middle.Issue();
  ExpectRefused(SignLogin(alice), "is not good here");
  ExpectGood(SignLogin(alice, {.also_sent = {middle.certificate()}}));
  options_.pool = File("pool.pem", middle.pem());
  ExpectGood(SignLogin(alice));
}

TEST_F(VerifierTest, RevokedCertificates) {
  const ClientCert alice = authority_.Issue(), other = authority_.Issue();
  options_.crls = File("crl.pem", authority_.CrlPem({alice.certificate.get()}));
  ExpectRefused(SignLogin(alice), "certificate revoked");
  ExpectGood(SignLogin(other));
  options_.crls = File("crl.pem", authority_.CrlPem({}, -absl::Hours(1)));
  ExpectRefused(SignLogin(other), "CRL has expired");
}

TEST_F(VerifierTest, ListsThatAreMissing) {
  const ClientAuthority other("others");
  const ClientCert alice = authority_.Issue();
  options_.crls = File("crl.pem", other.CrlPem({}));
  ExpectRefused(SignLogin(alice), "unable to get certificate CRL");
  options_.crls_required = false;
  ExpectGood(SignLogin(alice));
  options_.crls = File("crl.pem", authority_.CrlPem({alice.certificate.get()}));
  ExpectRefused(SignLogin(alice), "certificate revoked");
}

// Of a terminal, where a server that starts would wait for an answer.
TEST_F(VerifierTest, NobodyIsAskedForThePasswordOfAFile) {
  static bool asked;
  asked = false;
  UI_METHOD* const method = UI_create_method("asked");
  UI_method_set_opener(method, [](UI*) {
    asked = true;
    return 0;
  });
  const UI_METHOD* const before = UI_get_default_method();
  UI_set_default_method(method);
  options_.anchors = File("locked.pem",
                          "-----BEGIN CERTIFICATE-----\nProc-Type: 4,ENCRYPTED\n"
                          "DEK-Info: AES-256-CBC,00112233445566778899AABBCCDDEEFF\n\nAAAA\n"
                          "-----END CERTIFICATE-----\n");
  EXPECT_THAT(PkinitVerifier::Load(options_).status().message(), HasSubstr("is damaged"));
  EXPECT_FALSE(asked);
  UI_set_default_method(before);
  UI_destroy_method(method);
}

// ---- What is signed, and how ----

TEST_F(VerifierTest, AnotherBody) {
  const ClientCert alice = authority_.Issue();
  CertificateProof proof = SignLogin(alice);
  proof.request_body = RequestBodyDer({.client = {"bob"}});
  ExpectRefused(proof, "not about this request");
  proof.request_body.clear();
  ExpectRefused(proof, "not about this request");
  ExpectRefused(SignLogin(alice, {.signed_body = "something else"}), "not about this request");
  ExpectRefused(SignLogin(alice, {.with_checksum = false}), "AuthPack cannot be read");
}

TEST_F(VerifierTest, Sha1) {
  const ClientCert alice = authority_.Issue({.rsa_bits = 2048});
  const ClientCert old = authority_.Issue({.md = EVP_sha1(), .rsa_bits = 2048});
  const ClientCert small = authority_.Issue({.rsa_bits = 1024});
  ExpectRefused(SignLogin(alice, {.md = EVP_sha1()}), "allow_sha1");
  ExpectRefused(SignLogin(old), "digest algorithm too weak");
  ExpectRefused(SignLogin(small), "EE certificate key too weak");
  options_.allow_sha1 = true;
  ExpectGood(SignLogin(alice, {.md = EVP_sha1()}));
  ExpectGood(SignLogin(old));
  ExpectGood(SignLogin(small));
  ExpectRefused(SignLogin(alice, {.md = EVP_md5()}), "digest is none of");
  // It allows these two, and nothing that anybody can forge or take apart.
  const ClientAuthority rsa("rsa", 2048);
  options_.anchors = File("rsa.pem", rsa.pem());
  ExpectGood(SignLogin(rsa.Issue({.md = EVP_sha1()})));
  ExpectRefused(SignLogin(rsa.Issue({.md = EVP_md5()})), "weaker than SHA-1");
  ExpectRefused(SignLogin(rsa.Issue({.rsa_bits = 512})), "RSA of 1024 bits");
}

// Signed, but as something else: it would be worth a login.
TEST_F(VerifierTest, TheSignatureMustSayThatItIsOfAnAuthPack) {
  const ClientCert alice = authority_.Issue();
  ExpectRefused(SignLogin(alice, {.content_type = "1.2.840.113549.1.7.1"}), "no AuthPack");
  ExpectRefused(SignLogin(alice, {.with_attributes = false}), "does not say");
  ExpectRefused({PaPkAsReq("nothing"), "x"}, "is not signed data");
  ExpectRefused({"nothing", "x"}, "PA-PK-AS-REQ cannot be read");
}

TEST_F(VerifierTest, NoneOrTwoSignatures) {
  const ClientCert alice = authority_.Issue(), bob = authority_.Issue();
  const CertificateProof proof = SignLogin(alice);
  const std::string cms(*SignedAuthPackOf(proof.pa_pk_as_req));
  const auto* at = reinterpret_cast<const uint8_t*>(cms.data());
  const CmsPtr two(d2i_CMS_ContentInfo(nullptr, &at, static_cast<long>(cms.size())));
  ASSERT_NE(CMS_add1_signer(two.get(), bob.certificate.get(), bob.key.get(), EVP_sha256(),
                            CMS_REUSE_DIGEST | CMS_NOSMIMECAP),
            nullptr);
  const BioPtr out(BIO_new(BIO_s_mem()));
  ASSERT_EQ(i2d_CMS_bio(out.get(), two.get()), 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(out.get(), &data);
  ExpectRefused({PaPkAsReq({data, static_cast<size_t>(size)}), proof.request_body},
                "must have one signature");
}

TEST_F(VerifierTest, Limits) {
  const ClientCert alice = authority_.Issue();
  std::vector<ClientCert> more;
  LoginOptions login;
  for (int i = 0; i < limits::kMaxProofCertificates; ++i) {
    more.push_back(authority_.Issue());
    if (i > 0) login.also_sent.push_back(more.back().certificate.get());
  }
  ExpectGood(SignLogin(alice, login));
  login.also_sent.push_back(more.front().certificate.get());
  ExpectRefused(SignLogin(alice, login), "9 certificates in signedAuthPack, at most 8");
  CertificateProof proof = SignLogin(alice);
  proof.pa_pk_as_req.append(limits::kMaxProofBytes, 'x');
  ExpectRefused(proof, "at most 32768");
}

// Decoded, each of these would take seconds, and keys are decoded before anything is verified.
TEST_F(VerifierTest, KeysThatTakeLongToDecode) {
  const std::string body = SignLogin(authority_.Issue()).request_body;
  const std::vector<std::string> slow = {CertificateOfKey(KeyOfItsOwnCurve())};
  const std::vector<std::string> many(250, CertificateOfKey(CompressedKey()));
  const absl::Time begin = absl::Now();
  for (const bool with_lengths : {true, false}) {
    ExpectRefused({PaPkAsReq(CmsWith(slow, with_lengths)), body}, "a curve without a name");
    ExpectRefused({PaPkAsReq(CmsWith(many, with_lengths)), body}, "250 certificates");
  }
  ExpectRefused({PaPkAsReq(EnvelopedWith(slow)), body}, "not signed data");
  EXPECT_LT(absl::Now() - begin, absl::Seconds(2));
}

// CMS may be in BER, whose lengths need not be said.
TEST_F(VerifierTest, AMessageInBer) {
  const LoginOptions login;
  const std::string body = RequestBodyDer(login);
  const std::string cms = SignCms(AuthPackDer(login, body), authority_.Issue());
  DerReader in(*OnlyDer(der::kSequence, cms));
  const std::string object(*in.Take(der::kObject)), data(*in.Take(der::Field(0)));
  const std::string end(4, '\0');
  ExpectGood({PaPkAsReq(absl::StrCat("\x30\x80", Der(der::kObject, object), "\xa0\x80", data, end)),
              body});
}

// Whoever sends it again may write what is not signed in another way; the id stays.
TEST_F(VerifierTest, TheIdIsOfWhatWasSigned) {
  const ClientCert alice = authority_.Issue(), other = authority_.Issue();
  const LoginOptions login;
  const std::string body = RequestBodyDer(login), pack = AuthPackDer(login, body);
  const auto id = [&](const LoginOptions& options) {
    return Find({PaPkAsReq(SignCms(pack, alice, options)), body}).id;
  };
  const Nonce first = id(login);
  EXPECT_EQ(id({.also_sent = {other.certificate.get()}}), first);
  EXPECT_EQ(id({.md = EVP_sha512()}), first);
  EXPECT_NE(Find(SignLogin(alice, {.time = login.time + absl::Seconds(1)})).id, first);
}

// Bytes near a good login: whatever is accepted is the same login, and nothing crashes.
TEST_F(VerifierTest, AnyBytes) {
  auto loaded = PkinitVerifier::Load(options_);
  ASSERT_TRUE(loaded.ok());
  const ClientCert alice = authority_.Issue();
  const CertificateProof good = SignLogin(alice, {.also_sent = {authority_.certificate()}});
  const CertificateFinding want = (*loaded)->Verify(good, absl::Now());
  ASSERT_TRUE(want.judgement.ok());
  Mutations mutations(20261124);
  int refused = 0;
  constexpr int kCases = 4000;
  for (int i = 0; i < kCases; ++i) {
    std::vector<uint8_t> bytes(good.pa_pk_as_req.begin(), good.pa_pk_as_req.end());
    if (mutations.Chance(4)) {
      mutations.AlterLength(bytes);
    } else {
      mutations.Alter(absl::MakeSpan(bytes));
    }
    const CertificateProof proof{std::string(bytes.begin(), bytes.end()), good.request_body};
    const CertificateFinding found = (*loaded)->Verify(proof, absl::Now());
    if (!found.judgement.ok()) {
      ++refused;
      continue;
    }
    EXPECT_EQ(found.client, want.client);
    EXPECT_EQ(found.id, want.id);
  }
  EXPECT_GT(refused, kCases / 2);  // of the rest the authority's own certificate was altered
}

// ---- Files ----

TEST_F(VerifierTest, FilesThatAreNotThere) {
  options_.anchors = folder_.File("nothing.pem");
  EXPECT_THAT(PkinitVerifier::Load(options_).status().message(), HasSubstr("cannot read"));
  options_.anchors = File("empty.pem", "no certificate\n");
  EXPECT_THAT(PkinitVerifier::Load(options_).status().message(),
              HasSubstr("there is no certificate in"));
  options_.anchors = File("anchors.pem", authority_.pem());
  options_.crls = options_.anchors;
  EXPECT_THAT(PkinitVerifier::Load(options_).status().message(),
              HasSubstr("there is no list of revoked certificates in"));
}

// For doc/jobs.md: MPCKDC_COST=1 prints it.
TEST_F(VerifierTest, Cost) {
  if (getenv("MPCKDC_COST") == nullptr) GTEST_SKIP() << "set MPCKDC_COST=1";
  for (const int bits : {0, 2048, 4096}) {
    const CertificateProof proof = SignLogin(authority_.Issue({.rsa_bits = bits}));
    auto verifier = PkinitVerifier::Load(options_);
    const absl::Time begin = absl::Now();
    constexpr int kRuns = 500;
    for (int i = 0; i < kRuns; ++i) {
      ASSERT_TRUE((*verifier)->Verify(proof, begin).judgement.ok());
    }
    std::printf("RSA %d (0: P-256): %zu bytes, %.0f us\n", bits, proof.pa_pk_as_req.size(),
                absl::ToDoubleMicroseconds(absl::Now() - begin) / kRuns);
  }
}

}  // namespace
}  // namespace mpckdc
