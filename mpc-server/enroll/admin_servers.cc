// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <grpcpp/support/channel_arguments.h>

#include <set>
#include <thread>
#include <utility>

#include "absl/base/internal/sysinfo.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/enroll/admin_client.h"
#include "mpc-server/package/certificate.h"

namespace mpckdc::enroll {

// ---- Whom we believe ----

namespace {

// One that was down has deleted keys that the others have collected; one that lost its disk has
// few; and keys come in while they are listed.
constexpr size_t kManyMore = 4;
constexpr size_t kSomeMore = size_t{1} << 18;

using grpc::experimental::CertificateVerifier;
using grpc::experimental::ExternalCertificateVerifier;
using grpc::experimental::TlsCustomVerificationCheckRequest;

// After the chain: the host name as always, then the role.
class PeerRoleVerifier : public ExternalCertificateVerifier {
 public:
  explicit PeerRoleVerifier(std::string realm) : realm_(std::move(realm)) {}

  bool Verify(TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)>,
              grpc::Status* status) override {
    // The host name check is synchronous: it returns true and fills in the status.
    if (!host_name_.Verify(request, nullptr, status)) {
      *status = grpc::Status(grpc::StatusCode::INTERNAL, "host name check did not finish");
      return true;
    }
    if (status->ok()) *status = CheckRole(request->uri_names());
    return true;
  }

  void Cancel(TlsCustomVerificationCheckRequest*) override {}

 private:
  grpc::Status CheckRole(const std::vector<grpc::string_ref>& uris) const {
    CertificateFacts facts;
    facts.uri_count = static_cast<int>(uris.size());
    if (uris.size() == 1) facts.uri.assign(uris[0].data(), uris[0].size());
    facts.not_before = absl::InfinitePast();  // TLS has checked the dates
    facts.not_after = absl::InfiniteFuture();
    const absl::Status s = CheckCertificate(facts, "server", realm_, "peer", absl::Now());
    if (s.ok()) return grpc::Status::OK;
    return grpc::Status(grpc::StatusCode::UNAUTHENTICATED, std::string(s.message()));
  }

