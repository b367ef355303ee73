// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/enroll/peer_credentials.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <functional>
#include <utility>
#include <vector>

#include "absl/base/internal/sysinfo.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/enroll/admin_client.h"
#include "mpc-server/package/certificate.h"

namespace mpckdc::enroll {
namespace {

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

// gRPC 1.51 looks at errno some calls after connect(2). One of these may be the first of its process
// to spin on an absl::Mutex, which asks for the processor's frequency, which looks for a file that
// few kernels have: then a connection under way fails with "No such file or directory". So the
// question is asked before the first connection. It is internal to abseil: nothing else asks it
// surely.
void KeepErrnoOfConnect() { (void)absl::base_internal::NominalCPUFrequency(); }

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> PeerCredentials(
    const AdminIdentity& identity, const std::string& realm, absl::string_view own_role) {
  KeepErrnoOfConnect();
  ASSIGN_OR_RETURN(CertificateFacts own, ReadCertificate(identity.certificate_file));
  RETURN_IF_ERROR(CheckCertificate(own, identity.certificate_file, realm, own_role, absl::Now()));
  ASSIGN_OR_RETURN(std::string certificate, ReadSmallFile(identity.certificate_file));
  ASSIGN_OR_RETURN(std::string ca, ReadSmallFile(identity.ca_file));
  if (auto facts = ParseCertificate(ca); !facts.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(identity.ca_file, ": ", facts.status().message()));
  }
  ASSIGN_OR_RETURN(std::string key, ReadSmallFile(identity.key_file));

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

}  // namespace mpckdc::enroll
