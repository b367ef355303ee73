// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/enroll/transaction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/key/string_to_key.h"
#include "mpc-server/testing/enrolment.h"
#include "mpc-server/testing/fake_admin_service.h"

namespace mpckdc::enroll {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using When = FakeAdminServer::When;

constexpr TransactionTimeouts kQuick = {.stage = absl::Seconds(5),
                                        .draw = absl::Seconds(5),
                                        .commit = absl::Seconds(5),
                                        .cleanup = absl::Seconds(1),
                                        .commit_pause = absl::Milliseconds(5)};

class TransactionTest : public testing::Test {
 protected:
  TransactionTest() : servers_(realm_.Connect()) {
    const absl::Status s = servers_.Check(absl::Seconds(5), 1);
    EXPECT_TRUE(s.ok()) << s;
  }

  absl::Status EnrolTwoKeys() {
    KeyTransaction transaction(&servers_, kQuick);
    for (const int32_t enctype : {kEnctypeAes128Gcm, kEnctypeAes256Gcm}) {
      const SecretBytes base(BaseKeyBytes(enctype), 0x33);
      RETURN_IF_ERROR(transaction.Add({{TestKeyInfo(enctype), base}}, TestSigner()));
    }
    return transaction.Run();
  }

  // A transaction of one key, and perhaps one drawn.
  std::unique_ptr<KeyTransaction> WithKeys(bool shared, bool drawn = false) {
    auto transaction = std::make_unique<KeyTransaction>(&servers_, kQuick);
    if (shared) {
      EXPECT_TRUE(transaction->Add({{TestKeyInfo(), SecretBytes(32, 1)}}, TestSigner()).ok());
    }
    if (drawn) {
      EXPECT_TRUE(transaction->AddDrawn(TestKeyInfo(kEnctypeAes128Gcm)).ok());
    }
    return transaction;
  }

  void ExpectEachHas(size_t keys) {
    for (auto& server : realm_.servers) EXPECT_EQ(server->committed().size(), keys);
  }

  void ExpectNothingLeft(const std::vector<int>& parties = {0, 1, 2}) {
    for (const int party : parties) {
      auto& server = realm_.servers[party];
      EXPECT_EQ(server->staged(), 0u);
      EXPECT_TRUE(server->committed().empty());
    }
  }

  FakeRealm realm_;
  AdminServers servers_;
};

TEST_F(TransactionTest, AllThreeHaveSharesOfTheSameKeys) {
  ASSERT_TRUE(EnrolTwoKeys().ok());
  const auto first = realm_.servers[0]->committed();
  ASSERT_EQ(first.size(), 2u);
  for (const auto& [handle, package] : first) {
    EXPECT_EQ(realm_.Joined(handle), std::string(BaseKeyBytes(package.info().enctype()), 0x33));
  }
}

// More keys than one call takes: several calls, one transaction.
TEST_F(TransactionTest, ManyKeysGoInSeveralCalls) {
  std::vector<KeyToShare> keys;
  for (size_t i = 0; i < limits::kMaxKeysPerCall + 10; ++i) {
    keys.push_back({TestKeyInfo(kEnctypeAes128Gcm), SecretBytes(16, static_cast<uint8_t>(i))});
  }
  KeyTransaction transaction(&servers_, kQuick);
  ASSERT_TRUE(transaction.Add(keys, TestSigner()).ok());
  ASSERT_TRUE(transaction.Run().ok());
  for (auto& server : realm_.servers) {
    EXPECT_EQ(server->committed().size(), keys.size());
    EXPECT_EQ(server->calls("StageKeys"), 2);
    EXPECT_EQ(server->calls("CommitKeys"), 1);
  }
  KeyTransaction twice(&servers_, kQuick);
  keys.resize(2);
  keys[1] = keys[0];
  EXPECT_FALSE(twice.Add(keys, TestSigner()).ok()) << "one handle, two keys";
}

TEST_F(TransactionTest, AListOfManyPagesIsWhole) {
  v1::SharePackage package;
  for (size_t i = 0; i < limits::kMaxListKeysPerCall + 10; ++i) {
    package.mutable_info()->set_handle(RandomIdentifier());
    realm_.servers[0]->Plant(package);
  }
  // Which the two others do not have.
  const auto most = servers_.MostKeys(absl::Seconds(20));
  ASSERT_TRUE(most.ok()) << most.status();
  const auto keys =
      servers_.at(0).ListAllKeys(Listed::kCommitted, most->at(0), absl::Seconds(20));
  ASSERT_TRUE(keys.ok()) << keys.status();
  std::set<std::string> handles;
  for (const v1::KeyInfo& key : *keys) handles.insert(key.handle());
  EXPECT_EQ(handles.size(), limits::kMaxListKeysPerCall + 10);
  EXPECT_EQ(realm_.servers[0]->calls("ListKeys"), 2);
}

// ---- Renaming ----

class RenameTransactionTest : public TransactionTest {
 protected:
  RenameTransactionTest() {
    EXPECT_TRUE(EnrolTwoKeys().ok());
    for (const auto& [handle, package] : realm_.servers[0]->committed()) {
      keys_.push_back(As(handle));
    }
  }

