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
#include <string>
#include <vector>

#include "mpc-server/enroll/admin_client.h"
#include "mpc-server/testing/join.h"
#include "proto/admin.grpc.pb.h"

namespace mpckdc::enroll {

class FakeAdminServer : public v1::AdminService::Service {
 public:
  // Called before (kBefore) and after (kAfter) a call takes effect; an error is answered instead.
  enum class When { kBefore, kAfter };
  using Fault = std::function<grpc::Status(When, const std::string& method)>;

  FakeAdminServer(uint32_t party, std::string realm);
  ~FakeAdminServer() override;

  // With the service `also`; on the same port as before, if it was started before.
  void Start(std::shared_ptr<grpc::ServerCredentials> credentials =
                 grpc::InsecureServerCredentials(),
             grpc::Service* also = nullptr);
  void Stop();
  std::unique_ptr<AdminClient> NewClient();
  std::string address() const;

  void set_fault(Fault fault);
  v1::StatusReply& status() { return status_; }
  std::map<std::string, v1::SharePackage> committed();  // by handle
  size_t staged();                                      // keys
  int calls(const std::string& method);
  // Puts a key there as if it had been committed.
  void Plant(const v1::SharePackage& package);
  void DropOneStaged();
  void Clear();

  grpc::Status GetStatus(grpc::ServerContext*, const v1::StatusRequest*,
                         v1::StatusReply*) override;
  grpc::Status InitRealm(grpc::ServerContext*, const v1::InitRealmRequest*,
                         v1::InitRealmReply*) override;
  grpc::Status StageKeys(grpc::ServerContext*, const v1::StageKeysRequest*,
                         v1::StageKeysReply*) override;
  grpc::Status DrawKey(grpc::ServerContext*, const v1::DrawKeyRequest*,
                       v1::DrawKeyReply*) override;
  grpc::Status CommitKeys(grpc::ServerContext*, const v1::CommitKeysRequest*,
                          v1::CommitKeysReply*) override;
  grpc::Status AbortKeys(grpc::ServerContext*, const v1::AbortKeysRequest*,
                         v1::AbortKeysReply*) override;
  grpc::Status DeleteKeys(grpc::ServerContext*, const v1::DeleteKeysRequest*,
                          v1::DeleteKeysReply*) override;
  grpc::Status ListKeys(grpc::ServerContext*, const v1::ListKeysRequest*,
                        grpc::ServerWriter<v1::ListKeysReply>*) override;
  grpc::Status VerifyKeys(grpc::ServerContext*, const v1::VerifyKeysRequest*,
                          v1::VerifyKeysReply*) override;
  grpc::Status SetPolicy(grpc::ServerContext*, const v1::SetPolicyRequest*,
                         v1::SetPolicyReply*) override;

 protected:
  // A key of this party's became usable.
  virtual void Committed(const v1::SharePackage&) {}

 private:
  grpc::Status Step(When when, const std::string& method);
  grpc::Status OpenPackage(const v1::SealedPackage& sealed, const std::string& transaction,
                           v1::SharePackage* package);

  std::mutex mutex_;
  Fault fault_;
  v1::StatusReply status_;
  std::string secret_key_;
  std::map<std::string, std::map<std::string, v1::SharePackage>> staged_;  // by transaction, handle
  std::map<std::string, size_t> done_;                                    // committed transactions
  std::map<std::string, v1::SharePackage> committed_;
  std::map<std::string, int> calls_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

// Mutual TLS.
std::shared_ptr<grpc::ServerCredentials> TlsServerCredentials(const AdminIdentity& identity);

// Three of them and the client side.
struct FakeRealm {
  explicit FakeRealm(const std::string& realm = "EXAMPLE.COM");
  AdminServers Connect();

  std::array<std::unique_ptr<FakeAdminServer>, 3> servers;
  std::string realm;
};

}  // namespace mpckdc::enroll

#endif  // MPC_SERVER_TESTING_FAKE_ADMIN_SERVICE_H_
