// SPDX-License-Identifier: Apache-2.0
//
// What the services' tests share: an engine that answers what the test says, and gRPC over mutual
// TLS on loopback with certificates made for the test.
#ifndef MPC_SERVER_TESTING_SERVICE_FIXTURE_H_
#define MPC_SERVER_TESTING_SERVICE_FIXTURE_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "mpc-server/agree/job_engine.h"
#include "mpc-server/service/config.h"
#include "mpc-server/service/identity_keeper.h"
#include "mpc-server/testing/certificates.h"
#include "mpc-server/testing/folder.h"

namespace mpckdc {

// Keeps jobs until Release(), or answers each at once with OK.
class FakeEngine : public JobEngine {
 public:
  absl::Status Start() override { return absl::OkStatus(); }
  void Stop() override {}
  void SetQuotas(const QuotaRates&) override {}
  void Submit(const KdcIdentity& kdc, Job job, JobCallback done) override {
    {
      absl::MutexLock lock(&mutex_);
      ++submitted_;
      last_kdc_ = kdc;
      last_job_ = job;
      if (hold_) {
        held_.emplace_back(job.id, std::move(done));
        return;
      }
    }
    done(AnswerTo(job.id));
  }
  TagResult FinishTag(const KdcIdentity&, const TagRequest& request) override {
    return {request.job, request.seal, Ok(), Tag{1, 2, 3}};
  }
  void DrawKey(const TransactionId&, const KeyInfo& info, DrawCallback done) override {
    absl::Status status;
    {
      absl::MutexLock lock(&mutex_);
      drawn_ = info;
      status = draw_status_;
    }
    done(std::move(status));
  }
  void VerifyKeys(const std::array<uint8_t, 16>&, std::vector<Handle> handles,
                  VerifyCallback done) override {
    std::vector<VerifyResult> results;
    for (const Handle& handle : handles) results.push_back({handle, handle[0] == 0, "detail"});
    done(std::move(results));
  }
  // A key is equal whose handle begins with zero.
  void CompareKeys(CompareRequest request, CompareCallback done) override {
    std::vector<CompareResult> results;
    for (const Handle& handle : request.old) {
      results.push_back({handle, handle[0] == 0 ? Comparison::kEqual : Comparison::kDifferent, ""});
    }
    done(std::move(results));
  }
  // Done at once, or FailedPrecondition for an epoch in which it is not.
  void Refresh(uint64_t from, absl::Time, DrawCallback done) override {
    done(from == 1 ? absl::OkStatus() : absl::FailedPreconditionError("another epoch"));
  }
  absl::Status CatchUp() override { return absl::OkStatus(); }
  void Look() override {}
  void Replace(int, absl::Time, DrawCallback done) override { done(absl::OkStatus()); }
  EngineStatus Status() const override {
    EngineStatus status;
    status.peers_connected = true;
    status.batches = 5;
    const absl::MutexLock lock(&mutex_);
    status.quarantine = quarantine_;
    status.clock_confirmed = clock_confirmed_;
    return status;
  }
  void set_clock_confirmed(absl::Time time) {
    const absl::MutexLock lock(&mutex_);
    clock_confirmed_ = time;
  }
  absl::StatusOr<std::optional<DeviationReport>> Readmit() override {
    const absl::MutexLock lock(&mutex_);
    return std::exchange(quarantine_, std::nullopt);
  }
  void set_quarantine(const DeviationReport& report) {
    const absl::MutexLock lock(&mutex_);
    quarantine_ = report;
  }