  static v1::RenamedKey As(const std::string& handle) {
    v1::RenamedKey key;
    key.mutable_from()->set_handle(handle);
    key.mutable_from()->set_principal(TestKeyInfo().principal());
    key.set_to(RandomIdentifier());
    key.set_salt_type(4);
    key.set_salt("old salt");
    return key;
  }
  absl::Status Rename() {
    KeyTransaction transaction(&servers_, kQuick);
    RETURN_IF_ERROR(transaction.AddRenamed(keys_, "new@EXAMPLE.COM"));
    const absl::Status done = transaction.Run();
    unknown_ = transaction.unknown();
    return done;
  }
  void ExpectOldKeysAlone() {
    for (auto& server : realm_.servers) {
      EXPECT_EQ(server->staged(), 0u);
      EXPECT_EQ(server->committed().size(), 2u);
    }
  }

  std::vector<v1::RenamedKey> keys_;
  absl::flat_hash_set<std::string> unknown_;
};

TEST_F(RenameTransactionTest, AllThreeHaveTheSameKeyUnderTheNewName) {
  const absl::Status done = Rename();
  ASSERT_TRUE(done.ok()) << done;
  ExpectEachHas(4);
  for (const v1::RenamedKey& key : keys_) {
    EXPECT_EQ(realm_.Joined(key.to()), realm_.Joined(key.from().handle()));
    EXPECT_EQ(realm_.servers[2]->committed()[key.to()].info().principal(), "new@EXAMPLE.COM");
  }
}

// Each call of each server, refused before it did something and lost after it.
TEST_F(RenameTransactionTest, AFailureAnywhereLeavesTheOldKeysAlone) {
  for (const char* method : {"RenameKeys", "CommitKeys"}) {
    for (const When when : {When::kBefore, When::kAfter}) {
      for (auto& server : realm_.servers) {
        server->FailCalls(method, when, grpc::StatusCode::INTERNAL, 1);
        EXPECT_FALSE(Rename().ok()) << method;
        server->set_fault(nullptr);
        ExpectOldKeysAlone();
      }
    }
  }
  EXPECT_TRUE(Rename().ok());
}

TEST_F(RenameTransactionTest, ARefreshInBetweenIsToldAsSuch) {
  realm_.servers[1]->status().set_epoch(2);
  EXPECT_TRUE(absl::IsAborted(Rename()));
  ExpectOldKeysAlone();
}

// Of what the history names a key may be gone, at all three.
TEST_F(RenameTransactionTest, KeysThatAreGoneAreLeftOut) {
  keys_.push_back(As(RandomIdentifier()));
  keys_.back().mutable_from()->set_for_history(true);
  ASSERT_TRUE(Rename().ok());
  ExpectEachHas(4);
  EXPECT_TRUE(unknown_.contains(keys_.back().to()));
  EXPECT_EQ(unknown_.size(), 1u);
}

TEST_F(RenameTransactionTest, AKeyThatOneServerLacksIsAnError) {
  keys_.back().mutable_from()->set_for_history(true);
  v1::SharePackage kept = realm_.servers[0]->committed()[keys_[0].from().handle()];
  realm_.servers[0]->Clear();
  realm_.servers[0]->Plant(kept);
  const absl::Status done = Rename();
  EXPECT_TRUE(absl::IsUnavailable(done)) << done;
  EXPECT_THAT(done.message(), HasSubstr("not on all three servers"));
  EXPECT_EQ(realm_.servers[1]->staged(), 0u);
  EXPECT_EQ(realm_.servers[1]->committed().size(), 2u);
}

// Every call of every server refuses or is unreachable: nothing stays, and the same again works.
TEST_F(TransactionTest, FailureAnywhereLeavesNothing) {
  for (const char* method : {"StageKeys", "CommitKeys"}) {
    for (const When when : {When::kBefore, When::kAfter}) {
      for (const grpc::StatusCode code :
           {grpc::StatusCode::UNAVAILABLE, grpc::StatusCode::RESOURCE_EXHAUSTED}) {
        for (auto& server : realm_.servers) {
          SCOPED_TRACE(testing::Message() << method << " " << static_cast<int>(when) << " "
                                          << code << " " << server->status().party());
          server->FailCalls(method, when, code);
          const absl::Status s = EnrolTwoKeys();
          // A commit that took effect and is repeated answers well, so that case may succeed.
          if (s.ok()) {
            EXPECT_EQ(std::string(method), "CommitKeys");
            ExpectEachHas(2);
            for (auto& each : realm_.servers) each->Clear();
          } else {
            EXPECT_EQ(static_cast<int>(s.code()), static_cast<int>(code)) << s;
            EXPECT_THAT(std::string(s.message()),
                        AllOf(HasSubstr("no key was changed"), HasSubstr(server->address())));
          }
          ExpectNothingLeft();
          server->set_fault(nullptr);
        }
      }
    }
  }
  EXPECT_TRUE(EnrolTwoKeys().ok());
}

TEST_F(TransactionTest, ACommitWhoseAnswerIsLostIsRepeated) {
  realm_.servers[1]->FailCalls("CommitKeys", When::kAfter, grpc::StatusCode::UNAVAILABLE, 1);
  ASSERT_TRUE(EnrolTwoKeys().ok());
  EXPECT_EQ(realm_.servers[1]->calls("CommitKeys"), 2);
  ExpectEachHas(2);
}

TEST_F(TransactionTest, AServerThatDiesBeforeCommitIsNamed) {
  const auto transaction = WithKeys(/*shared=*/true);
  ASSERT_TRUE(transaction->Stage().ok());
  realm_.servers[2]->Stop();
  const absl::Status s = transaction->Commit();
  ASSERT_FALSE(s.ok());
  EXPECT_THAT(std::string(s.message()),
              AllOf(HasSubstr(realm_.servers[2]->address()), HasSubstr("doctor")));
  ExpectNothingLeft({0, 1});
}

TEST_F(TransactionTest, ATransactionThatIsLeftIsRolledBack) {
  {
    const auto transaction = WithKeys(/*shared=*/true);
    ASSERT_TRUE(transaction->Stage().ok());
    EXPECT_EQ(realm_.servers[0]->staged(), 1u);
  }
  ExpectNothingLeft();
}

TEST_F(TransactionTest, RollbackTakesCommittedKeysAway) {
  const auto transaction = WithKeys(/*shared=*/true);
  ASSERT_TRUE(transaction->Run().ok());
  EXPECT_TRUE(transaction->Rollback().ok());
  ExpectNothingLeft();
}

TEST_F(TransactionTest, DrawnAndSharedKeysGoTogether) {
  ASSERT_TRUE(WithKeys(/*shared=*/true, /*drawn=*/true)->Run().ok());
  ExpectEachHas(2);
}

TEST_F(TransactionTest, ADrawThatFailsLeavesNothing) {
  realm_.servers[1]->FailCalls("DrawKey", When::kAfter, grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_FALSE(WithKeys(/*shared=*/false, /*drawn=*/true)->Run().ok());
  ExpectNothingLeft();
}

TEST_F(TransactionTest, ACommitOfOtherKeysThanStagedIsAnError) {
  const auto transaction = WithKeys(/*shared=*/true, /*drawn=*/true);
  ASSERT_TRUE(transaction->Stage().ok());
  realm_.servers[0]->DropOneStaged();
  const absl::Status s = transaction->Commit();
  EXPECT_TRUE(absl::IsDataLoss(s)) << s;
  ExpectNothingLeft();
}

TEST_F(TransactionTest, MisuseIsRefused) {
  KeyTransaction transaction(&servers_, kQuick);
  EXPECT_FALSE(transaction.Stage().ok()) << "empty";
  EXPECT_FALSE(transaction.Commit().ok()) << "not staged";
  const v1::KeyInfo info = TestKeyInfo(kEnctypeAes256Gcm);
  ASSERT_TRUE(transaction.Add({{info, SecretBytes(32, 1)}}, TestSigner()).ok());
  EXPECT_FALSE(transaction.AddDrawn(info).ok()) << "same handle";
  ASSERT_TRUE(transaction.Run().ok());
  EXPECT_FALSE(transaction.Stage().ok()) << "finished";
  EXPECT_FALSE(transaction.AddDrawn(TestKeyInfo(kEnctypeAes128Gcm)).ok()) << "finished";
}

TEST_F(TransactionTest, CheckRefusesServersThatDoNotBelongTogether) {
  v1::StatusReply& status = realm_.servers[1]->status();
  const v1::StatusReply good = status;
  auto check = [&] {
    AdminServers servers = realm_.Connect();
    return std::string(servers.Check(absl::Seconds(5), 1).message());
  };
  EXPECT_EQ(check(), "");
  const std::pair<std::function<void()>, const char*> cases[] = {
      {[&] { status.set_party(2); }, "both say they are party 2"},
      {[&] { status.set_party(3); }, "says it is party 3"},
      {[&] { status.set_realm("OTHER.ORG"); }, "serves realm \"OTHER.ORG\", not EXAMPLE.COM"},
      {[&] { status.set_cluster(2); }, "belongs to cluster 2, expected 1"},
      {[&] { status.set_epoch(9); }, "epoch 9"},
      {[&] { status.set_version(1); }, "speaks version 1"},
      {[&] { status.set_version(3); }, "speaks version 3"},
      {[&] { status.set_initialised(false); }, "run mpc-admin init-realm"},
  };
  for (const auto& [change, complaint] : cases) {
    change();
    EXPECT_THAT(check(), HasSubstr(complaint));
    status = good;
  }
  realm_.servers[0]->Stop();
  EXPECT_THAT(check(), HasSubstr(realm_.servers[0]->address()));
}

// ---- Whom AdminServers::Dial believes, with real certificates on real connections ----

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
