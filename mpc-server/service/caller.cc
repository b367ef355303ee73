// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/caller.h"

#include <grpcpp/security/auth_context.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/package/certificate.h"

namespace mpckdc {
namespace {

// For as long a caller that does not come back is remembered, and how many: names are given by the
// authority, so there are few.
constexpr absl::Duration kRemembered = absl::Hours(24);
constexpr size_t kMaxSeen = 256;
// Two processes of one name may have different certificates: the one that ends later counts, unless
// nobody has shown it for this long.
constexpr absl::Duration kReplaced = absl::Minutes(1);

constexpr char kPemProperty[] = "x509_pem_cert";  // gRPC's name of the peer's leaf certificate

absl::StatusOr<std::string> PemOf(absl::string_view der) {
  const auto* in = reinterpret_cast<const unsigned char*>(der.data());
  std::unique_ptr<X509, decltype(&X509_free)> certificate(
      d2i_X509(nullptr, &in, static_cast<long>(der.size())), &X509_free);
  std::unique_ptr<BIO, decltype(&BIO_free)> out(BIO_new(BIO_s_mem()), &BIO_free);
  if (certificate == nullptr || out == nullptr ||
      PEM_write_bio_X509(out.get(), certificate.get()) != 1) {
    return absl::InvalidArgumentError("it is no certificate");
  }
  char* data = nullptr;
  const long size = BIO_get_mem_data(out.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

}  // namespace

absl::StatusOr<Caller> Doorkeeper::Admit(const grpc::AuthContext& context, absl::string_view what,
                                         std::initializer_list<absl::string_view> roles) const {
  const std::vector<grpc::string_ref> pem = context.FindPropertyValues(kPemProperty);
  if (pem.size() != 1) {
    return absl::UnauthenticatedError(absl::StrCat(what, " needs a client certificate"));
  }
  absl::StatusOr<Caller> caller =
      AdmitPem(absl::string_view(pem[0].data(), pem[0].size()), what, roles);
  if (caller.ok()) Note(*caller);
  return caller;
}

absl::StatusOr<Caller> Doorkeeper::AdmitDer(absl::string_view der, absl::string_view what,
                                            std::initializer_list<absl::string_view> roles) const {
  absl::StatusOr<std::string> pem = PemOf(der);
  if (!pem.ok()) {
    return absl::PermissionDeniedError(absl::StrCat(what, ": ", pem.status().message()));
  }
  return AdmitPem(*pem, what, roles);
}

absl::StatusOr<Caller> Doorkeeper::AdmitPem(absl::string_view pem, absl::string_view what,
                                            std::initializer_list<absl::string_view> roles) const {
  const std::string want = absl::StrCat(what, " needs the role ", absl::StrJoin(roles, " or "),
                                        " in realm ", realm_);
  absl::StatusOr<enroll::CertificateFacts> facts = enroll::ParseCertificate(pem);
  if (!facts.ok()) {
    return absl::PermissionDeniedError(absl::StrCat(want, "; ", facts.status().message()));
  }
  if (facts->uri_count != 1) {
    return absl::PermissionDeniedError(absl::StrCat(
        want, "; the caller's certificate has ", facts->uri_count, " URI names instead of one"));
  }
  absl::StatusOr<enroll::RoleName> name = enroll::ParseRoleName(facts->uri);
  if (!name.ok()) {
    return absl::PermissionDeniedError(absl::StrCat(want, "; ", name.status().message()));
  }
  const bool fits = name->realm == realm_ &&
                    std::find(roles.begin(), roles.end(), name->role) != roles.end();
  if (!fits) {
    return absl::PermissionDeniedError(absl::StrCat(want, "; the caller is ", name->role, " (",
                                                    facts->uri, ")"));
  }
  Caller caller{name->role, name->name, FingerprintOf(facts->der), facts->not_after};
  if (clock_->Now() < facts->not_before) {
    return absl::PermissionDeniedError(
        absl::StrCat("the certificate of ", caller.Text(), " is not valid yet"));
  }
  RETURN_IF_ERROR(StillGood(caller));
  return caller;
}

void Doorkeeper::Note(const Caller& caller) const {
  const absl::Time now = clock_->Now();
  absl::MutexLock lock(&mutex_);
  const auto [found, fresh] = seen_.try_emplace(caller.Text());
  SeenCaller& seen = found->second;
  if (!fresh && caller.not_after < seen.expires && now < seen.last + kReplaced) return;
  seen = {caller.Text(), caller.not_after, now};
  if (seen_.size() <= kMaxSeen) return;
  seen_.erase(std::min_element(seen_.begin(), seen_.end(), [](const auto& a, const auto& b) {
    return a.second.last < b.second.last;
  }));
}

std::vector<SeenCaller> Doorkeeper::Seen() const {
  const absl::Time now = clock_->Now();
  std::vector<SeenCaller> seen;
  absl::MutexLock lock(&mutex_);
  for (const auto& [name, caller] : seen_) {
    if (now < caller.last + kRemembered) seen.push_back(caller);
  }
  return seen;
}

absl::Status Doorkeeper::StillGood(const Caller& caller) const {
  if (clock_->Now() >= caller.not_after) {
    return absl::PermissionDeniedError(absl::StrCat(
        "the certificate of ", caller.Text(), " expired on ",
        absl::FormatTime("%Y-%m-%d %H:%M UTC", caller.not_after, absl::UTCTimeZone())));
  }
  if (denied_->Denies(caller.fingerprint)) {
    return absl::PermissionDeniedError(
        absl::StrCat("the certificate of ", caller.Text(), " is on this server's deny list"));
  }
  return absl::OkStatus();
}

}  // namespace mpckdc
