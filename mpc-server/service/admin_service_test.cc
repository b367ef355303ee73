// SPDX-License-Identifier: Apache-2.0
//
// AdminService over real gRPC, with packages built as mpc-admin builds them; then package by
// package everything that may be wrong with one.
#include "mpc-server/service/admin_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sodium.h>
#include <sys/resource.h>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/version.h"
#include "mpc-server/key/string_to_key.h"
#include "mpc-server/package/package.h"
#include "mpc-server/package/package_open.h"
#include "mpc-server/service/proto_convert.h"
#include "mpc-server/share/session.h"
#include "mpc-server/testing/memory_share_store.h"
#include "mpc-server/testing/records.h"
#include "mpc-server/testing/service_fixture.h"

namespace mpckdc {
namespace {

using ::testing::HasSubstr;

constexpr int kParty = 1;
const std::string kTxn(16, 't');

v1::KeyInfo AliceInfo() {
  v1::KeyInfo info;
  info.set_handle(std::string(16, 'a'));
  info.set_principal("alice@EXAMPLE.COM");
  info.set_kvno(3);
  info.set_enctype(kEnctypeAes256Gcm);
  info.set_salt("EXAMPLE.COMalice");
  info.set_key_class(v1::KEY_CLASS_USER);
  info.set_gate(v1::GATE_TIMESTAMP);
  return info;
}

class AdminServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(denied_.Load().ok());
    audit_ = OpenAudit(AuditFile());
    package_key_ = PackageKey::LoadOrCreate(store_, SystemRandom());
    authority_ = Authority::Load(port_.folder().File("ca.pem"));
    ASSERT_TRUE(package_key_.ok() && authority_.ok());
    AdminServiceTools tools;
    tools.store = &store_;
    tools.engine = &engine_;
    tools.security = SecurityName(Security::kActive);
    tools.doorkeeper = &doorkeeper_;
    tools.package_key = &*package_key_;
    tools.authority = &*authority_;
    tools.audit = audit_.get();
    refusals_ = std::make_unique<RefusalLog>(audit_.get(), &SystemClock());
    tools.refusals = refusals_.get();
    tools.metrics = &metrics_;
    tools.clock = &SystemClock();
    tools.isa = "portable";
    service_ = std::make_unique<AdminService>(tools);
    port_.Start({service_.get()}, static_cast<int>(limits::kMaxMessageBytes));
    cert_ = port_.authority().IssueRole("admin", "root");
    stub_ = v1::AdminService::NewStub(port_.Connect(&cert_));
    Initialise();
  }
  virtual void Initialise() { ASSERT_TRUE(store_.MarkInitialised().ok()); }
  void TearDown() override { port_.Stop(); }

  std::unique_ptr<AuditLog> OpenAudit(const std::string& path) {
    AuditLogOptions options;
    options.path = path;
    const StoreIdentity identity = store_.Meta().identity;
    options.owner = {identity.realm, identity.party};
    return *AuditLog::Open(std::move(options), &SystemClock());
  }
  std::string AuditFile() const { return port_.folder().File("audit.log"); }

