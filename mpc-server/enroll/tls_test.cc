// SPDX-License-Identifier: Apache-2.0
//
// Whom AdminServers::Dial believes, with real certificates on real connections.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mpc-server/enroll/admin_client.h"
#include "mpc-server/testing/fake_admin_service.h"
#include "mpc-server/testing/identity.h"

namespace mpckdc::enroll {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class TlsTest : public testing::Test {
 protected:
  void Start(const std::vector<AdminIdentity>& identities) {
    servers_.clear();
    for (uint32_t party = 0; party < 3; ++party) {
      servers_.push_back(std::make_unique<FakeAdminServer>(party, "EXAMPLE.COM"));
      servers_.back()->Start(TlsServerCredentials(identities[party]));
    }
  }

  AdminIdentity Peer(const std::string& name, const std::string& host = "--ip 127.0.0.1") {
    return authority_.Issue("peer", name, host);
  }

  std::string DialAndCheck(const AdminIdentity& identity) {
    std::vector<std::string> addresses;
    for (const auto& server : servers_) addresses.push_back(server->address());
    absl::StatusOr<AdminServers> servers =
        AdminServers::Dial(identity, "EXAMPLE.COM", addresses);
    if (!servers.ok()) return std::string(servers.status().message());
    return std::string(servers->Check(absl::Seconds(5), 1).message());
  }

  TestAuthority authority_;
  std::vector<std::unique_ptr<FakeAdminServer>> servers_;
};

TEST_F(TlsTest, RightCertificatesWork) {
  Start({Peer("p0"), Peer("p1"), Peer("p2")});
  EXPECT_EQ(DialAndCheck(authority_.Issue("admin", "root")), "");
}

TEST_F(TlsTest, AServerOfAnotherRoleHostDateOrAuthorityIsRefused) {
  TestAuthority other;
  const AdminIdentity p0 = Peer("p0"), p1 = Peer("p1"), root = authority_.Issue("admin", "root");
  // Where only the role is wrong, purposes and host are a peer's.
  const std::pair<AdminIdentity, const char*> cases[] = {
      {authority_.Issue("kdc", "evil", "--ip 127.0.0.1 --server"), "expected role peer"},
      {Peer("elsewhere", "--dns elsewhere.example"), ""},
      {Peer("expired", "--ip 127.0.0.1 --expired"), ""},
      {other.Issue("peer", "p2", "--ip 127.0.0.1"), ""}};
  for (const auto& [third, complaint] : cases) {
    SCOPED_TRACE(third.certificate_file);
    Start({p0, p1, third});
    EXPECT_THAT(DialAndCheck(root), AllOf(HasSubstr(servers_[2]->address()), HasSubstr(complaint)));
    EXPECT_EQ(servers_[2]->calls("GetStatus"), 0) << "a request reached it";
  }
}

TEST_F(TlsTest, OneCertificateInTwoPlacesIsRefused) {
  const AdminIdentity p1 = Peer("p1");
  Start({Peer("p0"), p1, p1});
  EXPECT_THAT(DialAndCheck(authority_.Issue("admin", "root")),
              HasSubstr("two servers show the certificate spiffe://EXAMPLE.COM/mpc/peer/p1"));
}

TEST_F(TlsTest, OurOwnCertificateIsCheckedFirst) {
  Start({Peer("p0"), Peer("p1"), Peer("p2")});
  EXPECT_THAT(DialAndCheck(authority_.Issue("kdc", "kdc1")), HasSubstr("expected role admin"));
  EXPECT_THAT(DialAndCheck(authority_.Issue("admin", "late", "--expired")),
              HasSubstr("expired on"));
  AdminIdentity identity = authority_.Issue("admin", "root");
  identity.ca_file = identity.key_file;
  EXPECT_THAT(DialAndCheck(identity), HasSubstr("no PEM certificate"));
  identity.ca_file = "/nonexistent/ca.pem";
  EXPECT_THAT(DialAndCheck(identity), HasSubstr("cannot open /nonexistent/ca.pem"));
}

}  // namespace
}  // namespace mpckdc::enroll
