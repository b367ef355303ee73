// SPDX-License-Identifier: Apache-2.0
// AdminService over real gRPC: who may call, status, readmission, and a key's way from staging to
// deletion.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "mpc-server/base/version.h"
#include "mpc-server/share/session.h"
#include "mpc-server/testing/admin_service_fixture.h"

namespace mpckdc {
namespace {

using ::testing::HasSubstr;

template <class Request>
void AddKey(Request& request, char handle, const std::string& principal = "alice@EXAMPLE.COM") {
  v1::NamedKey* key = request.add_keys();
  key->set_handle(std::string(16, handle));
  key->set_principal(principal);
}

TEST_F(AdminServiceTest, StatusSaysWhoThisServerIs) {
  v1::StatusRequest request;
  request.set_min_version(1);
  request.set_max_version(1);
  v1::StatusReply reply;
  ASSERT_TRUE(Call(&v1::AdminService::Stub::GetStatus, request, &reply).ok());
  EXPECT_EQ(reply.party(), static_cast<uint32_t>(kParty));
  EXPECT_EQ(reply.realm(), "EXAMPLE.COM");
  EXPECT_EQ(reply.package_key(), package_key_->public_key());
  EXPECT_TRUE(reply.peers_connected());
  EXPECT_EQ(reply.batches(), 5u);
  EXPECT_EQ(reply.software(), "mpc-server " MPCKDC_VERSION);
  EXPECT_EQ(reply.peer_protocol(), kPeerProtocolMax);
  request.set_min_version(limits::kMaxClientVersion + 1);
  request.set_max_version(limits::kMaxClientVersion + 1);
  EXPECT_EQ(Call(&v1::AdminService::Stub::GetStatus, request, &reply).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(AdminServiceTest, ReadmitEndsAQuarantineAndIsAudited) {
  const DeviationReport report{Suspects::Neighbours(0),
                               "two stories",
                               {1, 2},
                               7,
                               absl::FromUnixMicros(1'800'000'000'000'000)};
  engine_.set_quarantine(report);
  v1::StatusRequest ask;
  ask.set_max_version(1);
  v1::StatusReply status;
  ASSERT_TRUE(Call(&v1::AdminService::Stub::GetStatus, ask, &status).ok());
  EXPECT_EQ(status.quarantine().text(), "two stories");
  EXPECT_EQ(status.quarantine().suspects_size(), 2);
  EXPECT_EQ(status.quarantine().batch(), 7u);
  EXPECT_EQ(status.quarantine().time_us(), 1'800'000'000'000'000);
  EXPECT_EQ(status.security(), "active");

  v1::ReadmitReply reply;
  ASSERT_TRUE(Call(&v1::AdminService::Stub::Readmit, v1::ReadmitRequest(), &reply).ok());
  EXPECT_EQ(reply.ended().text(), "two stories");
  EXPECT_THAT(ReadFileForTest(AuditFile()), HasSubstr("\"call\":\"Readmit\""));
  EXPECT_THAT(ReadFileForTest(AuditFile()),
              HasSubstr("\"ended\":true,\"suspects\":[1,2],\"text\":\"two stories\""));
  reply.Clear();
  ASSERT_TRUE(Call(&v1::AdminService::Stub::Readmit, v1::ReadmitRequest(), &reply).ok());
  EXPECT_FALSE(reply.has_ended());
  EXPECT_THAT(ReadFileForTest(AuditFile()), HasSubstr("\"ended\":false"));
  status.Clear();
  ASSERT_TRUE(Call(&v1::AdminService::Stub::GetStatus, ask, &status).ok());
  EXPECT_FALSE(status.has_quarantine());
}

TEST_F(AdminServiceTest, ARefreshIsAskedForAndAudited) {
  v1::RefreshRequest request;
  request.set_epoch(1);
  v1::RefreshReply reply;
  ASSERT_TRUE(store_.MarkInitialised().ok());
  ASSERT_TRUE(Call(&v1::AdminService::Stub::Refresh, request, &reply).ok());
  EXPECT_EQ(reply.epoch(), 1u) << "the engine that stands in refreshes nothing";
  EXPECT_THAT(ReadFileForTest(AuditFile()), HasSubstr("\"call\":\"Refresh\""));
  request.set_epoch(2);
  EXPECT_EQ(Call(&v1::AdminService::Stub::Refresh, request, &reply).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(AdminServiceTest, KdcMayReadTheStatusAndNothingElse) {
  const TestCert kdc = port_.authority().IssueRole("kdc", "kdc1");
  stub_ = v1::AdminService::NewStub(port_.Connect(&kdc));
  v1::StatusRequest request;
  request.set_max_version(1);
  v1::StatusReply status;
  EXPECT_TRUE(Call(&v1::AdminService::Stub::GetStatus, request, &status).ok());
  ASSERT_EQ(status.callers_size(), 1);
  EXPECT_EQ(status.callers(0).name(), "kdc/kdc1");
  EXPECT_NEAR(static_cast<double>(status.callers(0).expires_us() - absl::ToUnixMicros(absl::Now())),
              3600e6, 60e6);
  v1::DeleteKeysRequest remove;
  remove.add_keys()->set_handle(std::string(16, 'a'));
  v1::DeleteKeysReply removed;
  const grpc::Status refused = Call(&v1::AdminService::Stub::DeleteKeys, remove, &removed);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(refused.error_message(), HasSubstr("DeleteKeys needs the role admin"));
  EXPECT_THAT(refused.error_message(), HasSubstr("the caller is kdc"));
  grpc::ClientContext context;
  auto list = stub_->ListKeys(&context, {});
  v1::ListKeysReply reply;
  EXPECT_FALSE(list->Read(&reply));
  EXPECT_EQ(list->Finish().error_code(), grpc::StatusCode::PERMISSION_DENIED);
  engine_.set_quarantine({Suspects::One(1), "a lie", {}, 0, absl::Now()});
  v1::ReadmitReply readmitted;
  EXPECT_EQ(Call(&v1::AdminService::Stub::Readmit, v1::ReadmitRequest(), &readmitted).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(engine_.Status().quarantine.has_value());
}

TEST_F(AdminServiceTest, InitRealmChecksTheNames) {
  v1::InitRealmRequest request;
  request.set_realm("EXAMPLE.COM");
  request.set_cluster(7);
  v1::InitRealmReply reply;
  ASSERT_TRUE(Call(&v1::AdminService::Stub::InitRealm, request, &reply).ok());
  EXPECT_TRUE(reply.already());
  request.set_realm("OTHER.COM");
  const grpc::Status status = Call(&v1::AdminService::Stub::InitRealm, request, &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("OTHER.COM"));
  EXPECT_THAT(status.error_message(), HasSubstr("EXAMPLE.COM, cluster 7"));
}

TEST_F(AdminServiceTest, StagedKeyIsCommittedListedAndDeleted) {
  ASSERT_TRUE(Stage({Package({})}).ok());
  uint32_t committed = 0;
  ASSERT_TRUE(Commit(kTxn, &committed).ok());
  EXPECT_EQ(committed, 1u);
  Handle handle;
  handle.fill('a');
  const KeyRecord record = *store_.Get(handle);
  EXPECT_EQ(record.info.kvno, 3u);
  EXPECT_EQ(record.usages.size(), 3u);

  v1::SetPolicyRequest policy;
  policy.set_principal("alice@EXAMPLE.COM");
  policy.add_handles(std::string(16, 'a'));
  policy.set_gate(v1::GATE_KDC_TRUSTED);
  v1::SetPolicyReply set;
  ASSERT_TRUE(Call(&v1::AdminService::Stub::SetPolicy, policy, &set).ok());
  v1::ListKeysRequest list;
  list.set_principal("alice@EXAMPLE.COM");
  const std::vector<v1::ListKeysReply> listed = List(list);
  ASSERT_EQ(listed.size(), 1u);
  ASSERT_EQ(listed[0].keys_size(), 1);
  EXPECT_EQ(listed[0].keys(0).gate(), v1::GATE_KDC_TRUSTED);

  v1::DeleteKeysRequest remove;
  AddKey(remove, 'a');
  AddKey(remove, 'b');
  remove.set_now(true);
  v1::DeleteKeysReply removed;
  ASSERT_TRUE(Call(&v1::AdminService::Stub::DeleteKeys, remove, &removed).ok());
  EXPECT_EQ(removed.deleted(), 1u);

  const std::string audit = ReadFileForTest(AuditFile());
  for (const char* call : {"StageKeys", "CommitKeys", "SetPolicy", "ListKeys", "DeleteKeys"}) {
    EXPECT_THAT(audit, HasSubstr(std::string("\"call\":\"") + call + "\",\"who\":\"admin/root\""));
  }
  EXPECT_THAT(audit, HasSubstr("alice@EXAMPLE.COM"));
  for (const SharedBlock& share : record.base) {
    EXPECT_FALSE(absl::StrContains(audit, AsText(share.x)));
    EXPECT_FALSE(absl::StrContains(audit, absl::BytesToHexString(AsText(share.x))));
  }
}

// Deleted, restored and deleted again; what the status, the list and the audit log say meanwhile.
TEST_F(AdminServiceTest, ADeletedKeyIsRetiredAndCanBeRestored) {
  ASSERT_TRUE(Stage({Package({})}).ok());
  ASSERT_TRUE(Commit(kTxn).ok());
  Handle handle;
  handle.fill('a');
  const auto retired = [&] {
    v1::StatusRequest ask;
    ask.set_max_version(2);
    v1::StatusReply status;
    EXPECT_TRUE(Call(&v1::AdminService::Stub::GetStatus, ask, &status).ok());
    EXPECT_EQ(status.delete_grace_us(), absl::ToInt64Microseconds(absl::Hours(24)));
    EXPECT_EQ(status.keys(), 1u);
    return status.retired();
  };
  v1::DeleteKeysRequest remove;
  AddKey(remove, 'a', "bob@EXAMPLE.COM");
  v1::DeleteKeysReply removed;
  ASSERT_TRUE(Call(&v1::AdminService::Stub::DeleteKeys, remove, &removed).ok());
  EXPECT_EQ(removed.deleted(), 0u);
  ASSERT_EQ(removed.refused_size(), 1);
  EXPECT_THAT(removed.refused(0).reason(), HasSubstr("a key of alice@EXAMPLE.COM, not of bob"));
  EXPECT_THAT(ReadFileForTest(AuditFile()), HasSubstr("\"refused\":[{\"handle\":\"6161"));
  EXPECT_EQ(retired(), 0u);

  remove.Clear();
  AddKey(remove, 'a');
  ASSERT_TRUE(Call(&v1::AdminService::Stub::DeleteKeys, remove, &removed).ok());
  EXPECT_EQ(removed.deleted(), 1u);
  EXPECT_EQ(retired(), 1u);
  EXPECT_TRUE(store_.Get(handle).ok()) << "it works until it is collected";
  for (const bool only_retired : {false, true}) {
    v1::ListKeysRequest list;
    list.set_retired(only_retired);
    const std::vector<v1::ListKeysReply> listed = List(list);
    ASSERT_EQ(listed.size(), 1u);
    EXPECT_GT(listed[0].keys(0).retired_us(), 0);
  }
  v1::RestoreKeysRequest restore;
  AddKey(restore, 'a');
  v1::RestoreKeysReply restored;
  ASSERT_TRUE(Call(&v1::AdminService::Stub::RestoreKeys, restore, &restored).ok());
  EXPECT_EQ(restored.restored(), 1u);
  EXPECT_EQ(retired(), 0u);
  v1::ListKeysRequest list;
  list.set_retired(true);
  EXPECT_TRUE(List(list).empty());
}

TEST_F(AdminServiceTest, AnOldToolIsTold) {
  ASSERT_TRUE(Stage({Package({})}).ok());
  ASSERT_TRUE(Commit(kTxn).ok());
  v1::DeleteKeysRequest remove;
  remove.add_handles(std::string(16, 'a'));
  v1::DeleteKeysReply removed;
  const grpc::Status refused = Call(&v1::AdminService::Stub::DeleteKeys, remove, &removed);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(), HasSubstr("of an older version"));
  EXPECT_EQ(*store_.Count(KeyState::kCommitted), 1u);
}

// By the last time that the peers confirmed, and only with good clocks.
TEST_F(AdminServiceTest, CollectsWhenTheTimeIsUp) {
  ASSERT_TRUE(Stage({Package({})}).ok());
  ASSERT_TRUE(Commit(kTxn).ok());
  Handle handle;
  handle.fill('a');
  const absl::Time deleted = absl::Now() - absl::Hours(24) - absl::Seconds(1);
  ASSERT_TRUE(store_.Retire({{handle, "alice@EXAMPLE.COM"}}, deleted).ok());
  v1::CollectKeysReply reply;
  for (const absl::Time confirmed :
       {absl::InfinitePast(), deleted, deleted + absl::Hours(24) - absl::Seconds(1)}) {
    engine_.set_clock_confirmed(confirmed);
    ASSERT_TRUE(Call(&v1::AdminService::Stub::CollectKeys, v1::CollectKeysRequest(), &reply).ok());
    EXPECT_EQ(reply.collected(), 0u) << "this server's clock may have leapt since";
  }
  EngineStatus status;
  status.clock_confirmed = absl::Now();
  for (const bool connected : {false, true}) {
    status.peers_connected = connected;
    status.clock_suspect = connected;
    EXPECT_TRUE(absl::IsFailedPrecondition(collector_->Collect(status).status()));
  }
  EXPECT_TRUE(store_.Get(handle).ok());
  engine_.set_clock_confirmed(absl::Now());
  ASSERT_TRUE(Call(&v1::AdminService::Stub::CollectKeys, v1::CollectKeysRequest(), &reply).ok());
  EXPECT_EQ(reply.collected(), 1u);
  EXPECT_FALSE(reply.more());
  EXPECT_TRUE(absl::IsNotFound(store_.Get(handle).status()));
  EXPECT_THAT(ReadFileForTest(AuditFile()), HasSubstr("\"call\":\"collect\",\"count\":1"));
}

TEST_F(AdminServiceTest, NoActGoesUnrecorded) {
  v1::StatusRequest ask;
  ask.set_max_version(1);
  v1::StatusReply status;
  ASSERT_TRUE(Call(&v1::AdminService::Stub::GetStatus, ask, &status).ok());
  const AuditStatus audit = audit_->Status();
  EXPECT_EQ(status.audit_seq(), audit.head.seq);
  EXPECT_EQ(absl::BytesToHexString(status.audit_head()), audit.head.hash);

  // No file may grow: what a full disk does, without a disk.
  signal(SIGXFSZ, SIG_IGN);
  struct rlimit before = {};
  getrlimit(RLIMIT_FSIZE, &before);
  struct rlimit limit = before;
  limit.rlim_cur = ReadFileForTest(AuditFile()).size();
  setrlimit(RLIMIT_FSIZE, &limit);
  EXPECT_FALSE(audit_->Append("sealing", AuditLog::Fields()).ok());
  const grpc::Status refused = Stage({Package({})});
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(refused.error_message(), HasSubstr("cannot audit"));
  EXPECT_EQ(*store_.Count(KeyState::kStaged), 0u);
  EXPECT_TRUE(Call(&v1::AdminService::Stub::GetStatus, ask, &status).ok()) << "says why";
  audit_->Tick();
  EXPECT_TRUE(Stage({Package({})}).ok()) << "there is room again";
}

TEST_F(AdminServiceTest, FullDiskIsSaidAndCanBeTriedAgain) {
  store_.FailWrites(absl::ResourceExhaustedError("disk full: test"));
  const grpc::Status status = Stage({Package({})});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("disk full"));
  store_.FailWrites(absl::OkStatus());
  EXPECT_TRUE(Stage({Package({})}).ok());
}

TEST_F(AdminServiceTest, MalformedArgumentsAreNamed) {
  EXPECT_THAT(Stage({Package({})}, "short").error_message(),
              HasSubstr("the transaction id has 5 bytes instead of 16"));
  EXPECT_EQ(Stage({}).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Commit(std::string(16, 'x')).error_code(), grpc::StatusCode::NOT_FOUND);
  v1::SetPolicyRequest policy;
  policy.set_principal("alice@EXAMPLE.COM");
  policy.add_handles(std::string(16, 'a'));
  v1::SetPolicyReply set;
  EXPECT_EQ(Call(&v1::AdminService::Stub::SetPolicy, policy, &set).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  policy.set_gate(v1::GATE_NONE);
  EXPECT_EQ(Call(&v1::AdminService::Stub::SetPolicy, policy, &set).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(AdminServiceTest, AGateIsSetByThePrincipalToo) {
  ASSERT_TRUE(Stage({Package({})}).ok());
  ASSERT_TRUE(Commit(kTxn).ok());
  v1::SetPolicyRequest policy;
  policy.add_handles(std::string(16, 'a'));
  policy.set_gate(v1::GATE_NONE);
  const auto refusal = [&] {
    v1::SetPolicyReply reply;
    const grpc::Status s = Call(&v1::AdminService::Stub::SetPolicy, policy, &reply);
    EXPECT_EQ(s.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    return s.error_message();
  };
  EXPECT_THAT(refusal(), HasSubstr("of an older version"));
  policy.set_principal("mallory@EXAMPLE.COM");
  EXPECT_THAT(refusal(), HasSubstr("of alice@EXAMPLE.COM, not of mallory@EXAMPLE.COM"));
  Handle handle;
  handle.fill('a');
  EXPECT_EQ(store_.Get(handle)->info.gate, Gate::kTimestamp);
}

TEST_F(AdminServiceTest, EngineDrawsAndVerifies) {
  v1::DrawKeyRequest draw;
  draw.set_transaction(kTxn);
  *draw.mutable_info() = AliceInfo();
  draw.mutable_info()->set_principal("krbtgt/EXAMPLE.COM@EXAMPLE.COM");
  draw.mutable_info()->set_key_class(v1::KEY_CLASS_TGS);
  v1::DrawKeyReply drawn;
  ASSERT_TRUE(Call(&v1::AdminService::Stub::DrawKey, draw, &drawn).ok());
  EXPECT_EQ(engine_.drawn().key_class, KeyClass::kTgs);
  engine_.set_draw_status(absl::UnavailableError("peer down"));
  EXPECT_EQ(Call(&v1::AdminService::Stub::DrawKey, draw, &drawn).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  v1::VerifyKeysRequest verify;
  verify.set_request(std::string(16, 'r'));
  verify.add_handles(std::string(16, 'a'));
  verify.add_handles(std::string(16, '\0'));
  v1::VerifyKeysReply verified;
  ASSERT_TRUE(Call(&v1::AdminService::Stub::VerifyKeys, verify, &verified).ok());
  ASSERT_EQ(verified.results_size(), 2);
  EXPECT_FALSE(verified.results(0).consistent());
  EXPECT_TRUE(verified.results(1).consistent());
}

class NewRealmTest : public AdminServiceTest {
 protected:
  void Initialise() override {}
};

TEST_F(NewRealmTest, UninitialisedRealmTakesNoKeys) {
  const grpc::Status status = Stage({Package({})});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("mpc-admin init-realm"));
}

}  // namespace
}  // namespace mpckdc
