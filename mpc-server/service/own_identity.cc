// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/own_identity.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/package/certificate.h"
#include "mpc-server/package/package_open.h"

namespace mpckdc {
namespace {

constexpr unsigned kReloadSeconds = 30;

template <class T, void (*kFree)(T*)>
struct Free {
  void operator()(T* p) const { kFree(p); }
};
using KeyPtr = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY, EVP_PKEY_free>>;
using CertificatePtr = std::unique_ptr<X509, Free<X509, X509_free>>;

absl::Status CheckKeyAccess(const std::string& file) {
  struct stat info;
  if (stat(file.c_str(), &info) != 0) return absl::OkStatus();  // reading it says why
  if ((info.st_mode & 027) == 0) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrFormat("others may access the private key %s (mode %04o): run chmod 0600 %s", file,
                      info.st_mode & 07777, file));
}

int NoPassword(char*, int, int, void*) { return -1; }

absl::StatusOr<KeyPtr> ReadKey(const std::string& file) {
  std::unique_ptr<BIO, decltype(&BIO_free)> in(BIO_new_file(file.c_str(), "r"), &BIO_free);
  KeyPtr key(in == nullptr ? nullptr
                           : PEM_read_bio_PrivateKey(in.get(), nullptr, NoPassword, nullptr));
  if (key != nullptr) return key;
  return absl::InvalidArgumentError(
      absl::StrCat(file, ": cannot be read, or no PEM private key without a password is in it"));
}

absl::Status CheckKeyMatches(const std::string& der, const Config::Identity& identity) {
  absl::StatusOr<KeyPtr> key = ReadKey(identity.key);
  if (!key.ok()) return key.status();
  const auto* in = reinterpret_cast<const unsigned char*>(der.data());
  CertificatePtr certificate(d2i_X509(nullptr, &in, static_cast<long>(der.size())));
  if (certificate != nullptr && X509_check_private_key(certificate.get(), key->get()) == 1) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("the private key ", identity.key,
                                                 " does not belong to the certificate ",
                                                 identity.certificate));
}

absl::Status CheckName(const enroll::CertificateFacts& facts, const Config& config) {
  absl::StatusOr<enroll::RoleName> name = enroll::ParseRoleName(facts.uri);
  if (!name.ok()) return name.status();
  const std::string& want = config.peers.names[static_cast<size_t>(config.party)];
  if (name->name == want) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      config.identity.certificate, " is the certificate of peer ", name->name, "; party ",
      config.party, " is configured as peer ", want));
}

}  // namespace

absl::StatusOr<OwnIdentity> CheckOwnIdentity(const Config& config, absl::Time now) {
  const Config::Identity& identity = config.identity;
  if (identity.key.empty()) {
    return absl::FailedPreconditionError(
        "[identity] names a credential, and systemd passed none (no $CREDENTIALS_DIRECTORY): start "
        "the server by its unit, which has LoadCredential= and checks the configuration first");
  }
  ASSIGN_OR_RETURN(enroll::CertificateFacts facts, enroll::ReadCertificate(identity.certificate));
  absl::Status status =
      enroll::CheckCertificate(facts, identity.certificate, config.realm, "peer", now);
  if (status.ok()) status = CheckName(facts, config);
  if (status.ok()) status = CheckKeyAccess(identity.key);
  if (status.ok()) status = CheckKeyMatches(facts.der, identity);
  if (!status.ok()) return status;
  absl::StatusOr<Authority> authority = Authority::Load(identity.ca);
  if (!authority.ok()) return authority.status();
  if (absl::Status s = authority->Verify(facts.der, now); !s.ok()) {
    return absl::PermissionDeniedError(absl::StrCat(identity.certificate, ": ", s.message(),
                                                    " (authority: ", identity.ca, ")"));
  }
  return OwnIdentity{facts.not_after};
}

std::shared_ptr<grpc::ServerCredentials> ServiceCredentials(const Config::Identity& identity) {
  auto provider = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      identity.key, identity.certificate, identity.ca, kReloadSeconds);
  grpc::experimental::TlsServerCredentialsOptions options(provider);
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  return grpc::experimental::TlsServerCredentials(options);
}

}  // namespace mpckdc
