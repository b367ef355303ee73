// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/package/package_signer.h"

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/package/certificate.h"

namespace mpckdc::enroll {
namespace {

// Signed before the sealed bytes; the terminating zero is part of it.
constexpr char kContext[] = "mpc-kdc share package v1";

struct OpensslFree {
  void operator()(BIO* p) const { BIO_free(p); }
  void operator()(X509* p) const { X509_free(p); }
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  void operator()(EVP_MD_CTX* p) const { EVP_MD_CTX_free(p); }
};

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

std::unique_ptr<X509, OpensslFree> ParseDer(absl::string_view der) {
  const unsigned char* bytes = reinterpret_cast<const unsigned char*>(der.data());
  return std::unique_ptr<X509, OpensslFree>(
      d2i_X509(nullptr, &bytes, static_cast<long>(der.size())));
}

// A password prompt by OpenSSL would block a daemon: encrypted keys are refused.
int NoPassword(char*, int, int, void*) { return -1; }

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
  return absl::Status(signer.status().code(),
                      absl::StrCat("identity ", certificate_file, ", ", key_file, ": ",
                                   signer.status().message()));
}

absl::StatusOr<PackageSigner> PackageSigner::FromPem(absl::string_view certificate_pem,
                                                     absl::string_view key_pem) {
  ASSIGN_OR_RETURN(CertificateFacts facts, ParseCertificate(certificate_pem));
  std::unique_ptr<BIO, OpensslFree> bio(
      BIO_new_mem_buf(key_pem.data(), static_cast<int>(key_pem.size())));
  std::shared_ptr<EVP_PKEY> key(
      bio == nullptr ? nullptr : PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassword, nullptr),
      OpensslFree());
  if (key == nullptr) {
    return absl::InvalidArgumentError("no PEM private key without a password in it");
  }
  if (auto digest = DigestFor(key.get()); !digest.ok()) return digest.status();
  std::unique_ptr<X509, OpensslFree> certificate = ParseDer(facts.der);
  if (certificate == nullptr || X509_check_private_key(certificate.get(), key.get()) != 1) {
    return absl::InvalidArgumentError("the private key is not the certificate's");
  }
  return PackageSigner(std::move(key), std::move(facts.der));
}

absl::StatusOr<std::string> PackageSigner::Sign(absl::string_view sealed) const {
  ASSIGN_OR_RETURN(const EVP_MD* digest, DigestFor(key_.get()));
  std::unique_ptr<EVP_MD_CTX, OpensslFree> context(EVP_MD_CTX_new());
  const std::string message = SignedBytes(sealed);
  const unsigned char* bytes = reinterpret_cast<const unsigned char*>(message.data());
  size_t length = 0;
  if (context == nullptr ||
      EVP_DigestSignInit(context.get(), nullptr, digest, nullptr, key_.get()) != 1 ||
      EVP_DigestSign(context.get(), nullptr, &length, bytes, message.size()) != 1) {
    return absl::InternalError("cannot sign the share package");
  }
  std::string signature(length, '\0');
  if (EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &length,
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
