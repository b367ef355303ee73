// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/package/certificate.h"

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "mpc-server/base/status_macros.h"

namespace mpckdc::enroll {
namespace {

constexpr size_t kMaxFileBytes = 1 << 20;

struct OpensslFree {
  void operator()(BIO* p) const { BIO_free(p); }
  void operator()(X509* p) const { X509_free(p); }
  void operator()(GENERAL_NAMES* p) const { GENERAL_NAMES_free(p); }
};

absl::Time TimeOf(const ASN1_TIME* time) {
  std::tm tm = {};
  if (ASN1_TIME_to_tm(time, &tm) != 1) return absl::UnixEpoch();
  return absl::FromTM(tm, absl::UTCTimeZone());
}

std::vector<std::string> UriNames(const X509* certificate) {
  std::unique_ptr<GENERAL_NAMES, OpensslFree> names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> uris;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* uri = name->d.uniformResourceIdentifier;
    uris.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                      ASN1_STRING_length(uri));
  }
  return uris;
}

}  // namespace

absl::StatusOr<RoleName> ParseRoleName(absl::string_view uri) {
  absl::string_view rest = uri;
  const std::vector<std::string> parts =
      absl::ConsumePrefix(&rest, "spiffe://")
          ? std::vector<std::string>(absl::StrSplit(rest, '/'))
          : std::vector<std::string>();
  const bool known = parts.size() == 4 && !parts[0].empty() && parts[1] == "mpc" &&
                     (parts[2] == "kdc" || parts[2] == "admin" || parts[2] == "peer") &&
                     !parts[3].empty();
  if (!known) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", uri, "\" is not spiffe://REALM/mpc/{kdc,admin,peer}/NAME"));
  }
  return RoleName{parts[0], parts[2], parts[3]};
}

absl::StatusOr<CertificateFacts> ParseCertificate(absl::string_view pem) {
  std::unique_ptr<BIO, OpensslFree> bio(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  std::unique_ptr<X509, OpensslFree> certificate(
      bio == nullptr ? nullptr : PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (certificate == nullptr) return absl::InvalidArgumentError("no PEM certificate in it");
  CertificateFacts facts;
  const std::vector<std::string> uris = UriNames(certificate.get());
  facts.uri_count = static_cast<int>(uris.size());
  if (uris.size() == 1) facts.uri = uris[0];
  facts.not_before = TimeOf(X509_get0_notBefore(certificate.get()));
  facts.not_after = TimeOf(X509_get0_notAfter(certificate.get()));
  unsigned char* der = nullptr;
  const int bytes = i2d_X509(certificate.get(), &der);
  if (bytes <= 0) return absl::InternalError("cannot encode the certificate");
  facts.der.assign(reinterpret_cast<char*>(der), bytes);
  OPENSSL_free(der);
  return facts;
}

absl::StatusOr<CertificateFacts> ReadCertificate(const std::string& file) {
  ASSIGN_OR_RETURN(std::string pem, ReadSmallFile(file));
  absl::StatusOr<CertificateFacts> facts = ParseCertificate(pem);
  if (facts.ok()) return facts;
  return absl::InvalidArgumentError(absl::StrCat(file, ": ", facts.status().message()));
}

absl::Status CheckCertificate(const CertificateFacts& facts, absl::string_view who,
                              absl::string_view realm, absl::string_view role, absl::Time now) {
  const auto refuse = [&](const auto&... why) {
    return absl::PermissionDeniedError(absl::StrCat(who, ": ", why...));
  };
  const auto minute = [](absl::Time time) {
    return absl::FormatTime("%Y-%m-%d %H:%M UTC", time, absl::UTCTimeZone());
  };
  if (facts.uri_count != 1) {
    return refuse("the certificate has ", facts.uri_count,
                  " URI names, expected exactly one, spiffe://", realm, "/mpc/", role, "/NAME");
  }
  absl::StatusOr<RoleName> name = ParseRoleName(facts.uri);
  if (!name.ok()) return refuse(name.status().message());
  if (name->role != role || name->realm != realm) {
    return refuse("the certificate is ", facts.uri, ", expected role ", role, " in realm ", realm);
  }
  if (now > facts.not_after) return refuse("the certificate expired on ", minute(facts.not_after));
  if (now < facts.not_before) {
    return refuse("the certificate is not valid before ", minute(facts.not_before),
                  "; is this machine's clock right?");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadSmallFile(const std::string& file) {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> in(std::fopen(file.c_str(), "rbe"), &std::fclose);
  if (in == nullptr) {
    return absl::NotFoundError(absl::StrCat("cannot open ", file, ": ", std::strerror(errno)));
  }
  std::string content(kMaxFileBytes + 1, '\0');
  const size_t bytes = std::fread(content.data(), 1, content.size(), in.get());
  if (std::ferror(in.get()) != 0) {
    return absl::UnavailableError(absl::StrCat("cannot read ", file, ": ", std::strerror(errno)));
  }
  if (bytes > kMaxFileBytes) {
    return absl::InvalidArgumentError(absl::StrCat(file, " is larger than 1 MiB"));
  }
  content.resize(bytes);
  return content;
}

}  // namespace mpckdc::enroll