  template <class Request, class Reply>
  grpc::Status Call(grpc::Status (v1::AdminService::Stub::*method)(grpc::ClientContext*,
                                                                   const Request&, Reply*),
                    const Request& request, Reply* reply) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(20)));
    return (stub_.get()->*method)(&context, request, reply);
  }

  struct PackageOptions {
    std::string realm = "EXAMPLE.COM";
    uint64_t epoch = 1;
    std::string txn = kTxn;
    v1::KeyInfo info = AliceInfo();
    const TestCert* signer = nullptr;
    bool to_us = true;
    int party = kParty;
  };

  // The package for `party`, sealed to this server's key.
  v1::SealedPackage Package(const PackageOptions& options) {
    enroll::PackageTarget target;
    target.realm = options.realm;
    target.epoch = options.epoch;
    for (int party = 0; party < 3; ++party) target.package_keys[party] = RandomKey();
    if (options.to_us) target.package_keys[options.party] = package_key_->public_key();
    const TestCert& cert = options.signer != nullptr ? *options.signer : cert_;
    auto signer = enroll::PackageSigner::FromPem(cert.certificate_pem, cert.key_pem);
    EXPECT_TRUE(signer.ok()) << signer.status();
    const SecretBytes base(BaseKeyBytes(options.info.enctype()), 7);
    auto packages = enroll::BuildPackages({{options.info, base}}, target, options.txn, *signer);
    EXPECT_TRUE(packages.ok()) << packages.status();
    return (*packages)[static_cast<size_t>(options.party)];
  }

  // A package that enrolment's own check would not let out: the server judges for itself.
  v1::SealedPackage Unchecked(const v1::KeyInfo& info) {
    v1::SharePackage contents;
    contents.set_version(1);
    contents.set_realm("EXAMPLE.COM");
    contents.set_party(kParty);
    contents.set_epoch(1);
    contents.set_transaction(kTxn);
    *contents.mutable_info() = info;
    contents.set_base_x(std::string(BaseKeyBytes(info.enctype()), 7));
    contents.set_base_a(std::string(BaseKeyBytes(info.enctype()), 8));
    const std::string plain = contents.SerializeAsString();
    std::string sealed(plain.size() + crypto_box_SEALBYTES, '\0');
    const std::string& key = package_key_->public_key();
    EXPECT_EQ(crypto_box_seal(reinterpret_cast<uint8_t*>(sealed.data()), AsBytes(plain).data(),
                              plain.size(), AsBytes(key).data()), 0);
    auto signer = enroll::PackageSigner::FromPem(cert_.certificate_pem, cert_.key_pem);
    v1::SealedPackage package;
    package.set_signature(*signer->Sign(sealed));
    package.set_sealed(std::move(sealed));
    package.set_signer(signer->certificate_der());
    return package;
  }

  static std::string RandomKey() {
    std::string secret(32, '\0');
    std::string key(32, '\0');
    crypto_box_keypair(reinterpret_cast<uint8_t*>(key.data()),
                       reinterpret_cast<uint8_t*>(secret.data()));
    return key;
  }

  grpc::Status Stage(const std::vector<v1::SealedPackage>& packages,
                     const std::string& txn = kTxn) {
    v1::StageKeysRequest request;
    request.set_transaction(txn);
    for (const v1::SealedPackage& package : packages) *request.add_packages() = package;
    v1::StageKeysReply reply;
    return Call(&v1::AdminService::Stub::StageKeys, request, &reply);
  }

  grpc::Status Commit(const std::string& txn, uint32_t* keys = nullptr) {
    v1::CommitKeysRequest request;
    request.set_transaction(txn);
    v1::CommitKeysReply reply;
    const grpc::Status status = Call(&v1::AdminService::Stub::CommitKeys, request, &reply);
    if (keys != nullptr) *keys = reply.keys();
    return status;
  }

  std::vector<v1::ListKeysReply> List(const v1::ListKeysRequest& request) {
    grpc::ClientContext context;
    auto reader = stub_->ListKeys(&context, request);
    std::vector<v1::ListKeysReply> replies;
    v1::ListKeysReply reply;
    while (reader->Read(&reply)) replies.push_back(reply);
    EXPECT_TRUE(reader->Finish().ok());
    return replies;
  }

  void ExpectRefused(const v1::SealedPackage& package, grpc::StatusCode code,
                     const std::string& text) {
    const grpc::Status status = Stage({package});
    EXPECT_EQ(status.error_code(), code) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(text));
    EXPECT_EQ(*store_.Count(KeyState::kStaged), 0u);
  }

  TestPort port_;
  FakeEngine engine_;
  MemoryShareStore store_{{"EXAMPLE.COM", kParty, 7}};
  DenyList denied_{""};
  Doorkeeper doorkeeper_{"EXAMPLE.COM", &denied_, &SystemClock()};
  Metrics metrics_;
  std::unique_ptr<AuditLog> audit_;
  std::unique_ptr<RefusalLog> refusals_;
  absl::StatusOr<PackageKey> package_key_ = absl::UnknownError("");
  absl::StatusOr<Authority> authority_ = absl::UnknownError("");
  std::unique_ptr<AdminService> service_;
  TestCert cert_;
  std::unique_ptr<v1::AdminService::Stub> stub_;
};

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
  request.set_min_version(2);
  request.set_max_version(2);
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

