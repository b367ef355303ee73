// SPDX-License-Identifier: Apache-2.0
#include "kdc-plugin/tests/fake_party.h"

#include <sodium.h>

#include <chrono>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mpc-server/key/enctype.h"
#include "mpc-server/package/certificate.h"
#include "mpc-server/testing/fake_admin_service.h"

namespace mpckdc::test {
namespace {

unsigned char* U8(std::string& s) { return reinterpret_cast<unsigned char*>(s.data()); }
const unsigned char* U8(const std::string& s) {
  return reinterpret_cast<const unsigned char*>(s.data());
}

std::shared_ptr<grpc::ServerCredentials> Credentials(const enroll::AdminIdentity& identity) {
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = enroll::ReadSmallFile(identity.ca_file).value();
  options.pem_key_cert_pairs.push_back({enroll::ReadSmallFile(identity.key_file).value(),
                                        enroll::ReadSmallFile(identity.certificate_file).value()});
  return grpc::SslServerCredentials(options);
}

}  // namespace

FakeParty::FakeParty(int party, std::string realm, enroll::AdminIdentity identity,
                     std::shared_ptr<Oracle> oracle, std::shared_ptr<Vault> vault)
    : party_(party),
      realm_(std::move(realm)),
      identity_(std::move(identity)),
      oracle_(std::move(oracle)),
      vault_(std::move(vault)),
      public_key_(crypto_box_PUBLICKEYBYTES, '\0'),
      secret_key_(crypto_box_SECRETKEYBYTES, '\0') {
  if (sodium_init() < 0) std::abort();
  crypto_box_keypair(U8(public_key_), U8(secret_key_));
}

void FakeParty::Start() {
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address(), Credentials(identity_), &port);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000);
  builder.RegisterService(static_cast<v1::KeyService::Service*>(this));
  builder.RegisterService(static_cast<v1::AdminService::Service*>(this));
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) std::abort();
}

void FakeParty::Stop() {
  if (server_ == nullptr) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_.reset();
}

std::string FakeParty::address() const { return absl::StrCat("127.0.0.1:", port); }

grpc::Status FakeParty::Serve(
    grpc::ServerContext*, grpc::ServerReaderWriter<v1::ServerMessage, v1::KdcMessage>* stream) {
  v1::KdcMessage message;
  if (!stream->Read(&message) || !message.has_hello() || message.jobs_size() > 0) {
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "hello first");
  }
  ++behaviour.streams;
  const std::string session = message.hello().session();
  v1::ServerMessage first;
  v1::Welcome* welcome = first.mutable_welcome();
  welcome->set_version(1);
  welcome->set_party(party_);
  welcome->set_realm(realm_);
  welcome->set_cluster(1);
  welcome->set_epoch(1);
  welcome->set_time_us(absl::ToUnixMicros(absl::Now()));
  welcome->set_max_message_bytes(4 << 20);
  welcome->set_software("fake");
  behaviour.welcome(*welcome);
  stream->Write(first);
  int jobs = 0;
  while (stream->Read(&message)) {
    if (message.jobs_size() > 0) ++behaviour.messages;
    if (message.jobs_size() > 0 && message.tags_size() > 0) ++behaviour.mixed_messages;
    jobs += message.jobs_size();
    const int limit = behaviour.close_after_jobs;
    if (limit > 0 && jobs >= limit) {
      behaviour.close_after_jobs = 0;
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "told to close");
    }
    const v1::ServerMessage answers = Process(session, message);
    if (behaviour.delay_ms > 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(behaviour.delay_ms));
    }
    if (!behaviour.silent) stream->Write(answers);
  }
  return grpc::Status::OK;
}

v1::ServerMessage FakeParty::Process(const std::string& session, const v1::KdcMessage& message) {
  v1::ServerMessage answers;
  for (const v1::Job& job : message.jobs()) {
    behaviour.received(job);
    v1::JobAnswer* answer = answers.add_jobs();
    *answer = oracle_->Answer(party_, session, job);
    behaviour.job(*answer);
  }
  for (const v1::TagRequest& tag : message.tags()) {
    v1::TagAnswer* answer = answers.add_tags();
    *answer = oracle_->Tag(party_, session, tag);
    behaviour.tag(*answer);
  }
  return answers;
}

