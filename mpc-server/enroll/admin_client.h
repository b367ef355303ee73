// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_ENROLL_ADMIN_CLIENT_H_
#define MPC_SERVER_ENROLL_ADMIN_CLIENT_H_

#include <grpcpp/security/credentials.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/enroll/lost_stores.h"
#include "mpc-server/package/package.h"
#include "proto/admin.grpc.pb.h"

namespace mpckdc::enroll {

// A server of version 1 deletes at once and by handle alone: Check() refuses it. Its status can be
// read all the same (kAdminVersionRead), so that `doctor` says which server is old.
inline constexpr uint32_t kAdminVersionRead = 1;
inline constexpr uint32_t kAdminVersionMin = 2;
inline constexpr uint32_t kAdminVersionMax = 2;

struct AdminIdentity {
  std::string certificate_file;  // PEM, role admin
  std::string key_file;          // PEM
  std::string ca_file;           // PEM, the realm's certificate authority
};

// Mutual TLS. A server is accepted when its certificate comes from our CA, is for the host that was
// dialled, and has the role peer in the realm; this is decided in the handshake, before a request
// is sent. Our own certificate must have the role `own_role` and be valid now.
//
// For one channel only. With one object for several channels that connect at once, gRPC 1.51 lets
// the second start its handshake before the certificates have reached it, and fails the call with
// "Failed to create security handshaker".
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> PeerCredentials(
    const AdminIdentity& identity, const std::string& realm, absl::string_view own_role = "admin");

using AdminStub = v1::AdminService::StubInterface;

// How a key is deleted: usable for the server's grace time, or gone at once.
enum class Deletion { kRetire, kNow };
// Which keys are listed: committed ones (with those that are retired), staged, or retired alone.
enum class Listed { kCommitted, kStaged, kRetired };

// One server. Errors carry the canonical code of the gRPC status and name the server.
class AdminClient {
 public:
  // `name` is how the server is called in messages, e.g. "mpc1.example.com:7700".
  AdminClient(std::string name, std::unique_ptr<AdminStub> stub)
      : name_(std::move(name)), stub_(std::move(stub)) {}

  // Call("InitRealm", &AdminStub::InitRealm, request, timeout), and so on; `what` is for errors.
  // Each text of the reply is one line: see OnOneLine.
  template <class Request, class Reply>
  absl::StatusOr<Reply> Call(const char* what,
                             grpc::Status (AdminStub::*method)(grpc::ClientContext*, const Request&,
                                                               Reply*),
                             const Request& request, absl::Duration timeout) {
    Reply reply;
    RETURN_IF_ERROR(Run(what, timeout, [&](grpc::ClientContext* context) {
      return (stub_.get()->*method)(context, request, &reply);
    }, &reply));
    return reply;
  }
  absl::StatusOr<v1::StatusReply> GetStatus(absl::Duration timeout);
  // FailedPrecondition: a key is another principal's; what was done to the others is done.
  absl::Status DeleteKeys(absl::Span<const v1::NamedKey> keys, Deletion how,
                          absl::Duration timeout);
  absl::Status RestoreKeys(absl::Span<const v1::NamedKey> keys, absl::Duration timeout);
  // All that are due, and all keys of everybody: in as many calls as it takes, each within
  // `timeout`. A server that says that it has more than `most` is refused (DataLoss), as is one
  // that says that there is more and does not fill its answer: who lies goes on for ever. See
  // AdminServers::MostKeys().
  absl::StatusOr<size_t> CollectKeys(size_t most, absl::Duration timeout);
  absl::StatusOr<std::vector<v1::KeyInfo>> ListAllKeys(Listed listed, size_t most,
                                                       absl::Duration timeout);
  // One principal's.
  absl::StatusOr<std::vector<v1::KeyInfo>> ListKeys(const std::string& principal, Listed listed,
                                                    absl::Duration timeout);
  // FailedPrecondition, and no key is changed: one is another principal's.
  absl::Status SetPolicy(const std::string& principal, absl::Span<const std::string> handles,
                         v1::Gate gate, absl::Duration timeout);

  const std::string& name() const { return name_; }
  // The certificate's name, after a call has succeeded; empty without TLS (tests).
  const std::string& certificate_name() const { return certificate_name_; }

 private:
  absl::StatusOr<std::vector<v1::KeyInfo>> ListPages(const std::string& principal, Listed listed,
                                                     size_t most, absl::Duration timeout);
  absl::Status Refusal(const char* what,
                       const google::protobuf::RepeatedPtrField<v1::RefusedKey>& refused) const;
  absl::Status Run(const char* what, absl::Duration timeout,
                   absl::FunctionRef<grpc::Status(grpc::ClientContext*)> call,
                   google::protobuf::Message* reply = nullptr);

  std::string name_;
  std::unique_ptr<AdminStub> stub_;
  std::string certificate_name_;
};

// The three servers of a triple, by party: at(i) is party i whatever the order of the
// configuration.
class AdminServers {
 public:
  // Mutual TLS to the three addresses "host:port". Each must show a certificate of the realm's CA
  // for that host with the role peer. Connects on first use.
  static absl::StatusOr<AdminServers> Dial(const AdminIdentity& identity, const std::string& realm,
                                           absl::Span<const std::string> addresses);
  // From stubs made elsewhere; tests.
  static AdminServers FromClients(std::array<std::unique_ptr<AdminClient>, 3> clients,
                                  std::string realm);

  // Asks all three for their status and checks that they are parties 0, 1 and 2 (three different
  // certificates) of one cluster and epoch of this realm, and speak a version that we speak. Then
  // at() and what follows are valid. They are of one triple. `cluster` < 0: any. An uninitialised
  // server is an error unless `allow_uninitialised`; then lost() says whether it should have had
  // keys.
  absl::Status Check(absl::Duration timeout, int64_t cluster = -1,
                     bool allow_uninitialised = false);

  // Before Check(): in the order of the configuration.
  AdminClient& at(int party) { return *clients_[order_[party]]; }
  const PackageTarget& target() const { return target_; }
  // What the last Check() saw.
  const LostStores& lost() const { return lost_; }
  const std::string& realm() const { return realm_; }
  uint32_t triple() const { return status_[0].triple(); }
  // The number that the triple's nonces carry, by which a KDC knows it: its cluster's and its own.
  uint32_t number() const { return status_[0].cluster() + status_[0].triple(); }
  // They said that they work together: each is connected to the others, has its store, and is
  // neither quarantined nor otherwise unfit.
  bool Ready() const;

  // How many keys each may say that it has, by party: four times as many as the fuller one of the
  // two others, and some. One server that lies makes nobody's bound too small, and has no say in
  // its own.
  absl::StatusOr<std::array<size_t, 3>> MostKeys(absl::Duration timeout);

  // Runs `call` for the three parties at once and returns when all are back; by party.
  std::array<absl::Status, 3> OnAll(
      const std::function<absl::Status(int party, AdminClient&)>& call);

 private:
  AdminServers() = default;
  absl::Status Adopt(const std::array<v1::StatusReply, 3>& replies, int64_t cluster,
                     bool allow_uninitialised);

  std::string realm_;
  std::array<std::unique_ptr<AdminClient>, 3> clients_;
  std::array<int, 3> order_ = {0, 1, 2};
  std::array<v1::StatusReply, 3> status_;  // by party, of the last Check()
  PackageTarget target_;
  LostStores lost_;
};

}  // namespace mpckdc::enroll

#endif  // MPC_SERVER_ENROLL_ADMIN_CLIENT_H_