  void set_hold(bool hold) {
    absl::MutexLock lock(&mutex_);
    hold_ = hold;
  }
  // What every job is answered with, but for its id.
  void set_answer(JobResult answer) {
    absl::MutexLock lock(&mutex_);
    answer_ = std::move(answer);
  }
  void set_draw_status(absl::Status status) {
    absl::MutexLock lock(&mutex_);
    draw_status_ = std::move(status);
  }
  // Answers everything that is held.
  void Release() {
    std::deque<std::pair<JobId, JobCallback>> held;
    {
      absl::MutexLock lock(&mutex_);
      held.swap(held_);
    }
    for (auto& [id, done] : held) done(AnswerTo(id));
  }
  size_t submitted() const {
    absl::MutexLock lock(&mutex_);
    return submitted_;
  }
  bool WaitForSubmitted(size_t count) const {
    for (int i = 0; i < 2000 && submitted() < count; ++i) absl::SleepFor(absl::Milliseconds(5));
    return submitted() >= count;
  }
  Job last_job() const {
    absl::MutexLock lock(&mutex_);
    return last_job_;
  }
  KdcIdentity last_kdc() const {
    absl::MutexLock lock(&mutex_);
    return last_kdc_;
  }
  KeyInfo drawn() const {
    absl::MutexLock lock(&mutex_);
    return drawn_;
  }

 private:
  JobResult AnswerTo(JobId id) const {
    absl::MutexLock lock(&mutex_);
    JobResult answer = answer_;
    answer.id = id;
    return answer;
  }

  mutable absl::Mutex mutex_;
  std::optional<DeviationReport> quarantine_ ABSL_GUARDED_BY(mutex_);
  absl::Time clock_confirmed_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  bool hold_ ABSL_GUARDED_BY(mutex_) = false;
  JobResult answer_ ABSL_GUARDED_BY(mutex_) = {0, Ok(), {GcmOpenResult{"share"}}, {}, {}};
  size_t submitted_ ABSL_GUARDED_BY(mutex_) = 0;
  Job last_job_ ABSL_GUARDED_BY(mutex_);
  KdcIdentity last_kdc_ ABSL_GUARDED_BY(mutex_);
  KeyInfo drawn_ ABSL_GUARDED_BY(mutex_);
  absl::Status draw_status_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::pair<JobId, JobCallback>> held_ ABSL_GUARDED_BY(mutex_);
};

// A folder with ca.pem and the certificate of server p0, and a gRPC port that uses them.
class TestPort {
 public:
  TestPort() {
    WriteFileForTest(folder_.File("ca.pem"), authority_.ca_pem());
    WriteCert(folder_.path(), "p0", authority_.IssueRole("peer", "p0"));
  }
  ~TestPort() { Stop(); }

  Config::Identity identity() const {
    return {folder_.File("p0.pem"), folder_.File("p0.key"), folder_.File("ca.pem"), ""};
  }

  void Start(std::vector<grpc::Service*> services, int max_message_bytes) {
    grpc::ServerBuilder builder;
    const Config::Identity files = identity();
    builder.AddListeningPort("127.0.0.1:0",
                             WatchedCredentials(files.key, files.certificate, files.ca), &port_);
    builder.SetMaxReceiveMessageSize(max_message_bytes);
    for (grpc::Service* service : services) builder.RegisterService(service);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }
  void Stop() {
    if (server_ != nullptr) server_->Shutdown(absl::ToChronoTime(absl::Now() + absl::Seconds(1)));
    server_.reset();
  }

  // A client with this certificate, or with none.
  std::shared_ptr<grpc::Channel> Connect(const TestCert* cert) const {
    return ConnectTo(port_, authority_, cert);
  }
  static std::shared_ptr<grpc::Channel> ConnectTo(int port, const TestAuthority& authority,
                                                  const TestCert* cert) {
    std::vector<grpc::experimental::IdentityKeyCertPair> pairs;
    if (cert != nullptr) pairs.push_back({cert->key_pem, cert->certificate_pem});
    auto provider = std::make_shared<grpc::experimental::StaticDataCertificateProvider>(
        authority.ca_pem(), pairs);
    grpc::experimental::TlsChannelCredentialsOptions options;
    options.set_certificate_provider(provider);
    options.watch_root_certs();
    if (cert != nullptr) options.watch_identity_key_cert_pairs();
    grpc::ChannelArguments arguments;  // a channel of its own for each client
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(port),
                                     grpc::experimental::TlsCredentials(options), arguments);
  }

  const TestAuthority& authority() const { return authority_; }
  const TestFolder& folder() const { return folder_; }
  int port() const { return port_; }

 private:
  TestFolder folder_;
  TestAuthority authority_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_SERVICE_FIXTURE_H_