grpc::Status FakeParty::GetStatus(grpc::ServerContext*, const v1::StatusRequest*,
                                  v1::StatusReply* reply) {
  reply->set_version(1);
  reply->set_software("fake");
  reply->set_party(party_);
  reply->set_realm(realm_);
  reply->set_cluster(1);
  reply->set_epoch(1);
  reply->set_initialised(true);
  reply->set_time_us(absl::ToUnixMicros(absl::Now()));
  reply->set_package_key(public_key_);
  reply->set_keys(oracle_->Keys().size());
  reply->set_peers_connected(true);
  return grpc::Status::OK;
}

grpc::Status FakeParty::InitRealm(grpc::ServerContext*, const v1::InitRealmRequest*,
                                  v1::InitRealmReply* reply) {
  reply->set_already(true);
  return grpc::Status::OK;
}

grpc::Status FakeParty::StageKeys(grpc::ServerContext*, const v1::StageKeysRequest* request,
                                  v1::StageKeysReply*) {
  for (const v1::SealedPackage& sealed : request->packages()) {
    std::string plain(sealed.sealed().size() - crypto_box_SEALBYTES, '\0');
    v1::SharePackage package;
    if (crypto_box_seal_open(U8(plain), U8(sealed.sealed()), sealed.sealed().size(),
                             U8(public_key_), U8(secret_key_)) != 0 ||
        !package.ParseFromString(plain)) {
      return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "package");
    }
    std::lock_guard<std::mutex> lock(vault_->mutex);
    vault_->shares[package.info().handle()][party_] = package;
    std::lock_guard<std::mutex> own(mutex_);
    staged_[request->transaction()].push_back(package.info().handle());
  }
  return grpc::Status::OK;
}

grpc::Status FakeParty::DrawKey(grpc::ServerContext*, const v1::DrawKeyRequest* request,
                                v1::DrawKeyReply*) {
  std::lock_guard<std::mutex> lock(vault_->mutex);
  *vault_->shares[request->info().handle()][party_].mutable_info() = request->info();
  std::lock_guard<std::mutex> own(mutex_);
  staged_[request->transaction()].push_back(request->info().handle());
  return grpc::Status::OK;
}

// The third party to commit makes the key usable.
void FakeParty::CommitOne(const std::string& handle) {
  std::lock_guard<std::mutex> lock(vault_->mutex);
  int& parties = vault_->committed[handle];
  parties |= 1 << party_;
  if (parties != 7) return;
  const std::array<v1::SharePackage, 3>& shares = vault_->shares[handle];
  const v1::KeyInfo& info = shares[0].info();
  std::string base;
  if (shares[0].base_x().empty()) {
    base.resize(FindEnctype(info.enctype())->key_bytes);
    randombytes_buf(base.data(), base.size());
  } else {
    base = JoinForTest({shares[0].base_x(), shares[1].base_x(), shares[2].base_x()},
                       {shares[0].base_a(), shares[1].base_a(), shares[2].base_a()});
  }
  oracle_->SetKey(info, base);
}

grpc::Status FakeParty::CommitKeys(grpc::ServerContext*, const v1::CommitKeysRequest* request,
                                   v1::CommitKeysReply* reply) {
  std::vector<std::string> handles;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    handles = staged_[request->transaction()];
  }
  for (const std::string& handle : handles) CommitOne(handle);
  reply->set_keys(handles.size());
  return grpc::Status::OK;
}

grpc::Status FakeParty::AbortKeys(grpc::ServerContext*, const v1::AbortKeysRequest* request,
                                  v1::AbortKeysReply*) {
  std::lock_guard<std::mutex> lock(mutex_);
  staged_.erase(request->transaction());
  return grpc::Status::OK;
}

grpc::Status FakeParty::DeleteKeys(grpc::ServerContext*, const v1::DeleteKeysRequest* request,
                                   v1::DeleteKeysReply* reply) {
  for (const std::string& handle : request->handles()) oracle_->DeleteKey(handle);
  reply->set_deleted(request->handles_size());
  return grpc::Status::OK;
}

grpc::Status FakeParty::ListKeys(grpc::ServerContext*, const v1::ListKeysRequest* request,
                                 grpc::ServerWriter<v1::ListKeysReply>* writer) {
  v1::ListKeysReply reply;
  for (const auto& [handle, info] : oracle_->Keys()) {
    if (request->principal().empty() || request->principal() == info.principal()) {
      *reply.add_keys() = info;
    }
  }
  writer->Write(reply);
  return grpc::Status::OK;
}

}  // namespace mpckdc::test
