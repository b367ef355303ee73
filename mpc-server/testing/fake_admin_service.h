// SPDX-License-Identifier: Apache-2.0
//
// Tests only: AdminServices over real gRPC on loopback that keep packages in memory, open them as
// a server does, and fail where a test says so. Joining shares is possible here because one process
// plays all three parties.
#ifndef MPC_SERVER_TESTING_FAKE_ADMIN_SERVICE_H_
#define MPC_SERVER_TESTING_FAKE_ADMIN_SERVICE_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/server_credentials.h>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "mpc-server/enroll/admin_client.h"
#include "proto/admin.grpc.pb.h"

namespace mpckdc::enroll {

class FakeAdminServer : public v1::AdminService::Service {
 public:
  // Called before (kBefore) and after (kAfter) a call takes effect; an error is answered instead.
  enum class When { kBefore, kAfter };
  using Status = grpc::Status;
  using Context = grpc::ServerContext;
  using Fault = std::function<Status(When, const std::string& method)>;
  using Packages = std::map<std::string, v1::SharePackage>;  // by handle

  FakeAdminServer(uint32_t party, std::string realm);
  ~FakeAdminServer() override;

  // With the service `also`; on the same port as before, if it was started before.
  void Start(std::shared_ptr<grpc::ServerCredentials> credentials =
                 grpc::InsecureServerCredentials(),
             grpc::Service* also = nullptr);
  void Stop();
  std::unique_ptr<AdminClient> NewClient();
  std::string address() const;

  void set_fault(Fault fault) {
    std::lock_guard<std::mutex> lock(mutex_);
    fault_ = std::move(fault);
  }
  // Answers `code` to calls of `method`: to `times` of them, after the first `spared`.
  void FailCalls(std::string method, When when = When::kBefore,
                 grpc::StatusCode code = grpc::StatusCode::UNAVAILABLE, int times = 1000,
                 int spared = 0);
  v1::StatusReply& status() { return status_; }
  // From now on it says and opens what that one does, but for its triple.
  void BeMachineOf(const FakeAdminServer& other, uint32_t triple) {
    status_ = other.status_;
    status_.set_triple(triple);
    secret_key_ = other.secret_key_;
  }
  Packages committed() {
    std::lock_guard<std::mutex> lock(mutex_);
    return committed_;
  }
  size_t staged();  // keys
  size_t in_use();  // committed and not retired
  int calls(const std::string& method) {
    std::lock_guard<std::mutex> lock(mutex_);
    return calls_[method];
  }
  // What is in a package, if it is for this party and transaction and just as protobuf writes it.
  Status OpenPackage(const v1::SealedPackage& sealed, const std::string& transaction,
                     v1::SharePackage* package);
  // Puts a key there as if it had been committed.
  void Plant(const v1::SharePackage& package) {
    std::lock_guard<std::mutex> lock(mutex_);
    committed_[package.info().handle()] = package;
  }
  void DropOneStaged() {
    std::lock_guard<std::mutex> lock(mutex_);
    for (auto& [id, packages] : staged_) packages.erase(packages.begin());
  }
  // Of a key that nobody asks about it says each time that it is bad.
  void AlsoVerify(const std::string& handle) {
    std::lock_guard<std::mutex> lock(mutex_);
    also_verified_ = handle;
  }
  // Whatever it is asked for, it lists this too.
  void AlsoList(const v1::KeyInfo& key) {
    std::lock_guard<std::mutex> lock(mutex_);
    also_listed_ = key;
  }
  // Its lists say that there is more, each time.
  void ListForEver(size_t in_each) {
    std::lock_guard<std::mutex> lock(mutex_);
    listed_in_each_ = in_each;
  }
  void Clear() {
    std::lock_guard<std::mutex> lock(mutex_);
    staged_.clear();
    committed_.clear();
  }

  Status GetStatus(Context*, const v1::StatusRequest*, v1::StatusReply*) override;
  Status InitRealm(Context*, const v1::InitRealmRequest*, v1::InitRealmReply*) override;
  Status StageKeys(Context*, const v1::StageKeysRequest*, v1::StageKeysReply*) override;
  Status DrawKey(Context*, const v1::DrawKeyRequest*, v1::DrawKeyReply*) override;
  Status RenameKeys(Context*, const v1::RenameKeysRequest*, v1::RenameKeysReply*) override;
  Status CommitKeys(Context*, const v1::CommitKeysRequest*, v1::CommitKeysReply*) override;
  Status AbortKeys(Context*, const v1::AbortKeysRequest*, v1::AbortKeysReply*) override;
  Status DeleteKeys(Context*, const v1::DeleteKeysRequest*, v1::DeleteKeysReply*) override;
  Status RestoreKeys(Context*, const v1::RestoreKeysRequest*, v1::RestoreKeysReply*) override;
  Status CollectKeys(Context*, const v1::CollectKeysRequest*, v1::CollectKeysReply*) override;
  Status ListKeys(Context*, const v1::ListKeysRequest*,
                  grpc::ServerWriter<v1::ListKeysReply>*) override;
  Status VerifyKeys(Context*, const v1::VerifyKeysRequest*, v1::VerifyKeysReply*) override;
  Status SetPolicy(Context*, const v1::SetPolicyRequest*, v1::SetPolicyReply*) override;
  Status Readmit(Context*, const v1::ReadmitRequest*, v1::ReadmitReply*) override;

 protected:
  // A key of this party's became usable.
  virtual void Committed(const v1::SharePackage&) {}
  virtual void Staged(const v1::SharePackage&) {}

 private:
  Status Step(When when, const std::string& method);

  std::mutex mutex_;
  Fault fault_;
  v1::StatusReply status_;
  std::string secret_key_;
  std::map<std::string, Packages> staged_;  // by transaction
  std::map<std::string, size_t> done_;      // committed transactions
  Packages committed_;
  std::string also_verified_;
  std::map<std::string, int> calls_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::optional<v1::KeyInfo> also_listed_;
  std::optional<size_t> listed_in_each_;
};

// Mutual TLS.
std::shared_ptr<grpc::ServerCredentials> TlsServerCredentials(const AdminIdentity& identity);

// Three of them and the client side.
struct FakeRealm {
  explicit FakeRealm(const std::string& realm = "EXAMPLE.COM");
  AdminServers Connect();
  // The key that the three servers' shares of a handle join to.
  std::string Joined(const std::string& handle);

  std::array<std::unique_ptr<FakeAdminServer>, 3> servers;
  std::string realm;
};

}  // namespace mpckdc::enroll

#endif  // MPC_SERVER_TESTING_FAKE_ADMIN_SERVICE_H_
