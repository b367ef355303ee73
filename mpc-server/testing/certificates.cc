// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/testing/certificates.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "mpc-server/wire/ring.h"
#include "mpc-server/wire/socket.h"

namespace mpckdc {
namespace {

void Must(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "test certificates: %s\n", what);
  std::abort();
}

void AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX ctx;
  X509V3_set_ctx(&ctx, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &ctx, nid, value.c_str());
  Must(extension != nullptr, value.c_str());
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

template <class Write>
void ToFile(const std::string& path, Write write) {
  FILE* file = std::fopen(path.c_str(), "w");
  Must(file != nullptr, "cannot write");
  Must(write(file) == 1, "cannot write PEM");
  std::fclose(file);
}

}  // namespace

TestCa::TestCa() {
  std::string pattern = (std::filesystem::temp_directory_path() / "mpckdc-test-XXXXXX").string();
  Must(mkdtemp(pattern.data()) != nullptr, "no temporary directory");
  directory_ = pattern;
  ca_file_ = directory_ + "/ca.pem";
  key_.reset(EVP_EC_gen("P-256"));
  certificate_ = Make(key_.get(), "test CA", {}, 3600);
  ToFile(ca_file_, [&](FILE* f) { return PEM_write_X509(f, certificate_.get()); });
}

TestCa::~TestCa() {
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

TestCa::Certificate TestCa::Make(EVP_PKEY* subject, const std::string& name,
                                 const std::vector<std::string>& uris, int valid_seconds) {
  Certificate c(X509_new());
  X509_set_version(c.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(c.get()), serial_++);
  X509_gmtime_adj(X509_getm_notBefore(c.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(c.get()), valid_seconds);
  X509_set_pubkey(c.get(), subject);
  X509_NAME* subject_name = X509_get_subject_name(c.get());
  X509_NAME_add_entry_by_txt(subject_name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  const bool self_signed = certificate_ == nullptr;
  X509* issuer = self_signed ? c.get() : certificate_.get();
  X509_set_issuer_name(c.get(), X509_get_subject_name(issuer));
  if (self_signed) AddExtension(c.get(), issuer, NID_basic_constraints, "critical,CA:TRUE");
  std::string names;
  for (const std::string& uri : uris) {
    absl::StrAppend(&names, names.empty() ? "" : ",", "URI:", uri);
  }
  if (!names.empty()) AddExtension(c.get(), issuer, NID_subject_alt_name, names);
  Must(X509_sign(c.get(), key_.get(), EVP_sha256()) != 0, "cannot sign");
  return c;
}

TestCa::Identity TestCa::Issue(const std::string& name, const std::vector<std::string>& uris,
                               int valid_seconds) {
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate = Make(key.get(), name, uris, valid_seconds);
  const std::string stem = absl::StrCat(directory_, "/", name, "-", serial_);
  Identity id = {stem + ".pem", stem + ".key"};
  ToFile(id.certificate_file, [&](FILE* f) { return PEM_write_X509(f, certificate.get()); });
  ToFile(id.key_file, [&](FILE* f) {
    return PEM_write_PrivateKey(f, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
  return id;
}

std::array<TlsPeerOptions, 3> TestPeerOptions(TestCa& ca) {
  std::array<TlsPeerOptions, 3> options;
  std::array<std::string, 3> addresses;
  {
    std::vector<Fd> held;  // all at once, so that the three ports differ
    for (std::string& address : addresses) {
      absl::StatusOr<Fd> fd = ListenOn("127.0.0.1:0", {});
      Must(fd.ok(), "no free port");
      address = absl::StrCat("127.0.0.1:", LocalPort(*fd));
      held.push_back(*std::move(fd));
    }
  }
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
