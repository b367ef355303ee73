// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/package/certificate.h"

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <utility>
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
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  void operator()(EVP_MD_CTX* p) const { EVP_MD_CTX_free(p); }
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

std::unique_ptr<X509, OpensslFree> ParseDer(absl::string_view der) {
  const unsigned char* bytes = reinterpret_cast<const unsigned char*>(der.data());
  return std::unique_ptr<X509, OpensslFree>(
      d2i_X509(nullptr, &bytes, static_cast<long>(der.size())));
}

// A password prompt by OpenSSL would block a daemon: what is encrypted is refused.
int NoPassword(char*, int, int, void*) { return -1; }

// The private key of the certificate with this encoding.
absl::StatusOr<std::shared_ptr<EVP_PKEY>> ParseKeyOf(absl::string_view der,
                                                     absl::string_view key_pem) {
  std::unique_ptr<BIO, OpensslFree> bio(
      BIO_new_mem_buf(key_pem.data(), static_cast<int>(key_pem.size())));
  std::shared_ptr<EVP_PKEY> key(
      bio == nullptr ? nullptr : PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassword, nullptr),
      OpensslFree());
  if (key == nullptr) {
    return absl::InvalidArgumentError("no PEM private key without a password in it");
  }
  std::unique_ptr<X509, OpensslFree> certificate = ParseDer(der);
  if (certificate == nullptr || X509_check_private_key(certificate.get(), key.get()) != 1) {
    return absl::InvalidArgumentError("the private key is not the certificate's");
  }
  return key;
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
      bio == nullptr ? nullptr : PEM_read_bio_X509(bio.get(), nullptr, NoPassword, nullptr));
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

absl::Status CheckKeyBelongs(absl::string_view certificate_pem, absl::string_view key_pem) {
  ASSIGN_OR_RETURN(const CertificateFacts facts, ParseCertificate(certificate_pem));
  return ParseKeyOf(facts.der, key_pem).status();
}

absl::StatusOr<SecretBytes> ReadWholeFile(const std::string& file, size_t max_bytes) {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> in(std::fopen(file.c_str(), "rbe"), &std::fclose);
  if (in == nullptr) {
    return absl::NotFoundError(absl::StrCat("cannot open ", file, ": ", std::strerror(errno)));
  }
  std::setvbuf(in.get(), nullptr, _IONBF, 0);  // no second copy in ordinary memory
  SecretBytes bytes;
  SecretBytes chunk(64 << 10);
  while (const size_t got = std::fread(chunk.data(), 1, chunk.size(), in.get())) {
    bytes.insert(bytes.end(), chunk.begin(), chunk.begin() + got);
    if (bytes.size() > max_bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(file, " is larger than ", max_bytes >> 20, " MiB"));
    }
  }
  if (std::ferror(in.get()) != 0) {
    return absl::UnavailableError(absl::StrCat("cannot read ", file, ": ", std::strerror(errno)));
  }
  return bytes;
}

absl::StatusOr<std::string> ReadSmallFile(const std::string& file) {
  ASSIGN_OR_RETURN(SecretBytes bytes, ReadWholeFile(file, kMaxFileBytes));
  return std::string(bytes.begin(), bytes.end());
}

// ---- Signatures ----

namespace {

// Signed before the sealed bytes; the terminating zero is part of it.
constexpr char kContext[] = "mpc-kdc share package v1";

std::string SignedBytes(absl::string_view sealed) {
  return absl::StrCat(absl::string_view(kContext, sizeof(kContext)), sealed);
}

// SHA-256 with ECDSA on P-256, none (internal) with Ed25519; an error for other keys.
absl::StatusOr<const EVP_MD*> DigestFor(EVP_PKEY* key) {
  if (EVP_PKEY_is_a(key, "ED25519") == 1) return static_cast<const EVP_MD*>(nullptr);
  char group[32] = {};
  size_t bytes = 0;
  if (EVP_PKEY_is_a(key, "EC") == 1 &&
      EVP_PKEY_get_group_name(key, group, sizeof(group), &bytes) == 1 &&
      absl::string_view(group) == "prime256v1") {
    return EVP_sha256();
  }
  return absl::InvalidArgumentError("packages are signed with ECDSA P-256 or Ed25519 keys only");
}

}  // namespace

