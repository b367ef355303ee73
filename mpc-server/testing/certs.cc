// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/testing/certs.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <fstream>

#include "absl/strings/str_cat.h"

namespace mpckdc {
namespace {

using BioPtr = std::unique_ptr<BIO, decltype(&BIO_free)>;

std::string Contents(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<size_t>(size));
}

BioPtr NewBio() { return BioPtr(BIO_new(BIO_s_mem()), &BIO_free); }

std::shared_ptr<EVP_PKEY> NewKey() {
  return std::shared_ptr<EVP_PKEY>(EVP_EC_gen("P-256"), &EVP_PKEY_free);
}

std::shared_ptr<X509> NewCertificate(EVP_PKEY* key, const char* name, absl::Duration starts,
                                     absl::Duration ends) {
  std::shared_ptr<X509> cert(X509_new(), &X509_free);
  uint64_t serial = 0;
  RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial);
  X509_set_version(cert.get(), X509_VERSION_3);
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(cert.get()), serial >> 1);
  X509_gmtime_adj(X509_getm_notBefore(cert.get()), absl::ToInt64Seconds(starts));
  X509_gmtime_adj(X509_getm_notAfter(cert.get()), absl::ToInt64Seconds(ends));
  X509_set_pubkey(cert.get(), key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(cert.get()), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name), -1, -1, 0);
  return cert;
}

void AddExtension(X509* cert, int nid, const std::string& value) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, nid, value.c_str());
  ASSERT_NE(extension, nullptr) << value;
  X509_add_ext(cert, extension, -1);
  X509_EXTENSION_free(extension);
}

TestCert Encode(X509* cert, EVP_PKEY* key) {
  TestCert out;
  BioPtr cert_bio = NewBio();
  PEM_write_bio_X509(cert_bio.get(), cert);
  out.certificate_pem = Contents(cert_bio.get());
  BioPtr key_bio = NewBio();
  PEM_write_bio_PrivateKey(key_bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
  out.key_pem = Contents(key_bio.get());
  BioPtr der_bio = NewBio();
  i2d_X509_bio(der_bio.get(), cert);
  out.der = Contents(der_bio.get());
  return out;
}

}  // namespace

TestAuthority::TestAuthority() : key_(NewKey()) {
  certificate_ = NewCertificate(key_.get(), "test authority", -absl::Hours(48), absl::Hours(48));
  X509_set_issuer_name(certificate_.get(), X509_get_subject_name(certificate_.get()));
  AddExtension(certificate_.get(), NID_basic_constraints, "critical,CA:TRUE");
  AddExtension(certificate_.get(), NID_key_usage, "critical,keyCertSign,cRLSign");
  X509_sign(certificate_.get(), key_.get(), EVP_sha256());
  ca_ = Encode(certificate_.get(), key_.get());
}

TestCert TestAuthority::Issue(const TestCertOptions& options) const {
  std::shared_ptr<EVP_PKEY> key = NewKey();
  std::shared_ptr<X509> cert = NewCertificate(key.get(), "test", options.starts, options.ends);
  X509_set_issuer_name(cert.get(), X509_get_subject_name(certificate_.get()));
  std::string names = "DNS:localhost,IP:127.0.0.1";
  for (const std::string& uri : options.uris) absl::StrAppend(&names, ",URI:", uri);
  AddExtension(cert.get(), NID_subject_alt_name, names);
  AddExtension(cert.get(), NID_key_usage, "critical,digitalSignature");
  AddExtension(cert.get(), NID_ext_key_usage, "serverAuth,clientAuth");
  X509_sign(cert.get(), key_.get(), EVP_sha256());
  return Encode(cert.get(), key.get());
}

TestCert TestAuthority::IssueRole(const std::string& role, const std::string& name) const {
  TestCertOptions options;
  options.uris = {absl::StrCat("spiffe://EXAMPLE.COM/mpc/", role, "/", name)};
  return Issue(options);
}

void WriteCert(const std::string& folder, const std::string& name, const TestCert& cert) {
  std::ofstream(absl::StrCat(folder, "/", name, ".pem")) << cert.certificate_pem;
  const std::string key_file = absl::StrCat(folder, "/", name, ".key");
  std::ofstream(key_file) << cert.key_pem;
  chmod(key_file.c_str(), 0600);
}

}  // namespace mpckdc
