// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/testing/pkinit.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>

#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/der.h"

namespace mpckdc {
namespace {

void Must(bool ok, absl::string_view what) {
  if (ok) return;
  std::fprintf(stderr, "test certificates: %.*s\n", static_cast<int>(what.size()), what.data());
  ERR_print_errors_fp(stderr);
  std::abort();
}

std::string Bytes(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<size_t>(size));
}

std::string ObjectDer(const std::string& dotted) {
  const ObjectPtr object(OBJ_txt2obj(dotted.c_str(), 1));
  Must(object != nullptr, dotted);
  return Der(der::kObject, {reinterpret_cast<const char*>(OBJ_get0_data(object.get())),
                            OBJ_length(object.get())});
}

std::string OtherName(const std::string& type, absl::string_view value) {
  return Der(der::Field(0), absl::StrCat(ObjectDer(type), Der(der::Field(0), value)));
}

// The two fields that KRB5PrincipalName and KDC-REQ-BODY have in common.
std::string Strings(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) absl::StrAppend(&all, Der(der::kGeneralString, text));
  return all;
}

std::string Hash(const EVP_MD* md, absl::string_view bytes) {
  std::string out(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  Must(EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<uint8_t*>(out.data()), &size, md,
                  nullptr) == 1,
       "digest");
  out.resize(size);
  return out;
}

std::string TimeDer(absl::Time time) {
  return Der(der::kTime, absl::FormatTime("%Y%m%d%H%M%SZ", time, absl::UTCTimeZone()));
}

PkeyPtr NewKey(int rsa_bits) {
  PkeyPtr key(rsa_bits == 0 ? EVP_EC_gen("P-256") : EVP_RSA_gen(static_cast<unsigned>(rsa_bits)));
  Must(key != nullptr, "key");
  return key;
}

void Add(X509* cert, int nid, const std::string& value) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, nid, value.c_str());
  Must(extension != nullptr && X509_add_ext(cert, extension, -1) == 1, value);
  X509_EXTENSION_free(extension);
}

void AddSans(X509* cert, const std::vector<std::string>& sans) {
  std::string all;
  for (const std::string& san : sans) all += san;
  const std::string names = Der(der::kSequence, all);
  ASN1_OCTET_STRING* octets = ASN1_OCTET_STRING_new();
  ASN1_OCTET_STRING_set(octets, reinterpret_cast<const uint8_t*>(names.data()),
                        static_cast<int>(names.size()));
  X509_EXTENSION* extension =
      X509_EXTENSION_create_by_NID(nullptr, NID_subject_alt_name, 0, octets);
  Must(extension != nullptr && X509_add_ext(cert, extension, -1) == 1, "subjectAltName");
  X509_EXTENSION_free(extension);
  ASN1_OCTET_STRING_free(octets);
}

ClientCert NewCert(const std::string& name, const ClientCertOptions& options) {
  ClientCert made{X509Ptr(X509_new()), NewKey(options.rsa_bits)};
  X509* const cert = made.certificate.get();
  uint64_t serial = 0;
  RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial);
  X509_set_version(cert, X509_VERSION_3);
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(cert), serial >> 1);
  X509_gmtime_adj(X509_getm_notBefore(cert), absl::ToInt64Seconds(options.starts));
  X509_gmtime_adj(X509_getm_notAfter(cert), absl::ToInt64Seconds(options.ends));
  X509_set_pubkey(cert, made.key.get());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  if (options.is_ca) Add(cert, NID_basic_constraints, "critical,CA:TRUE");
  if (!options.sans.empty()) AddSans(cert, options.sans);
  if (!options.key_usage.empty()) Add(cert, NID_key_usage, "critical," + options.key_usage);
  if (!options.eku.empty()) Add(cert, NID_ext_key_usage, options.eku);
  return made;
}

void Sign(X509* cert, const ClientCert& issuer, const EVP_MD* md) {
  X509_set_issuer_name(cert, X509_get_subject_name(issuer.certificate.get()));
  Must(X509_sign(cert, issuer.key.get(), md) > 0, "signing a certificate");
}

