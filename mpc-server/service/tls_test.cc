// SPDX-License-Identifier: Apache-2.0
//
// The wire: which TLS versions and which certificates get through to the gRPC port.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <string>

#include "mpc-server/service/tls13.h"
#include "mpc-server/testing/service_fixture.h"
#include "proto/admin.grpc.pb.h"

namespace mpckdc {
namespace {

// Handshakes as an OpenSSL client that offers `version` only, and `groups` of keys; returns the version
// agreed, or 0.
int Handshake(const TestPort& port, const TestCert& cert, int version,
              const char* groups = nullptr) {
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                            &SSL_CTX_free);
  SSL_CTX_clear_options(context.get(), SSL_OP_NO_TLSv1_2);  // RequireTls13() holds for clients too
  SSL_CTX_set_min_proto_version(context.get(), version);
  SSL_CTX_set_max_proto_version(context.get(), version);
  if (groups != nullptr) SSL_CTX_set1_groups_list(context.get(), groups);
  const std::string name = port.folder().path() + "/client";
  WriteCert(port.folder().path(), "client", cert);
  SSL_CTX_use_certificate_file(context.get(), (name + ".pem").c_str(), SSL_FILETYPE_PEM);
  SSL_CTX_use_PrivateKey_file(context.get(), (name + ".key").c_str(), SSL_FILETYPE_PEM);
  const unsigned char alpn[] = {2, 'h', '2'};
  SSL_CTX_set_alpn_protos(context.get(), alpn, sizeof alpn);
  std::unique_ptr<BIO, decltype(&BIO_free_all)> bio(BIO_new_ssl_connect(context.get()),
                                                    &BIO_free_all);
  BIO_set_conn_hostname(bio.get(), ("127.0.0.1:" + std::to_string(port.port())).c_str());
  SSL* ssl = nullptr;
  BIO_get_ssl(bio.get(), &ssl);
  const int agreed = BIO_do_handshake(bio.get()) == 1 ? SSL_version(ssl) : 0;
  ERR_clear_error();
  return agreed;
}

class EmptyService : public v1::AdminService::Service {};

// In one test, because RequireTls13() cannot be taken back.
TEST(TlsTest, OnlyTls13GetsThrough) {
  EmptyService service;
  {
    TestPort port;
    port.Start({&service}, 1 << 20);
    const TestCert cert = port.authority().IssueRole("kdc", "kdc1");
    ASSERT_EQ(Handshake(port, cert, TLS1_2_VERSION), TLS1_2_VERSION)
        << "gRPC alone accepts TLS 1.2: this test would see it";
  }
  setenv("OPENSSL_CONF", "/dev/null", 1);
  ASSERT_TRUE(RequireTls13().ok());
  TestPort port;
  port.Start({&service}, 1 << 20);
  const TestCert cert = port.authority().IssueRole("kdc", "kdc1");
  EXPECT_EQ(Handshake(port, cert, TLS1_2_VERSION), 0);
  EXPECT_EQ(Handshake(port, cert, TLS1_1_VERSION), 0);
  EXPECT_EQ(Handshake(port, cert, TLS1_3_VERSION), TLS1_3_VERSION);
}

// In TLS 1.3 anybody's first message has a key of the group, with which the server computes at once:
// 140 ms with that of ffdhe8192. gRPC itself allows one group.
TEST(TlsTest, OnlyQuickGroupsGetThrough) {
  EmptyService service;
  TestPort port;
  port.Start({&service}, 1 << 20);
  const TestCert cert = port.authority().IssueRole("kdc", "kdc1");
  EXPECT_EQ(Handshake(port, cert, TLS1_3_VERSION, "P-256"), TLS1_3_VERSION);
  for (const char* group : {"ffdhe2048", "ffdhe4096", "ffdhe8192", "P-521"}) {
    EXPECT_EQ(Handshake(port, cert, TLS1_3_VERSION, group), 0) << group;
  }
}

// Does any call get through the handshake? UNIMPLEMENTED comes from the service behind it.
grpc::StatusCode Call(const TestPort& port, const TestCert* cert) {
  auto stub = v1::AdminService::NewStub(port.Connect(cert));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(10)));
  v1::StatusReply reply;
  return stub->GetStatus(&context, {}, &reply).error_code();
}

TEST(TlsTest, CertificatesOfTheAuthorityOnly) {
  EmptyService service;
  TestPort port;
  port.Start({&service}, 1 << 20);
  const TestCert good = port.authority().IssueRole("admin", "a");
  EXPECT_EQ(Call(port, &good), grpc::StatusCode::UNIMPLEMENTED);

  EXPECT_EQ(Call(port, nullptr), grpc::StatusCode::UNAVAILABLE) << "no certificate";
  const TestAuthority other;
  const TestCert foreign = other.IssueRole("admin", "a");
  EXPECT_EQ(Call(port, &foreign), grpc::StatusCode::UNAVAILABLE);
  TestCertOptions options;
  options.uris = {"spiffe://EXAMPLE.COM/mpc/admin/a"};
  options.starts = -absl::Hours(2);
  options.ends = -absl::Hours(1);
  const TestCert expired = port.authority().Issue(options);
  EXPECT_EQ(Call(port, &expired), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace mpckdc
