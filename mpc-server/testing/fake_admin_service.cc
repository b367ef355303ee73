// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/testing/fake_admin_service.h"

#include <sodium.h>

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/version.h"
#include "mpc-server/package/certificate.h"
#include "mpc-server/testing/join.h"

namespace mpckdc::enroll {
namespace {

grpc::Status Invalid(const std::string& text) {
  return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, text);
}

// A package of several keys as if each had come alone.
std::vector<v1::SharePackage> OneByOne(v1::SharePackage package) {
  if (package.keys_size() == 0) return {std::move(package)};
  std::vector<v1::SharePackage> all;
  for (v1::KeyShare& key : *package.mutable_keys()) {
    v1::SharePackage& one = all.emplace_back();
    *one.mutable_info() = std::move(*key.mutable_info());
    one.set_base_x(key.base_x());
    one.set_base_a(key.base_a());
    *one.mutable_usages() = std::move(*key.mutable_usages());
  }
  return all;
}

}  // namespace

FakeAdminServer::FakeAdminServer(uint32_t party, std::string realm) {
  if (sodium_init() < 0) std::abort();
  std::string public_key(crypto_box_PUBLICKEYBYTES, '\0');
  secret_key_.resize(crypto_box_SECRETKEYBYTES);
  crypto_box_keypair(reinterpret_cast<unsigned char*>(public_key.data()),
                     reinterpret_cast<unsigned char*>(secret_key_.data()));
  status_.set_version(kAdminVersionMax);
  status_.set_software("mpc-server " MPCKDC_VERSION);
  status_.set_peer_protocol(5);
  status_.set_party(party);
  status_.set_realm(std::move(realm));
  status_.set_cluster(1);
  status_.set_epoch(1);
  status_.set_initialised(true);
  status_.set_package_key(public_key);
  status_.set_peers_connected(true);
  status_.set_certificate_expires_us(absl::ToUnixMicros(absl::Now() + absl::Hours(24 * 90)));
  status_.set_isa("portable");
  status_.set_security("active");
  status_.set_protocol("auto");
  status_.set_delete_grace_us(absl::ToInt64Microseconds(absl::Hours(24)));
  status_.set_max_renewable_life_us(absl::ToInt64Microseconds(absl::Hours(24 * 7)));
}

FakeAdminServer::~FakeAdminServer() { Stop(); }

void FakeAdminServer::Start(std::shared_ptr<grpc::ServerCredentials> credentials,
                            grpc::Service* also) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address(), std::move(credentials), &port_);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000);
  builder.RegisterService(this);
  if (also != nullptr) builder.RegisterService(also);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) std::abort();
}

std::string FakeAdminServer::address() const { return absl::StrCat("127.0.0.1:", port_); }

void FakeAdminServer::Stop() {
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  server_.reset();
}

std::unique_ptr<AdminClient> FakeAdminServer::NewClient() {
  return std::make_unique<AdminClient>(
      address(), v1::AdminService::NewStub(
                     grpc::CreateChannel(address(), grpc::InsecureChannelCredentials())));
}

void FakeAdminServer::FailCalls(std::string method, When when, grpc::StatusCode code, int times,
                                int spared) {
  auto seen = std::make_shared<std::atomic<int>>(0);
  set_fault([=](When at, const std::string& called) {
    if (called != method || at != when) return grpc::Status::OK;
    const int number = seen->fetch_add(1);
    return number < spared || number >= spared + times ? grpc::Status::OK
                                                       : grpc::Status(code, "injected");
  });
}

size_t FakeAdminServer::staged() {
  std::lock_guard<std::mutex> lock(mutex_);
  size_t keys = 0;
  for (const auto& [id, packages] : staged_) keys += packages.size();
  return keys;
}

grpc::Status FakeAdminServer::Step(When when, const std::string& method) {
  Fault fault;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (when == When::kBefore) ++calls_[method];
    fault = fault_;
  }
  return fault ? fault(when, method) : grpc::Status::OK;
}

grpc::Status FakeAdminServer::GetStatus(Context*, const v1::StatusRequest*,
                                        v1::StatusReply* reply) {
  if (grpc::Status s = Step(When::kBefore, "GetStatus"); !s.ok()) return s;
  std::lock_guard<std::mutex> lock(mutex_);
  *reply = status_;
  if (reply->time_us() == 0) reply->set_time_us(absl::ToUnixMicros(absl::Now()));
  reply->set_keys(committed_.size());
  return grpc::Status::OK;
}