ClientCertOptions OfAuthority(int rsa_bits = 0) {
  return {.sans = {}, .eku = "", .key_usage = "keyCertSign,cRLSign", .starts = -absl::Hours(48),
          .ends = absl::Hours(48), .rsa_bits = rsa_bits, .is_ca = true};
}

}  // namespace

std::string Der(uint8_t tag, absl::string_view contents) {
  std::string out(1, static_cast<char>(tag));
  const size_t size = contents.size();
  if (size < 0x80) {
    AppendUint(out, size, 1);
  } else {
    const size_t width = size < 0x100 ? 1 : size < 0x10000 ? 2 : 3;
    AppendUint(out, 0x80 | width, 1);
    AppendUint(out, size, width);
  }
  return absl::StrCat(out, contents);
}

std::string DerNumber(int64_t value) {
  std::string bytes;
  AppendUint(bytes, static_cast<uint64_t>(value), 8);
  const auto superfluous = [&bytes] {
    const bool next = (bytes[1] & 0x80) != 0;
    return bytes.size() > 1 && ((bytes[0] == 0 && !next) || (bytes[0] == '\xff' && next));
  };
  while (superfluous()) bytes.erase(0, 1);
  return Der(der::kInteger, bytes);
}

std::string DerPrincipal(const std::vector<std::string>& components) {
  return Der(der::kSequence,
             absl::StrCat(Der(der::Field(0), DerNumber(1)),
                          Der(der::Field(1), Der(der::kSequence, Strings(components)))));
}

std::string PkinitSan(const std::string& realm, const std::vector<std::string>& components) {
  return OtherName("1.3.6.1.5.2.2",
                   Der(der::kSequence,
                       absl::StrCat(Der(der::Field(0), Der(der::kGeneralString, realm)),
                                    Der(der::Field(1), DerPrincipal(components)))));
}

std::string UpnSan(const std::string& upn) {
  return OtherName("1.3.6.1.4.1.311.20.2.3", Der(der::kUtf8, upn));
}

std::string DnsSan(const std::string& host) { return Der(der::Implicit(2), host); }

ClientAuthority::ClientAuthority(const std::string& name, int rsa_bits)
    : own_(NewCert(name, OfAuthority(rsa_bits))) {
  Sign(own_.certificate.get(), own_, EVP_sha256());
}

ClientAuthority::ClientAuthority(const ClientAuthority& issuer, const std::string& name)
    : own_(NewCert(name, OfAuthority())) {
  Sign(own_.certificate.get(), issuer.own_, EVP_sha256());
}

ClientCert ClientAuthority::Issue(const ClientCertOptions& options) const {
  ClientCert made = NewCert("client", options);
  Sign(made.certificate.get(), own_, options.md);
  return made;
}

std::string ClientAuthority::CrlPem(const std::vector<const X509*>& revoked,
                                    absl::Duration ends) const {
  const CrlPtr crl(X509_CRL_new());
  X509_CRL_set_version(crl.get(), X509_CRL_VERSION_2);
  X509_CRL_set_issuer_name(crl.get(), X509_get_subject_name(certificate()));
  ASN1_TIME* const at = ASN1_TIME_new();
  X509_gmtime_adj(at, -absl::ToInt64Seconds(absl::Hours(2)));
  X509_CRL_set1_lastUpdate(crl.get(), at);
  for (const X509* one : revoked) {
    X509_REVOKED* const entry = X509_REVOKED_new();
    X509_REVOKED_set_serialNumber(entry, const_cast<ASN1_INTEGER*>(X509_get0_serialNumber(one)));
    X509_REVOKED_set_revocationDate(entry, at);
    Must(X509_CRL_add0_revoked(crl.get(), entry) == 1, "revoked");
  }
  X509_gmtime_adj(at, absl::ToInt64Seconds(ends));
  X509_CRL_set1_nextUpdate(crl.get(), at);
  ASN1_TIME_free(at);
  X509_CRL_sort(crl.get());
  Must(X509_CRL_sign(crl.get(), own_.key.get(), EVP_sha256()) > 0, "signing a CRL");
  const BioPtr bio(BIO_new(BIO_s_mem()));
  Must(PEM_write_bio_X509_CRL(bio.get(), crl.get()) == 1, "writing a CRL");
  return Bytes(bio.get());
}