PackageSigner::PackageSigner(std::shared_ptr<evp_pkey_st> key, std::string certificate_der)
    : key_(std::move(key)), certificate_der_(std::move(certificate_der)) {}

absl::StatusOr<PackageSigner> PackageSigner::FromPemFiles(const std::string& certificate_file,
                                                          const std::string& key_file) {
  ASSIGN_OR_RETURN(std::string certificate, ReadSmallFile(certificate_file));
  ASSIGN_OR_RETURN(std::string key, ReadSmallFile(key_file));
  absl::StatusOr<PackageSigner> signer = FromPem(certificate, key);
  OPENSSL_cleanse(key.data(), key.size());
  if (signer.ok()) return signer;
  return absl::Status(
      signer.status().code(),
      absl::StrCat("identity ", certificate_file, ", ", key_file, ": ", signer.status().message()));
}

absl::StatusOr<PackageSigner> PackageSigner::FromPem(absl::string_view certificate_pem,
                                                     absl::string_view key_pem) {
  ASSIGN_OR_RETURN(CertificateFacts facts, ParseCertificate(certificate_pem));
  ASSIGN_OR_RETURN(std::shared_ptr<EVP_PKEY> key, ParseKeyOf(facts.der, key_pem));
  if (auto digest = DigestFor(key.get()); !digest.ok()) return digest.status();
  return PackageSigner(std::move(key), std::move(facts.der));
}

absl::StatusOr<std::string> PackageSigner::Sign(absl::string_view sealed) const {
  ASSIGN_OR_RETURN(const EVP_MD* digest, DigestFor(key_.get()));
  std::unique_ptr<EVP_MD_CTX, OpensslFree> context(EVP_MD_CTX_new());
  const std::string message = SignedBytes(sealed);
  const unsigned char* bytes = reinterpret_cast<const unsigned char*>(message.data());
  size_t length = static_cast<size_t>(EVP_PKEY_get_size(key_.get()));  // at most
  std::string signature(length, '\0');
  if (context == nullptr ||
      EVP_DigestSignInit(context.get(), nullptr, digest, nullptr, key_.get()) != 1 ||
      EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &length,
                     bytes, message.size()) != 1) {
    return absl::InternalError("cannot sign the share package");
  }
  signature.resize(length);
  return signature;
}

absl::Status VerifyPackageSignature(absl::string_view certificate_der, absl::string_view sealed,
                                    absl::string_view signature) {
  std::unique_ptr<X509, OpensslFree> certificate = ParseDer(certificate_der);
  if (certificate == nullptr) return absl::InvalidArgumentError("the signer is no certificate");
  EVP_PKEY* key = X509_get0_pubkey(certificate.get());
  if (key == nullptr) return absl::InvalidArgumentError("the signer's key is unreadable");
  ASSIGN_OR_RETURN(const EVP_MD* digest, DigestFor(key));
  std::unique_ptr<EVP_MD_CTX, OpensslFree> context(EVP_MD_CTX_new());
  const std::string message = SignedBytes(sealed);
  if (context == nullptr ||
      EVP_DigestVerifyInit(context.get(), nullptr, digest, nullptr, key) != 1 ||
      EVP_DigestVerify(context.get(), reinterpret_cast<const unsigned char*>(signature.data()),
                       signature.size(), reinterpret_cast<const unsigned char*>(message.data()),
                       message.size()) != 1) {
    return absl::UnauthenticatedError("the share package's signature does not verify");
  }
  return absl::OkStatus();
}

}  // namespace mpckdc::enroll