grpc::Status FakeAdminServer::InitRealm(Context*, const v1::InitRealmRequest* request,
                                        v1::InitRealmReply* reply) {
  if (grpc::Status s = Step(When::kBefore, "InitRealm"); !s.ok()) return s;
  std::lock_guard<std::mutex> lock(mutex_);
  if (request->realm() != status_.realm() || request->cluster() != status_.cluster()) {
    return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "another realm's store");
  }
  reply->set_already(status_.initialised());
  status_.set_initialised(true);
  return grpc::Status::OK;
}

grpc::Status FakeAdminServer::Readmit(Context*, const v1::ReadmitRequest*,
                                      v1::ReadmitReply* reply) {
  if (grpc::Status s = Step(When::kBefore, "Readmit"); !s.ok()) return s;
  std::lock_guard<std::mutex> lock(mutex_);
  if (status_.has_quarantine()) *reply->mutable_ended() = status_.quarantine();
  status_.clear_quarantine();
  return grpc::Status::OK;
}

grpc::Status FakeAdminServer::OpenPackage(const v1::SealedPackage& sealed,
                                          const std::string& transaction,
                                          v1::SharePackage* package) {
  if (!VerifyPackageSignature(sealed.signer(), sealed.sealed(), sealed.signature()).ok()) {
    return grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "signature");
  }
  if (sealed.sealed().size() < crypto_box_SEALBYTES) return Invalid("too short");
  std::string plain(sealed.sealed().size() - crypto_box_SEALBYTES, '\0');
  if (crypto_box_seal_open(reinterpret_cast<unsigned char*>(plain.data()),
                           AsBytes(sealed.sealed()).data(), sealed.sealed().size(),
                           AsBytes(status_.package_key()).data(),
                           AsBytes(secret_key_).data()) != 0) {
    return Invalid("not sealed to this party");
  }
  if (!package->ParseFromString(plain)) return Invalid("no package");
  if (package->SerializeAsString() != plain) return Invalid("not protobuf's encoding");
  if (package->version() != (package->keys_size() == 0 ? 1 : 2) ||
      package->realm() != status_.realm() || package->party() != status_.party() ||
      package->epoch() != status_.epoch() || package->transaction() != transaction) {
    return Invalid("package for somebody else");
  }
  return grpc::Status::OK;
}

grpc::Status FakeAdminServer::StageKeys(Context*, const v1::StageKeysRequest* request,
                                        v1::StageKeysReply*) {
  if (grpc::Status s = Step(When::kBefore, "StageKeys"); !s.ok()) return s;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const v1::SealedPackage& sealed : request->packages()) {
      v1::SharePackage package;
      if (grpc::Status s = OpenPackage(sealed, request->transaction(), &package); !s.ok()) return s;
      for (v1::SharePackage& one : OneByOne(std::move(package))) {
        const std::string handle = one.info().handle();
        Staged(one);
        staged_[request->transaction()][handle] = std::move(one);
      }
    }
  }
  return Step(When::kAfter, "StageKeys");
}

grpc::Status FakeAdminServer::DrawKey(Context*, const v1::DrawKeyRequest* request,
                                      v1::DrawKeyReply*) {
  if (grpc::Status s = Step(When::kBefore, "DrawKey"); !s.ok()) return s;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    v1::SharePackage& package = staged_[request->transaction()][request->info().handle()];
    *package.mutable_info() = request->info();
  }
  return Step(When::kAfter, "DrawKey");
}

grpc::Status FakeAdminServer::RenameKeys(Context*, const v1::RenameKeysRequest* request,
                                         v1::RenameKeysReply* reply) {
  if (grpc::Status s = Step(When::kBefore, "RenameKeys"); !s.ok()) return s;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (request->epoch() != status_.epoch()) {
      return grpc::Status(grpc::StatusCode::ABORTED, "another epoch");
    }
    for (const v1::RenamedKey& key : request->keys()) {
      const auto found = committed_.find(key.from().handle());
      if (found == committed_.end() && key.from().for_history()) {
        reply->add_unknown(key.from().handle());
        continue;
      }
      if (found == committed_.end()) return grpc::Status(grpc::StatusCode::NOT_FOUND, "handle");
      if (found->second.info().principal() != key.from().principal()) return Invalid("principal");
      v1::SharePackage copy = found->second;
      copy.mutable_info()->set_handle(key.to());
      copy.mutable_info()->set_principal(request->principal());
      copy.mutable_info()->set_salt_type(key.salt_type());
      copy.mutable_info()->set_salt(key.salt());
      copy.mutable_info()->clear_retired_us();
      if (key.from().for_history()) copy.mutable_info()->set_key_class(v1::KEY_CLASS_HISTORY);
      Staged(copy);
      staged_[request->transaction()][key.to()] = std::move(copy);
      reply->set_keys(reply->keys() + 1);
    }
  }
  return Step(When::kAfter, "RenameKeys");
}

