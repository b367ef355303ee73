// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/package/certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mpc-server/testing/identity.h"

namespace mpckdc::enroll {
namespace {

using testing::HasSubstr;

TEST(RoleName, Parses) {
  const RoleName name = *ParseRoleName("spiffe://EXAMPLE.COM/mpc/admin/root");
  EXPECT_EQ(name.realm, "EXAMPLE.COM");
  EXPECT_EQ(name.role, "admin");
  EXPECT_EQ(name.name, "root");
  for (const char* bad :
       {"", "spiffe://", "http://EXAMPLE.COM/mpc/admin/root", "spiffe://EXAMPLE.COM/mpc/root/x",
        "spiffe://EXAMPLE.COM/mpc/admin/", "spiffe:///mpc/admin/x",
        "spiffe://EXAMPLE.COM/mpc/admin/x/y", "spiffe://EXAMPLE.COM/other/admin/x",
        "spiffe://EXAMPLE.COM/mpc/Admin/x"}) {
    EXPECT_FALSE(ParseRoleName(bad).ok()) << bad;
  }
}

TEST(Certificate, ChecksRoleRealmAndDates) {
  TestAuthority authority;
  const CertificateFacts admin =
      *ReadCertificate(authority.Issue("admin", "root").certificate_file);
  EXPECT_EQ(admin.uri, "spiffe://EXAMPLE.COM/mpc/admin/root");
  EXPECT_TRUE(CheckCertificate(admin, "x", "EXAMPLE.COM", "admin", absl::Now()).ok());
  auto why = [&](const CertificateFacts& facts, const char* realm, const char* role,
                 absl::Time now) {
    return std::string(CheckCertificate(facts, "who.pem", realm, role, now).message());
  };
  EXPECT_THAT(why(admin, "EXAMPLE.COM", "kdc", absl::Now()), HasSubstr("expected role kdc"));
  EXPECT_THAT(why(admin, "OTHER.ORG", "admin", absl::Now()), HasSubstr("in realm OTHER.ORG"));
  EXPECT_THAT(why(admin, "EXAMPLE.COM", "admin", admin.not_after + absl::Seconds(1)),
              HasSubstr("who.pem: the certificate expired on"));
  EXPECT_THAT(why(admin, "EXAMPLE.COM", "admin", admin.not_before - absl::Seconds(1)),
              HasSubstr("not valid before"));
  const CertificateFacts ca = *ReadCertificate(absl::StrCat(authority.directory(), "/ca.pem"));
  EXPECT_THAT(why(ca, "EXAMPLE.COM", "admin", absl::Now()), HasSubstr("has 0 URI names"));
  EXPECT_THAT(std::string(ReadCertificate(absl::StrCat(authority.directory(), "/admin-root.key"))
                              .status()
                              .message()),
              HasSubstr("no PEM certificate"));
}

}  // namespace
}  // namespace mpckdc::enroll
