// SPDX-License-Identifier: Apache-2.0
#include <grpcpp/create_channel.h>
#include <grpcpp/support/channel_arguments.h>

#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/enroll/admin_client.h"
#include "mpc-server/enroll/peer_credentials.h"

namespace mpckdc::enroll {
namespace {

absl::Status CheckOne(const v1::StatusReply& reply, const std::string& name,
                      const std::string& realm, int64_t cluster, bool allow_uninitialised) {
  const auto refuse = [&](const auto&... why) {
    return absl::FailedPreconditionError(absl::StrCat("server ", name, why...));
  };
  if (reply.version() < kAdminVersionMin || reply.version() > kAdminVersionMax) {
    return refuse(" (", reply.software(), ") speaks version ", reply.version(),
                  " of the administration protocol, this program ", kAdminVersionMin, " to ",
                  kAdminVersionMax);
  }
  if (reply.realm() != realm) return refuse(" serves realm \"", reply.realm(), "\", not ", realm);
  if (reply.party() > 2) return refuse(" says it is party ", reply.party());
  if (cluster >= 0 && reply.cluster() != cluster) {
    return refuse(" belongs to cluster ", reply.cluster(), ", expected ", cluster);
  }
  if (!reply.initialised() && !allow_uninitialised) {
    return refuse(" has no realm yet: run mpc-admin init-realm");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<AdminServers> AdminServers::Dial(const AdminIdentity& identity,
                                                const std::string& realm,
                                                absl::Span<const std::string> addresses) {
  if (addresses.size() != 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("a realm has three MPC servers, ", addresses.size(), " are configured"));
  }
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(limits::kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  AdminServers servers;
  servers.realm_ = realm;
  for (int i = 0; i < 3; ++i) {
    ASSIGN_OR_RETURN(std::shared_ptr<grpc::ChannelCredentials> credentials,
                     PeerCredentials(identity, realm));
    servers.clients_[i] = std::make_unique<AdminClient>(
        addresses[i], v1::AdminService::NewStub(
                          grpc::CreateCustomChannel(addresses[i], credentials, arguments)));
  }
  return servers;
}

AdminServers AdminServers::FromClients(std::array<std::unique_ptr<AdminClient>, 3> clients,
                                       std::string realm) {
  AdminServers servers;
  servers.realm_ = std::move(realm);
  servers.clients_ = std::move(clients);
  return servers;
}

std::array<absl::Status, 3> AdminServers::OnAll(
    const std::function<absl::Status(int party, AdminClient&)>& call) {
  std::array<absl::Status, 3> results;
  std::array<std::thread, 3> threads;
  for (int party = 0; party < 3; ++party) {
    threads[party] = std::thread([&, party] { results[party] = call(party, at(party)); });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

absl::Status AdminServers::Check(absl::Duration timeout, int64_t cluster,
                                 bool allow_uninitialised) {
  order_ = {0, 1, 2};
  std::array<v1::StatusReply, 3> replies;  // in configured order
  for (const absl::Status& s : OnAll([&](int index, AdminClient& client) {
         absl::StatusOr<v1::StatusReply> reply = client.GetStatus(timeout);
         if (reply.ok()) replies[index] = *std::move(reply);
         return reply.status();
       })) {
    if (!s.ok()) return s;
  }
  return Adopt(replies, cluster, allow_uninitialised);
}

absl::Status AdminServers::Adopt(const std::array<v1::StatusReply, 3>& replies, int64_t cluster,
                                 bool allow_uninitialised) {
  std::array<int, 3> order = {-1, -1, -1};
  std::set<std::string> certificates;
  for (int i = 0; i < 3; ++i) {
    const v1::StatusReply& reply = replies[i];
    const std::string& name = clients_[i]->name();
    RETURN_IF_ERROR(CheckOne(reply, name, realm_, cluster, allow_uninitialised));
    int& place = order[reply.party()];
    if (place >= 0) {
      return absl::FailedPreconditionError(absl::StrCat("servers ", clients_[place]->name(),
                                                        " and ", name, " both say they are party ",
                                                        reply.party()));
    }
    place = i;
    const std::string& certificate = clients_[i]->certificate_name();
    if (!certificate.empty() && !certificates.insert(certificate).second) {
      return absl::FailedPreconditionError(
          absl::StrCat("two servers show the certificate ", certificate));
    }
    if (reply.cluster() != replies[0].cluster() || reply.epoch() != replies[0].epoch()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "servers ", clients_[0]->name(), " and ", name, " differ: cluster ",
          replies[0].cluster(), " epoch ", replies[0].epoch(), " and cluster ", reply.cluster(),
          " epoch ", reply.epoch()));
    }
  }
  order_ = order;
  target_.realm = realm_;
  target_.epoch = replies[0].epoch();
  for (int party = 0; party < 3; ++party) {
    status_[party] = replies[order[party]];
    target_.package_keys[party] = status_[party].package_key();
  }
  return absl::OkStatus();
}

}  // namespace mpckdc::enroll