  grpc::experimental::HostNameCertificateVerifier host_name_;
  std::string realm_;
};

// gRPC 1.51 looks at errno some calls after connect(2). One of these may be the first of its
// process to spin on an absl::Mutex, which asks for the processor's frequency, which looks for a
// file that few kernels have: then a connection under way fails with "No such file or directory".
// So the question is asked before the first connection. It is internal to abseil: nothing else asks
// it surely.
void KeepErrnoOfConnect() { (void)absl::base_internal::NominalCPUFrequency(); }

absl::StatusOr<CertificateFacts> FactsOf(absl::string_view pem, const std::string& file) {
  absl::StatusOr<CertificateFacts> facts = ParseCertificate(pem);
  if (facts.ok()) return facts;
  return absl::InvalidArgumentError(absl::StrCat(file, ": ", facts.status().message()));
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> PeerCredentials(
    const AdminIdentity& identity, const std::string& realm, absl::string_view own_role) {
  KeepErrnoOfConnect();
  ASSIGN_OR_RETURN(std::string certificate, ReadSmallFile(identity.certificate_file));
  ASSIGN_OR_RETURN(CertificateFacts own, FactsOf(certificate, identity.certificate_file));
  RETURN_IF_ERROR(CheckCertificate(own, identity.certificate_file, realm, own_role, absl::Now()));
  ASSIGN_OR_RETURN(std::string ca, ReadSmallFile(identity.ca_file));
  RETURN_IF_ERROR(FactsOf(ca, identity.ca_file).status());
  ASSIGN_OR_RETURN(std::string key, ReadSmallFile(identity.key_file));
  // While they are renewed one of the two may be the old one still.
  if (absl::Status s = CheckKeyBelongs(certificate, key); !s.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(
        identity.certificate_file, ", ", identity.key_file, ": ", s.message()));
  }

  // From here on gRPC has the private key, in its own memory for as long as the connection lives.
  std::vector<grpc::experimental::IdentityKeyCertPair> pairs = {
      {std::move(key), std::move(certificate)}};
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(
      std::make_shared<grpc::experimental::StaticDataCertificateProvider>(std::move(ca),
                                                                          std::move(pairs)));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_verify_server_certs(true);
  options.set_check_call_host(true);
  options.set_certificate_verifier(ExternalCertificateVerifier::Create<PeerRoleVerifier>(realm));
  return grpc::experimental::TlsCredentials(options);
}

// ---- The three ----

namespace {

template <class... Parts>
absl::Status Refuse(const Parts&... why) {
  return absl::FailedPreconditionError(absl::StrCat(why...));
}

absl::Status CheckOne(const v1::StatusReply& reply, const std::string& name,
                      const std::string& realm, int64_t cluster) {
  const auto refuse = [&](const auto&... why) { return Refuse("server ", name, why...); };
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

// Of two servers; one may have entered a refresh a moment before the other, or be empty.
static bool SameEpoch(const v1::StatusReply& a, const v1::StatusReply& b) {
  const uint64_t older = std::min(a.epoch(), b.epoch()), newer = std::max(a.epoch(), b.epoch());
  const bool refreshing = a.epoch() > b.epoch() ? a.refreshing() : b.refreshing();
  const bool empty = !a.initialised() || !b.initialised();
  return empty || older == newer || (older + 1 == newer && refreshing);
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
    RETURN_IF_ERROR(CheckOne(replies[i], clients_[i]->name(), realm_, cluster));
  }
  lost_ = FindLostStores(replies);
  if (lost_.any() && !allow_uninitialised) return Refuse(lost_.What());
  for (int i = 0; i < 3; ++i) {
    const v1::StatusReply& reply = replies[i];
    const std::string& name = clients_[i]->name();
    if (!reply.initialised() && !allow_uninitialised) {
      return Refuse("server ", name, " has no realm yet: run mpc-admin init-realm");
    }
    int& place = order[reply.party()];
    if (place >= 0) {
      return Refuse("servers ", clients_[place]->name(), " and ", name, " both say they are party ",
                    reply.party());
    }
    place = i;
    const std::string& certificate = clients_[i]->certificate_name();
    if (!certificate.empty() && !certificates.insert(certificate).second) {
      return Refuse("two servers show the certificate ", certificate);
    }
    if (reply.triple() != replies[0].triple()) {
      return Refuse("server ", clients_[0]->name(), " is of triple ", replies[0].triple(), ", ",
                    name, " of triple ", reply.triple(),
                    ": the three of one triple have the same `triple` in mpc-server.toml");
    }
    for (int j = 0; j < i; ++j) {
      const v1::StatusReply& other = replies[j];
      if (reply.cluster() == other.cluster() && SameEpoch(reply, other)) continue;
      return Refuse("servers ", clients_[j]->name(), " and ", name, " differ: cluster ",
                    other.cluster(), " epoch ", other.epoch(), " and cluster ", reply.cluster(),
                    " epoch ", reply.epoch());
    }
  }
  order_ = order;
  target_.realm = realm_;
  // What is of the epoch before is taken while a server refreshes.
  target_.epoch = std::min({replies[0].epoch(), replies[1].epoch(), replies[2].epoch()});
  for (int party = 0; party < 3; ++party) {
    status_[party] = replies[order[party]];
    target_.package_keys[party] = status_[party].package_key();
  }
  return absl::OkStatus();
}

absl::StatusOr<std::array<size_t, 3>> AdminServers::MostKeys(absl::Duration timeout) {
  std::array<uint64_t, 3> has = {};
  for (const absl::Status& s : OnAll([&](int party, AdminClient& server) -> absl::Status {
         ASSIGN_OR_RETURN(const v1::StatusReply status, server.GetStatus(timeout));
         // A number that no memory holds is a lie, and must not wrap round.
         has[party] = std::min<uint64_t>(status.keys(), uint64_t{1} << 40);
         return absl::OkStatus();
       })) {
    RETURN_IF_ERROR(s);
  }
  std::array<size_t, 3> most;
  for (size_t party = 0; party < most.size(); ++party) {
    most[party] = kManyMore * std::max(has[(party + 1) % 3], has[(party + 2) % 3]) + kSomeMore;
  }
  return most;
}

bool AdminServers::Ready() const {
  return std::all_of(status_.begin(), status_.end(), [](const v1::StatusReply& status) {
    return status.initialised() && status.peers_connected() && status.degraded().empty() &&
           !status.has_quarantine() && !status.receiving() &&
           (!status.has_database() || status.database().reachable());
  });
}

}  // namespace mpckdc::enroll
