// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/health_probe.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/auth_context.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mpc-server/base/one_line.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/service/own_identity.h"
#include "mpc-server/wire/socket.h"
#include "proto/health.grpc.pb.h"

namespace mpckdc {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(3);

// The certificate must come from the authority; that it is ours is looked at afterwards, since it
// need not have a name for the address at which this machine reaches itself.
std::shared_ptr<grpc::ChannelCredentials> CredentialsOf(const OwnIdentity& own) {
  std::vector<grpc::experimental::IdentityKeyCertPair> pairs = {
      {std::string(own.key.begin(), own.key.end()), own.certificate}};
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(
      std::make_shared<grpc::experimental::StaticDataCertificateProvider>(own.ca,
                                                                          std::move(pairs)));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_verify_server_certs(true);
  options.set_check_call_host(false);
  options.set_certificate_verifier(
      std::make_shared<grpc::experimental::NoOpCertificateVerifier>());
  return grpc::experimental::TlsCredentials(options);
}

// Where a server that listens there is reached from its own machine.
absl::StatusOr<std::string> OwnAddress(const std::string& listen) {
  std::string host, port;
  RETURN_IF_ERROR(SplitHostPort(listen, &host, &port));
  if (host == "0.0.0.0") return absl::StrCat("127.0.0.1:", port);
  if (host == "::") return absl::StrCat("[::1]:", port);
  return listen;
}

std::string WantedName(const Config& config) {
  return absl::StrCat("spiffe://", config.realm, "/mpc/peer/",
                      config.peers.names[static_cast<size_t>(config.party)]);
}

}  // namespace

absl::StatusOr<Health> ParseHealth(const std::string& text) {
  if (text == "alive") return Health::kAlive;
  if (text == "serves") return Health::kServes;
  return absl::InvalidArgumentError(
      absl::StrCat("--health=", text, ": alive or serves"));
}

absl::Status ProbeHealth(const Config& config, Health want) {
  ASSIGN_OR_RETURN(const OwnIdentity own, CheckOwnIdentity(config, absl::Now()));
  ASSIGN_OR_RETURN(const std::string address, OwnAddress(config.listen.clients));
  const auto stub =
      grpc::health::v1::Health::NewStub(grpc::CreateChannel(address, CredentialsOf(own)));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
  grpc::health::v1::HealthCheckRequest request;
  if (want == Health::kServes) request.set_service("mpckdc.v1.KeyService");
  grpc::health::v1::HealthCheckResponse reply;
  const grpc::Status called = stub->Check(&context, request, &reply);
  if (!called.ok()) {
    return absl::UnavailableError(
        absl::StrCat("no answer from ", address, ": ", OnOneLine(called.error_message())));
  }
  const auto names = context.auth_context()->FindPropertyValues("peer_uri");
  if (names.size() != 1 ||
      WantedName(config) != absl::string_view(names[0].data(), names[0].size())) {
    return absl::PermissionDeniedError(absl::StrCat("another server answers at ", address));
  }
  if (reply.status() == grpc::health::v1::HealthCheckResponse::SERVING) return absl::OkStatus();
  return absl::UnavailableError("it does not serve logins: mpc-admin status says why");
}

}  // namespace mpckdc