grpc::Status FakeAdminServer::CommitKeys(Context*, const v1::CommitKeysRequest* request,
                                         v1::CommitKeysReply* reply) {
  if (grpc::Status s = Step(When::kBefore, "CommitKeys"); !s.ok()) return s;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (auto done = done_.find(request->transaction()); done != done_.end()) {
      reply->set_keys(done->second);
      return grpc::Status::OK;
    }
    auto found = staged_.find(request->transaction());
    if (found == staged_.end()) return grpc::Status(grpc::StatusCode::NOT_FOUND, "transaction");
    reply->set_keys(found->second.size());
    done_[request->transaction()] = found->second.size();
    committed_.insert(found->second.begin(), found->second.end());
    for (const auto& [handle, package] : found->second) Committed(package);
    staged_.erase(found);
  }
  return Step(When::kAfter, "CommitKeys");
}

grpc::Status FakeAdminServer::AbortKeys(Context*, const v1::AbortKeysRequest* request,
                                        v1::AbortKeysReply* reply) {
  if (grpc::Status s = Step(When::kBefore, "AbortKeys"); !s.ok()) return s;
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = staged_.find(request->transaction());
  if (found == staged_.end()) return grpc::Status::OK;
  reply->set_keys(found->second.size());
  staged_.erase(found);
  return grpc::Status::OK;
}

grpc::Status FakeAdminServer::DeleteKeys(Context*, const v1::DeleteKeysRequest* request,
                                         v1::DeleteKeysReply* reply) {
  if (grpc::Status s = Step(When::kBefore, "DeleteKeys"); !s.ok()) return s;
  std::lock_guard<std::mutex> lock(mutex_);
  for (const v1::NamedKey& key : request->keys()) {
    const auto found = committed_.find(key.handle());
    if (found == committed_.end()) continue;
    if (found->second.info().principal() != key.principal()) {
      v1::RefusedKey* refused = reply->add_refused();
      refused->set_handle(key.handle());
      refused->set_reason("it is another principal's");
      continue;
    }
    reply->set_deleted(reply->deleted() + 1);
    if (!request->now()) {
      found->second.mutable_info()->set_retired_us(absl::ToUnixMicros(absl::Now()));
      found->second.mutable_info()->set_for_history(key.for_history());
    } else {
      committed_.erase(found);
    }
  }
  return grpc::Status::OK;
}

grpc::Status FakeAdminServer::RestoreKeys(Context*, const v1::RestoreKeysRequest* request,
                                          v1::RestoreKeysReply*) {
  if (grpc::Status s = Step(When::kBefore, "RestoreKeys"); !s.ok()) return s;
  std::lock_guard<std::mutex> lock(mutex_);
  for (const v1::NamedKey& key : request->keys()) {
    const auto found = committed_.find(key.handle());
    if (found != committed_.end()) found->second.mutable_info()->clear_retired_us();
  }
  return grpc::Status::OK;
}

grpc::Status FakeAdminServer::CollectKeys(Context*, const v1::CollectKeysRequest*,
                                          v1::CollectKeysReply* reply) {
  if (grpc::Status s = Step(When::kBefore, "CollectKeys"); !s.ok()) return s;
  std::lock_guard<std::mutex> lock(mutex_);
  const int64_t due = absl::ToUnixMicros(absl::Now()) - status_.delete_grace_us();
  reply->set_collected(std::erase_if(committed_, [due](const auto& key) {
    const int64_t retired = key.second.info().retired_us();
    return retired != 0 && retired < due;
  }));
  return grpc::Status::OK;
}

size_t FakeAdminServer::in_use() {
  std::lock_guard<std::mutex> lock(mutex_);
  return std::count_if(committed_.begin(), committed_.end(),
                       [](const auto& key) { return key.second.info().retired_us() == 0; });
}