TEST_F(AdminServiceTest, KdcMayReadTheStatusAndNothingElse) {
  const TestCert kdc = port_.authority().IssueRole("kdc", "kdc1");
  stub_ = v1::AdminService::NewStub(port_.Connect(&kdc));
  v1::StatusRequest request;
  request.set_max_version(1);
  v1::StatusReply status;
  EXPECT_TRUE(Call(&v1::AdminService::Stub::GetStatus, request, &status).ok());
  v1::DeleteKeysRequest remove;
  remove.add_handles(std::string(16, 'a'));
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
  remove.add_handles(std::string(16, 'a'));
  remove.add_handles(std::string(16, 'b'));
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

TEST_F(AdminServiceTest, ManyKeysAreListedInSeveralMessages) {
  SeededRandomForTest random(1);
  std::vector<KeyRecord> records;
  constexpr size_t kKeys = 2 * limits::kMaxListKeysPerMessage + 3;
  for (size_t i = 0; i < kKeys; ++i) records.push_back(RecordForTest(random, "u@EXAMPLE.COM"));
  ASSERT_TRUE(store_.Stage(TransactionId{1}, records, absl::Now()).ok());
  v1::ListKeysRequest list;
  list.set_staged(true);
  const std::vector<v1::ListKeysReply> messages = List(list);
  size_t count = 0;
  for (const v1::ListKeysReply& keys : messages) count += static_cast<size_t>(keys.keys_size());
  EXPECT_EQ(count, kKeys);
  EXPECT_EQ(messages.size(), 3u);
}

// ---- What may be wrong with a package ----

TEST_F(AdminServiceTest, PackageForAnotherRealmPartyEpochOrTransactionIsRefused) {
  PackageOptions realm;
  realm.realm = "OTHER.COM";
  realm.info.set_principal("alice@OTHER.COM");
  ExpectRefused(Package(realm), grpc::StatusCode::INVALID_ARGUMENT, "realm EXAMPLE.COM");
  PackageOptions party;
  party.party = 2;
  ExpectRefused(Package(party), grpc::StatusCode::INVALID_ARGUMENT,
                "for party 2, this server is 1");
  PackageOptions epoch;
  epoch.epoch = 2;
  ExpectRefused(Package(epoch), grpc::StatusCode::INVALID_ARGUMENT,
                "for epoch 2, this server is 1");
  PackageOptions txn;
  txn.txn = std::string(16, 'u');
  ExpectRefused(Package(txn), grpc::StatusCode::INVALID_ARGUMENT, "another transaction");
}

TEST_F(AdminServiceTest, PackageSealedToAnotherServerIsRefused) {
  PackageOptions options;
  options.to_us = false;
  ExpectRefused(Package(options), grpc::StatusCode::INVALID_ARGUMENT, "does not open");
}

TEST_F(AdminServiceTest, AlteredPackageIsRefused) {
  const v1::SealedPackage good = Package({});
  v1::SealedPackage bad = good;
  (*bad.mutable_sealed())[40] ^= 1;
  ExpectRefused(bad, grpc::StatusCode::UNAUTHENTICATED, "signature");
  bad = good;
  (*bad.mutable_signature())[20] ^= 1;
  ExpectRefused(bad, grpc::StatusCode::UNAUTHENTICATED, "signature");
  bad = good;
  bad.set_signer(bad.signer().substr(1));
  ExpectRefused(bad, grpc::StatusCode::PERMISSION_DENIED, "no certificate");
  ASSERT_TRUE(Stage({good}).ok()) << "the good one is good";
}

TEST_F(AdminServiceTest, SignerMustBeAnAdministratorOfOurAuthority) {
  const auto signed_by = [&](const TestCert& cert) {
    PackageOptions options;
    options.signer = &cert;
    return Package(options);
  };
  ExpectRefused(signed_by(port_.authority().IssueRole("kdc", "k")),
                grpc::StatusCode::PERMISSION_DENIED, "needs the role admin");
  ExpectRefused(signed_by(TestAuthority().IssueRole("admin", "a")),
                grpc::StatusCode::PERMISSION_DENIED, "not trusted");
  TestCertOptions expired;
  expired.uris = {"spiffe://EXAMPLE.COM/mpc/admin/a"};
  expired.ends = -absl::Minutes(1);
  ExpectRefused(signed_by(port_.authority().Issue(expired)), grpc::StatusCode::PERMISSION_DENIED,
                "expired");
  TestCertOptions two;
  two.uris = {"spiffe://EXAMPLE.COM/mpc/admin/a", "spiffe://EXAMPLE.COM/mpc/kdc/k"};
  ExpectRefused(signed_by(port_.authority().Issue(two)), grpc::StatusCode::PERMISSION_DENIED,
                "2 URI names");
}

TEST_F(AdminServiceTest, KeyClassMustFitThePrincipal) {
  v1::KeyInfo info = AliceInfo();
  info.set_key_class(v1::KEY_CLASS_TGS);
  ExpectRefused(Unchecked(info), grpc::StatusCode::INVALID_ARGUMENT, "krbtgt principals");
}

TEST_F(AdminServiceTest, OneBadPackageOfTwoStagesNothing) {
  v1::SealedPackage bad = Package({});
  (*bad.mutable_sealed())[40] ^= 1;
  PackageOptions second;
  second.info.set_handle(std::string(16, 'b'));
  EXPECT_FALSE(Stage({Package(second), bad}).ok());
  EXPECT_EQ(*store_.Count(KeyState::kStaged), 0u);
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
  policy.add_handles(std::string(16, 'a'));
  v1::SetPolicyReply set;
  EXPECT_EQ(Call(&v1::AdminService::Stub::SetPolicy, policy, &set).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  policy.set_gate(v1::GATE_NONE);
  EXPECT_EQ(Call(&v1::AdminService::Stub::SetPolicy, policy, &set).error_code(),
            grpc::StatusCode::NOT_FOUND);
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

// ---- Many keys ----

class ManyKeysTest : public AdminServiceTest {
 protected:
  // `count` keys in one package for this server.
  v1::SealedPackage PackageOf(size_t count) {
    std::vector<enroll::KeyToShare> keys;
    for (size_t i = 0; i < count; ++i) {
      v1::KeyInfo info = AliceInfo();
      info.set_handle(enroll::RandomIdentifier());
      keys.push_back({info, SecretBytes(32, static_cast<uint8_t>(i))});
    }
    enroll::PackageTarget target;
    target.realm = "EXAMPLE.COM";
    target.epoch = 1;
    for (std::string& key : target.package_keys) key = RandomKey();
    target.package_keys[kParty] = package_key_->public_key();
    auto signer = enroll::PackageSigner::FromPem(cert_.certificate_pem, cert_.key_pem);
    return (*enroll::BuildPackages(keys, target, kTxn, *signer))[kParty];
  }
};

TEST_F(ManyKeysTest, OnePackageStagesAllItsKeys) {
  ASSERT_TRUE(Stage({PackageOf(limits::kMaxKeysPerPackage), PackageOf(3)}).ok());
  EXPECT_EQ(*store_.Count(KeyState::kStaged), limits::kMaxKeysPerPackage + 3);
}

TEST_F(ManyKeysTest, ACallTakesNoMoreKeysThanTheLimit) {
  const std::vector<v1::SealedPackage> packages(
      limits::kMaxKeysPerCall / limits::kMaxKeysPerPackage + 1,
      PackageOf(limits::kMaxKeysPerPackage));
  const grpc::Status status = Stage(packages);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(*store_.Count(KeyState::kStaged), 0u);
}

TEST_F(ManyKeysTest, TheListComesInPages) {
  ASSERT_TRUE(Stage({PackageOf(10)}).ok());
  ASSERT_TRUE(Commit(kTxn).ok());
  v1::ListKeysRequest request;
  ASSERT_EQ(List(request).size(), 1u);
  EXPECT_EQ(List(request)[0].keys_size(), 10) << "without a limit all at once, as ever";
  EXPECT_EQ(List(request)[0].next(), "");
  request.set_limit(4);
  std::vector<int> sizes;
  std::set<std::string> handles;
  do {
    const std::vector<v1::ListKeysReply> page = List(request);
    ASSERT_EQ(page.size(), 1u);
    sizes.push_back(page[0].keys_size());
    for (const v1::KeyInfo& key : page[0].keys()) handles.insert(key.handle());
    request.set_from(page[0].next());
  } while (!request.from().empty());
  EXPECT_EQ(sizes, (std::vector<int>{4, 4, 2}));
  EXPECT_EQ(handles.size(), 10u);
  request.set_principal("nobody@EXAMPLE.COM");
  EXPECT_EQ(List(request)[0].keys_size(), 0);
  EXPECT_NE(List(request)[0].next(), "") << "looked at four, there are more";
}

TEST_F(ManyKeysTest, DecoderRefusesMixedAndTruncatedPackages) {
  const SecretBytes plain = *package_key_->Unseal(PackageOf(2).sealed());
  ASSERT_TRUE(DecodeSharePackage(plain, "EXAMPLE.COM").ok());
  v1::SharePackage package;
  ASSERT_TRUE(package.ParseFromArray(plain.data(), static_cast<int>(plain.size())));
  const auto decodes = [](const v1::SharePackage& p) {
    const std::string bytes = p.SerializeAsString();
    return DecodeSharePackage(AsBytes(bytes), "EXAMPLE.COM").ok();
  };
  ASSERT_TRUE(decodes(package));
  v1::SharePackage changed = package;
  changed.set_version(1);
  EXPECT_FALSE(decodes(changed)) << "version 1 has no list of keys";
  changed.set_version(3);
  EXPECT_FALSE(decodes(changed));
  changed = package;
  *changed.mutable_info() = package.keys(0).info();
  EXPECT_FALSE(decodes(changed)) << "a key outside of the list";
  changed = package;
  changed.clear_keys();
  EXPECT_FALSE(decodes(changed)) << "no key at all";
  changed = package;
  changed.mutable_keys(1)->clear_base_a();
  EXPECT_FALSE(decodes(changed));
  for (size_t size = 0; size < plain.size(); size += 7) {
    EXPECT_FALSE(
        DecodeSharePackage(absl::MakeConstSpan(plain).subspan(0, size), "EXAMPLE.COM").ok());
  }
}

// ---- The decoder against the generated class ----

TEST_F(AdminServiceTest, DecoderAgreesWithTheGeneratedClassAndRefusesTruncation) {
  const SecretBytes plain = *package_key_->Unseal(Package({}).sealed());
  v1::SharePackage reference;
  ASSERT_TRUE(reference.ParseFromArray(plain.data(), static_cast<int>(plain.size())));
  const auto decoded = DecodeSharePackage(plain, "EXAMPLE.COM");
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->transaction, reference.transaction());
  ASSERT_EQ(decoded->records[0].base.size(), 2u);
  EXPECT_EQ(AsText(decoded->records[0].base[1].x), reference.base_x().substr(16));
  EXPECT_EQ(AsText(decoded->records[0].base[1].a), reference.base_a().substr(16));
  for (size_t u = 0; u < 3; ++u) {
    const UsageKey& usage = decoded->records[0].usages[u];
    const v1::UsageShare& want = reference.usages(static_cast<int>(u));
    EXPECT_EQ(usage.usage, want.usage());
    EXPECT_EQ(AsText(usage.round_keys[14].x), want.round_keys_x().substr(14 * 16));
    EXPECT_EQ(AsText(usage.round_keys[3].a), want.round_keys_a().substr(3 * 16, 16));
    EXPECT_EQ(AsText(usage.h.x), want.h_x());
    EXPECT_EQ(AsText(usage.h.a), want.h_a());
  }
  for (size_t size = 0; size < plain.size(); ++size) {
    EXPECT_FALSE(
        DecodeSharePackage(absl::MakeConstSpan(plain).subspan(0, size), "EXAMPLE.COM").ok());
  }
  SecretBytes longer = plain;
  longer.push_back(0);
  EXPECT_FALSE(DecodeSharePackage(longer, "EXAMPLE.COM").ok());
}

// Enctypes 17 to 20: every field where the generated class has it, and nothing of a gcm key's.
TEST_F(AdminServiceTest, DecoderReadsEveryEnctype) {
  for (const Enctype& enctype : kEnctypes) {
    PackageOptions options;
    options.info.set_enctype(enctype.number);
    const SecretBytes plain = *package_key_->Unseal(Package(options).sealed());
    v1::SharePackage reference;
    ASSERT_TRUE(reference.ParseFromArray(plain.data(), static_cast<int>(plain.size())));
    const auto decoded = DecodeSharePackage(plain, "EXAMPLE.COM");
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    const KeyRecord& record = decoded->records[0];
    for (int u = 0; u < 3; ++u) {
      std::string x, a, mac_x, mac_a;
      for (const SharedBlock& share : record.usages[u].round_keys) {
        absl::StrAppend(&x, AsText(share.x));
        absl::StrAppend(&a, AsText(share.a));
      }
      for (const SharedBlock& share : record.usages[u].mac_states) {
        absl::StrAppend(&mac_x, AsText(share.x));
        absl::StrAppend(&mac_a, AsText(share.a));
      }
      const v1::UsageShare& want = reference.usages(u);
      EXPECT_EQ(x, want.round_keys_x());
      EXPECT_EQ(a, want.round_keys_a());
      EXPECT_EQ(mac_x, want.mac_states_x());
      EXPECT_EQ(mac_a, want.mac_states_a());
      EXPECT_EQ(want.h_x().empty(), !enctype.is_gcm());
    }
  }
}

TEST_F(AdminServiceTest, DecoderRefusesWhatIsAnotherEnctypes) {
  const auto changed = [&](int32_t enctype, auto change) {
    PackageOptions options;
    options.info.set_enctype(enctype);
    const SecretBytes plain = *package_key_->Unseal(Package(options).sealed());
    v1::SharePackage package;
    EXPECT_TRUE(package.ParseFromArray(plain.data(), static_cast<int>(plain.size())));
    change(&package);
    const std::string bytes = package.SerializeAsString();
    return DecodeSharePackage(AsBytes(bytes), "EXAMPLE.COM").ok();
  };
  EXPECT_TRUE(changed(18, [](v1::SharePackage*) {}));
  EXPECT_FALSE(changed(18, [](v1::SharePackage* p) {
    p->mutable_usages(0)->set_h_x(std::string(16, 'h'));
    p->mutable_usages(0)->set_h_a(std::string(16, 'h'));
  })) << "H beside the states of an HMAC";
  EXPECT_FALSE(
      changed(18, [](v1::SharePackage* p) { p->mutable_usages(1)->clear_mac_states_a(); }));
  EXPECT_FALSE(changed(18, [](v1::SharePackage* p) {
    *p->mutable_usages(2)->mutable_round_keys_x() = p->usages(0).round_keys_x();
    *p->mutable_usages(2)->mutable_round_keys_a() = p->usages(0).round_keys_a();
  })) << "round keys in a usage of checksums";
  EXPECT_FALSE(changed(kEnctypeAes256Gcm, [](v1::SharePackage* p) {
    p->mutable_usages(0)->set_mac_states_x(std::string(64, 'm'));
    p->mutable_usages(0)->set_mac_states_a(std::string(64, 'm'));
  })) << "states of an HMAC beside H";
  EXPECT_FALSE(changed(18, [](v1::SharePackage* p) { p->mutable_info()->set_enctype(20); }))
      << "two sizes of states";
  EXPECT_FALSE(changed(18, [](v1::SharePackage* p) { p->mutable_info()->set_enctype(23); }));
}

}  // namespace
}  // namespace mpckdc
