// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/pkinit/request.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "mpc-server/testing/pkinit.h"

namespace mpckdc {
namespace {

using std::string_literals::operator""s;

TEST(Request, NamesAsKrb5WritesThem) {
  const auto name = [](const std::vector<std::string>& components, const std::string& realm) {
    return UnparsedName(realm, DerPrincipal(components));
  };
  EXPECT_EQ(name({"alice"}, "EXAMPLE.COM"), "alice@EXAMPLE.COM");
  EXPECT_EQ(name({"krbtgt", "EXAMPLE.COM"}, "EXAMPLE.COM"), "krbtgt/EXAMPLE.COM@EXAMPLE.COM");
  EXPECT_EQ(name({"a/b@c\\d"}, "R"), "a\\/b\\@c\\\\d@R");
  EXPECT_EQ(name({"x\n\t\b\0y"s}, "R"), "x\\n\\t\\b\\0y@R");
  EXPECT_FALSE(name({}, "R").has_value());
  EXPECT_FALSE(UnparsedName("R", "alice").has_value());
}

TEST(Request, BodyNamesClientAndServer) {
  const LoginOptions login{.client = {"alice", "admin"}, .server = {"kadmin", "changepw"}};
  const auto body = DecodeRequestBody(RequestBodyDer(login));
  ASSERT_TRUE(body.has_value());
  EXPECT_EQ(body->client, "alice/admin@EXAMPLE.COM");
  EXPECT_EQ(body->server, "kadmin/changepw@EXAMPLE.COM");
}

TEST(Request, AuthPackIsAboutItsBody) {
  const LoginOptions login{.time = absl::FromUnixMicros(1'700'000'000'123'456)};
  const std::string body = RequestBodyDer(login);
  const std::string der = AuthPackDer(login, body);
  const auto pack = DecodeAuthPack(der);
  ASSERT_TRUE(pack.has_value());
  EXPECT_EQ(pack->time, absl::FromUnixSeconds(1'700'000'000));
  EXPECT_TRUE(CheckBody(*pack, body).ok());
  EXPECT_FALSE(CheckBody(*pack, body + "x").ok());
}

// RFC 8636's successor of the checksum, which newer clients send beside it.
TEST(Request, ASecondChecksumIsLookedAtToo) {
  for (const EVP_MD* md : {EVP_sha256(), EVP_sha512(), EVP_sha1()}) {
    const LoginOptions login{.second = md};
    const std::string body = RequestBodyDer(login);
    const std::string der = AuthPackDer(login, body);
    const auto pack = DecodeAuthPack(der);
    ASSERT_TRUE(pack.has_value());
    // The fixture calls SHA-512 SHA-256, so that one is wrong; SHA-1 is none of SHA-2.
    EXPECT_EQ(CheckBody(*pack, body).ok(), md == EVP_sha256());
  }
}

TEST(Request, WithoutAChecksumThereIsNoAuthPack) {
  const LoginOptions login{.with_checksum = false};
  EXPECT_FALSE(DecodeAuthPack(AuthPackDer(login, RequestBodyDer(login))).has_value());
}

// Each cut of each message is refused, and none is read beyond its end (a sanitizer would see).
TEST(Request, CutMessagesAreRefused) {
  const LoginOptions login;
  const std::string body = RequestBodyDer(login), pack = AuthPackDer(login, body);
  for (size_t size = 0; size < body.size(); ++size) {
    EXPECT_FALSE(DecodeRequestBody(body.substr(0, size)).has_value()) << size;
  }
  for (size_t size = 0; size < pack.size(); ++size) {
    EXPECT_FALSE(DecodeAuthPack(pack.substr(0, size)).has_value()) << size;
  }
}

}  // namespace
}  // namespace mpckdc
