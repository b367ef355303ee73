// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/identity_keeper.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc {
namespace {

// How often gRPC looks at the files in memory.
constexpr unsigned kGrpcLooksEvery = 5;
// A certificate that was not valid yet, a file system that failed.
constexpr absl::Duration kReadAgain = absl::Minutes(1);

}  // namespace

absl::StatusOr<MemoryFile> MemoryFile::Make(const char* name) {
  Fd fd(memfd_create(name, MFD_CLOEXEC));
  if (fd.valid()) return MemoryFile(std::move(fd));
  return absl::UnavailableError(absl::StrCat("no file in memory for the certificate: ",
                                             strerror(errno)));
}

absl::Status MemoryFile::Write(absl::string_view contents) {
  const ssize_t size = static_cast<ssize_t>(contents.size());
  if (pwrite(fd_.get(), contents.data(), contents.size(), 0) == size &&
      ftruncate(fd_.get(), size) == 0) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat("the file in memory for the certificate: ",
                                             strerror(errno)));
}

std::string MemoryFile::path() const { return absl::StrCat("/proc/self/fd/", fd_.get()); }

IdentityKeeper::IdentityKeeper(const Config* config, Clock* clock, MemoryFile certificate,
                               MemoryFile key, MemoryFile ca)
    : config_(config),
      clock_(clock),
      certificate_(std::move(certificate)),
      key_(std::move(key)),
      ca_(std::move(ca)) {}

absl::StatusOr<std::unique_ptr<IdentityKeeper>> IdentityKeeper::Open(const Config* config,
                                                                     Clock* clock) {
  ASSIGN_OR_RETURN(MemoryFile certificate, MemoryFile::Make("certificate"));
  ASSIGN_OR_RETURN(MemoryFile key, MemoryFile::Make("key"));
  ASSIGN_OR_RETURN(MemoryFile ca, MemoryFile::Make("ca"));
  std::unique_ptr<IdentityKeeper> keeper(new IdentityKeeper(
      config, clock, std::move(certificate), std::move(key), std::move(ca)));
  RETURN_IF_ERROR(keeper->Read().status);
  return keeper;
}

std::vector<std::string> IdentityKeeper::Files() const {
  return {config_->identity.certificate, config_->identity.key, config_->identity.ca};
}

IdentityKeeper::Found IdentityKeeper::Read() { return Use(StampsOf(Files())); }

IdentityKeeper::Found IdentityKeeper::Tick() {
  FileStamps now = StampsOf(Files());
  {
    absl::MutexLock lock(&mutex_);
    const bool settled = now == seen_;
    seen_ = now;
    const bool again = clock_->Now() >= again_;
    if (!settled || (now == used_ && !again)) return {};
  }
  return Use(std::move(now));
}

// The stamps were taken before the files are read: what changes meanwhile is read again.
IdentityKeeper::Found IdentityKeeper::Use(FileStamps stamps) {
  const absl::Time now = clock_->Now();
  absl::StatusOr<OwnIdentity> own = CheckOwnIdentity(*config_, now);
  absl::MutexLock lock(&mutex_);
  used_ = stamps;
  seen_ = std::move(stamps);
  absl::Status status = own.status();
  if (status.ok() && own->certificate == certificate_pem_ && own->ca == ca_pem_) {
    state_.trouble.clear();
    again_ = absl::InfiniteFuture();
    return {};
  }
  if (status.ok()) status = GiveToGrpc(*own);
  if (!status.ok()) {
    state_.trouble = std::string(status.message());
    again_ = now + kReadAgain;
    return {false, std::move(status)};
  }
  own_authority_.Become(own->authority);
  certificate_pem_ = own->certificate;
  ca_pem_ = own->ca;
  state_ = {own->expires, own->authority_expires, own->fingerprint, ""};
  again_ = absl::InfiniteFuture();
  return {true, absl::OkStatus()};
}

// In between gRPC may look: then new connections fail until it looks again.
absl::Status IdentityKeeper::GiveToGrpc(const OwnIdentity& own) {
  RETURN_IF_ERROR(ca_.Write(own.ca));
  RETURN_IF_ERROR(key_.Write(
      absl::string_view(reinterpret_cast<const char*>(own.key.data()), own.key.size())));
  return certificate_.Write(own.certificate);
}

std::shared_ptr<grpc::ServerCredentials> IdentityKeeper::Credentials() const {
  return WatchedCredentials(key_.path(), certificate_.path(), ca_.path());
}

TlsPeerOptions IdentityKeeper::ForPeers(TlsPeerOptions options) const {
  options.certificate_file = certificate_.path();
  options.key_file = key_.path();
  options.ca_file = ca_.path();
  return options;
}

std::shared_ptr<grpc::ServerCredentials> WatchedCredentials(const std::string& key,
                                                            const std::string& certificate,
                                                            const std::string& ca) {
  auto provider = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      key, certificate, ca, kGrpcLooksEvery);
  grpc::experimental::TlsServerCredentialsOptions options(provider);
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  return grpc::experimental::TlsServerCredentials(options);
}

CertificateState IdentityKeeper::State() const {
  absl::MutexLock lock(&mutex_);
  return state_;
}

}  // namespace mpckdc