grpc::Status FakeAdminServer::ListKeys(Context*, const v1::ListKeysRequest* request,
                                       grpc::ServerWriter<v1::ListKeysReply>* writer) {
  if (grpc::Status s = Step(When::kBefore, "ListKeys"); !s.ok()) return s;
  v1::ListKeysReply reply;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    Packages staged;
    for (const auto& [id, packages] : staged_) staged.insert(packages.begin(), packages.end());
    const Packages& listed = request->staged() ? staged : committed_;
    size_t looked_at = 0;
    for (auto at = listed.lower_bound(request->from()); at != listed.end(); ++at) {
      if (request->limit() != 0 && looked_at++ == request->limit()) {
        reply.set_next(at->first);
        break;
      }
      const v1::KeyInfo& info = at->second.info();
      if (request->retired() && info.retired_us() == 0) continue;
      if (request->principal().empty() || request->principal() == info.principal()) {
        *reply.add_keys() = info;
      }
    }
    if (also_listed_.has_value()) *reply.add_keys() = *also_listed_;
    for (size_t i = 0; i < listed_in_each_.value_or(0); ++i) {
      reply.add_keys()->set_principal(request->principal());
    }
    if (listed_in_each_.has_value()) {
      std::string next = request->from().empty() ? std::string(16, '\0') : request->from();
      for (auto digit = next.rbegin(); digit != next.rend() && ++*digit == '\0';) ++digit;
      reply.set_next(next);
    }
  }
  writer->Write(reply);
  return grpc::Status::OK;
}

grpc::Status FakeAdminServer::VerifyKeys(Context*, const v1::VerifyKeysRequest* request,
                                         v1::VerifyKeysReply* reply) {
  if (grpc::Status s = Step(When::kBefore, "VerifyKeys"); !s.ok()) return s;
  std::lock_guard<std::mutex> lock(mutex_);
  for (const std::string& handle : request->handles()) {
    v1::VerifyKeysReply::Result* result = reply->add_results();
    result->set_handle(handle);
    result->set_consistent(committed_.count(handle) != 0 &&
                           committed_[handle].usages_size() != 0);
    if (!result->consistent()) result->set_detail("usage keys do not belong to the base key");
  }
  if (!also_verified_.empty()) reply->add_results()->set_handle(also_verified_);
  return grpc::Status::OK;
}

grpc::Status FakeAdminServer::SetPolicy(Context*, const v1::SetPolicyRequest* request,
                                        v1::SetPolicyReply*) {
  if (grpc::Status s = Step(When::kBefore, "SetPolicy"); !s.ok()) return s;
  std::lock_guard<std::mutex> lock(mutex_);
  for (const std::string& handle : request->handles()) {
    const auto key = committed_.find(handle);
    if (key == committed_.end()) return grpc::Status(grpc::StatusCode::NOT_FOUND, "handle");
    if (key->second.info().principal() != request->principal()) {
      return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "of another principal");
    }
  }
  for (const std::string& handle : request->handles()) {
    committed_[handle].mutable_info()->set_gate(request->gate());
  }
  return grpc::Status::OK;
}

std::shared_ptr<grpc::ServerCredentials> TlsServerCredentials(const AdminIdentity& identity) {
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = ReadSmallFile(identity.ca_file).value();
  options.pem_key_cert_pairs.push_back({ReadSmallFile(identity.key_file).value(),
                                        ReadSmallFile(identity.certificate_file).value()});
  return grpc::SslServerCredentials(options);
}

FakeRealm::FakeRealm(const std::string& name) : realm(name) {
  for (uint32_t party = 0; party < 3; ++party) {
    servers[party] = std::make_unique<FakeAdminServer>(party, realm);
    servers[party]->Start();
  }
}

AdminServers FakeRealm::Connect() {
  // In another order than the parties': Check() must put it right.
  return AdminServers::FromClients(
      {servers[1]->NewClient(), servers[2]->NewClient(), servers[0]->NewClient()}, realm);
}

std::string FakeRealm::Joined(const std::string& handle) {
  std::array<std::string, 3> x, a;
  for (int party = 0; party < 3; ++party) {
    const v1::SharePackage package = servers[party]->committed()[handle];
    x[party] = package.base_x();
    a[party] = package.base_a();
  }
  return JoinForTest(x, a);
}

}  // namespace mpckdc::enroll
