// SPDX-License-Identifier: Apache-2.0
//
// Tests only: one server of a fake triple, KeyService and AdminService over mutual TLS on loopback.
// All parties share an Oracle; a test can make one of them slow, wrong or absent.
#ifndef KDC_PLUGIN_TESTS_FAKE_PARTY_H_
#define KDC_PLUGIN_TESTS_FAKE_PARTY_H_

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "grpcpp/grpcpp.h"
#include "kdc-plugin/tests/oracle.h"
#include "mpc-server/enroll/admin_client.h"
#include "mpc-server/testing/fake_admin_service.h"
#include "proto/kdc_key.grpc.pb.h"

namespace mpckdc::test {

// A function that a test replaces while the server runs.
template <class Message>
class Hook {
 public:
  Hook& operator=(std::function<void(Message&)> change) {
    std::lock_guard<std::mutex> lock(mutex_);
    change_ = std::move(change);
    return *this;
  }
  void operator()(Message& message) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (change_) change_(message);
  }

 private:
  std::mutex mutex_;
  std::function<void(Message&)> change_;
};

struct Behaviour {
  Hook<v1::Welcome> welcome;
  Hook<const v1::Job> received;
  Hook<v1::JobAnswer> job;
  Hook<v1::TagAnswer> tag;
  Hook<v1::ListKeysReply> listed;
  std::atomic<int> delay_ms{0};
  std::atomic<bool> silent{false};       // reads, never answers
  std::atomic<int> close_after_jobs{0};  // ends the stream when this many have come
  std::atomic<int> messages{0};          // with jobs, received
  std::atomic<int> mixed_messages{0};    // those with tag requests, too
  std::atomic<int> streams{0};           // accepted

  // Before what the hooks refer to goes: a server may hear of a job after it has ended elsewhere.
  void UnhookAll() {
    welcome = nullptr;
    received = nullptr;
    job = nullptr;
    tag = nullptr;
    listed = nullptr;
  }
};

class FakeParty final : public v1::KeyService::Service, public enroll::FakeAdminServer {
 public:
  FakeParty(int party, std::string realm, enroll::AdminIdentity identity,
            std::shared_ptr<Oracle> oracle);
  ~FakeParty() override { Stop(); }

  void Start();  // on the same port as before, if it was started before
  Behaviour behaviour;

  grpc::Status Serve(grpc::ServerContext*,
                     grpc::ServerReaderWriter<v1::ServerMessage, v1::KdcMessage>*) override;

  // The oracle's keys, of which some were never enrolled.
  grpc::Status DeleteKeys(grpc::ServerContext*, const v1::DeleteKeysRequest*,
                          v1::DeleteKeysReply*) override;
  grpc::Status ListKeys(grpc::ServerContext*, const v1::ListKeysRequest*,
                        grpc::ServerWriter<v1::ListKeysReply>*) override;
  grpc::Status CompareKeys(grpc::ServerContext*, const v1::CompareKeysRequest*,
                           v1::CompareKeysReply*) override;

 private:
  void Staged(const v1::SharePackage& package) override { oracle_->Stage(party_, package); }
  void Committed(const v1::SharePackage& package) override { oracle_->Commit(party_, package); }
  v1::ServerMessage Process(const std::string& session, const v1::KdcMessage& message);

  const int party_;
  const std::string realm_;
  const enroll::AdminIdentity identity_;
  std::shared_ptr<Oracle> oracle_;
};

}  // namespace mpckdc::test

#endif  // KDC_PLUGIN_TESTS_FAKE_PARTY_H_
