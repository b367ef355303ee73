// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/testing/certificates.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "mpc-server/testing/free_port.h"
#include "mpc-server/wire/ring.h"

namespace mpckdc {
namespace {

void Must(bool ok, const std::string& what) {
  if (ok) return;
  std::fprintf(stderr, "test certificates: %s\n", what.c_str());
  std::abort();
}

// What `write` writes to a BIO.
template <class Write>
std::string Written(Write write) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new(BIO_s_mem()), &BIO_free);
  Must(write(bio.get()) == 1, "cannot write PEM");
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

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
  Must(extension != nullptr, value);
  X509_add_ext(cert, extension, -1);
  X509_EXTENSION_free(extension);
}

TestCert Encode(X509* cert, EVP_PKEY* key) {
  return {Written([&](BIO* bio) { return PEM_write_bio_X509(bio, cert); }), Written([&](BIO* bio) {
            return PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
          }),
          Written([&](BIO* bio) { return i2d_X509_bio(bio, cert); })};
}

}  // namespace

TestAuthority::TestAuthority() : key_(NewKey()) {
  // A name of its own: by the name alone one who verifies finds the authority.
  static std::atomic<int> count = 0;
  const std::string name = absl::StrCat("test authority ", ++count);
  certificate_ = NewCertificate(key_.get(), name.c_str(), -absl::Hours(48), absl::Hours(48));
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
  return Issue({.uris = {absl::StrCat("spiffe://EXAMPLE.COM/mpc/", role, "/", name)}});
}

void WriteCert(const std::string& folder, const std::string& name, const TestCert& cert) {
  std::ofstream(absl::StrCat(folder, "/", name, ".pem")) << cert.certificate_pem;
  const std::string key_file = absl::StrCat(folder, "/", name, ".key");
  std::ofstream(key_file) << cert.key_pem;
  chmod(key_file.c_str(), 0600);
}

TestCa::TestCa()
    : directory_((std::filesystem::temp_directory_path() / "mpckdc-test-XXXXXX").string()) {
  Must(mkdtemp(directory_.data()) != nullptr, "no temporary directory");
  std::ofstream(ca_file()) << authority_.ca_pem();
}

TestCa::~TestCa() {
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

TestCa::Identity TestCa::Issue(const std::string& name, const std::vector<std::string>& uris,
                               absl::Duration ends) {
  const std::string stem = absl::StrCat(name, "-", ++issued_);
  WriteCert(directory_, stem, authority_.Issue({.uris = uris, .ends = ends}));
  return {absl::StrCat(directory_, "/", stem, ".pem"), absl::StrCat(directory_, "/", stem, ".key")};
}

std::array<TlsPeerOptions, 3> TestPeerOptions(TestCa& ca) {
  std::array<TlsPeerOptions, 3> options;
  std::array<std::string, 3> addresses;
  for (std::string& address : addresses) address = FreeLoopbackAddress();
  for (int p = 0; p < kParties; ++p) {
    TlsPeerOptions& o = options[p];
    const std::string name = absl::StrCat("p", p);
    const TestCa::Identity id = ca.Issue(name, {"spiffe://TEST/mpc/peer/" + name});
    o.party = p;
    o.realm = "TEST";
    o.certificate_file = id.certificate_file;
    o.key_file = id.key_file;
    o.ca_file = ca.ca_file();
    o.listen = addresses[p];
    o.peers = addresses;
  }
  return options;
}

std::array<std::unique_ptr<PeerChannel>, 3> ConnectThree(
    const std::array<TlsPeerOptions, 3>& options) {
  std::array<std::unique_ptr<PeerChannel>, 3> channels;
  std::vector<std::thread> threads;
  for (int p = 0; p < kParties; ++p) {
    threads.emplace_back([&, p] {
      auto connector = TlsPeerConnector::Create(options[p]);
      Must(connector.ok(), connector.status().ToString().c_str());
      auto channel = (*connector)->Connect(SystemClock().Now() + absl::Seconds(20));
      Must(channel.ok(), channel.status().ToString().c_str());
      channels[p] = *std::move(channel);
    });
  }
  for (std::thread& t : threads) t.join();
  return channels;
}

}  // namespace mpckdc