std::string ClientAuthority::pem() const {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  Must(PEM_write_bio_X509(bio.get(), certificate()) == 1, "writing a certificate");
  return Bytes(bio.get());
}

std::string RequestBodyDer(const LoginOptions& options) {
  return Der(der::kSequence,
             absl::StrCat(Der(der::Field(0), Der(0x03, std::string("\0\0\0\0\x10", 5))),
                          Der(der::Field(1), DerPrincipal(options.client)),
                          Der(der::Field(2), Der(der::kGeneralString, options.realm)),
                          Der(der::Field(3), DerPrincipal(options.server)),
                          Der(der::Field(5), TimeDer(options.time + absl::Hours(10))),
                          Der(der::Field(7), DerNumber(123456789)),
                          Der(der::Field(8), Der(der::kSequence, DerNumber(18)))));
}

std::string AuthPackDer(const LoginOptions& options, absl::string_view body) {
  const absl::Time second = absl::FromUnixSeconds(absl::ToUnixSeconds(options.time));
  std::string fields = absl::StrCat(
      Der(der::Field(0), DerNumber(absl::ToInt64Microseconds(options.time - second))),
      Der(der::Field(1), TimeDer(second)), Der(der::Field(2), DerNumber(0xfedcba98)));
  if (options.with_checksum) {
    absl::StrAppend(&fields, Der(der::Field(3), Der(der::kOctets, Hash(EVP_sha1(), body))));
  }
  if (options.second != nullptr) {
    const std::string object = ObjectDer(
        options.second == EVP_sha1() ? "1.3.14.3.2.26" : "2.16.840.1.101.3.4.2.1");
    absl::StrAppend(
        &fields,
        Der(der::Field(5),
            Der(der::kSequence,
                absl::StrCat(Der(der::Field(0), Der(der::kOctets, Hash(options.second, body))),
                             Der(der::Field(1), Der(der::kSequence, object))))));
  }
  return Der(der::kSequence, Der(der::Field(0), Der(der::kSequence, fields)));
}

std::string SignCms(absl::string_view content, const ClientCert& signer,
                    const LoginOptions& options) {
  const BioPtr in(BIO_new_mem_buf(content.data(), static_cast<int>(content.size())));
  const unsigned flags = CMS_BINARY | CMS_PARTIAL;
  const CmsPtr cms(CMS_sign(nullptr, nullptr, nullptr, nullptr, flags));
  const ObjectPtr type(OBJ_txt2obj(options.content_type.c_str(), 1));
  Must(cms != nullptr && CMS_set1_eContentType(cms.get(), type.get()) == 1, "content type");
  for (X509* one : options.also_sent) Must(CMS_add1_cert(cms.get(), one) == 1, "certificate");
  const unsigned attributes = options.with_attributes ? 0u : CMS_NOATTR;
  Must(CMS_add1_signer(cms.get(), signer.certificate.get(), signer.key.get(), options.md,
                       flags | CMS_NOSMIMECAP | attributes) != nullptr,
       "signer");
  Must(CMS_final(cms.get(), in.get(), nullptr, CMS_BINARY) == 1, "signature");
  const BioPtr out(BIO_new(BIO_s_mem()));
  Must(i2d_CMS_bio(out.get(), cms.get()) == 1, "encoding");
  return Bytes(out.get());
}

std::string PaPkAsReq(absl::string_view cms) {
  return Der(der::kSequence, Der(der::Implicit(0), cms));
}

CertificateProof SignLogin(const ClientCert& signer, const LoginOptions& options) {
  const std::string body = RequestBodyDer(options);
  const std::string pack =
      AuthPackDer(options, options.signed_body.empty() ? body : options.signed_body);
  return {PaPkAsReq(SignCms(pack, signer, options)), body};
}

}  // namespace mpckdc
