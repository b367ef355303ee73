// SPDX-License-Identifier: Apache-2.0
// For tests of AdminService over real gRPC, with packages built as mpc-admin builds them.
#ifndef MPC_SERVER_TESTING_ADMIN_SERVICE_FIXTURE_H_
#define MPC_SERVER_TESTING_ADMIN_SERVICE_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sodium.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/key/string_to_key.h"
#include "mpc-server/package/package.h"
#include "mpc-server/package/package_open.h"
#include "mpc-server/service/admin_service.h"
#include "mpc-server/testing/memory_share_store.h"
#include "mpc-server/testing/service_fixture.h"

namespace mpckdc {

inline constexpr int kParty = 1;
inline const std::string kTxn(16, 't');

inline v1::KeyInfo AliceInfo() {
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
    collector_ = std::make_unique<RetiredCollector>(&store_, audit_.get(), absl::Hours(24));
    tools.collector = collector_.get();
    tools.max_renewable_life = absl::Hours(24 * 7);
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
                              plain.size(), AsBytes(key).data()),
              0);
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
    EXPECT_THAT(status.error_message(), ::testing::HasSubstr(text));
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
  std::unique_ptr<RetiredCollector> collector_;
  absl::StatusOr<PackageKey> package_key_ = absl::UnknownError("");
  absl::StatusOr<Authority> authority_ = absl::UnknownError("");
  std::unique_ptr<AdminService> service_;
  TestCert cert_;
  std::unique_ptr<v1::AdminService::Stub> stub_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_ADMIN_SERVICE_FIXTURE_H_
