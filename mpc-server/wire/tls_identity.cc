// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/wire/tls_identity.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/wire/record_choice.h"

namespace mpckdc {
namespace {

constexpr size_t kReadBuffer = 64 << 10;  // several TLS records per recv()

// The fastest first. 128 bits are what the zero shares rest on as well.
constexpr char kCiphersuites[] = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384";

// The first list that this OpenSSL knows. Its own has ffdhe8192, for which a server computes 140 ms
// of the first message of anybody; these are less than one.
constexpr const char* kGroups[] = {"X25519MLKEM768:X25519:P-256", "X25519:P-256"};

struct FreeX509 {
  void operator()(X509* x) const { X509_free(x); }
};
struct FreeNames {
  void operator()(GENERAL_NAMES* n) const { GENERAL_NAMES_free(n); }
};

absl::Status FileError(absl::string_view what, absl::string_view file) {
  return absl::FailedPreconditionError(absl::StrCat(what, " ", file, ": ", TakeSslError()));
}

// The certificate's only URI name; an error when there is none or more than one.
absl::StatusOr<std::string> OnlyUri(X509* certificate) {
  std::unique_ptr<GENERAL_NAMES, FreeNames> names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::string uri;
  int count = 0;
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* text = name->d.uniformResourceIdentifier;
    uri.assign(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
               static_cast<size_t>(ASN1_STRING_length(text)));
    ++count;
  }
  if (count == 1) return uri;
  return absl::PermissionDeniedError(
      absl::StrCat("peer certificate has ", count, " URI names, must have exactly one"));
}

std::string ExpectedUri(const TlsPeerOptions& options, int party) {
  return absl::StrCat("spiffe://", options.realm, "/mpc/peer/",
                      options.peer_names[static_cast<size_t>(party)]);
}

}  // namespace

std::string TakeSslError() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  if (code == 0) return "connection closed";
  const int why = ERR_GET_REASON(code);
  if (why == SSL_R_NO_APPLICATION_PROTOCOL || why == SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL) {
    return "no record protection in common (ALPN): one end insists on aead, the other on tls; set "
           "the same on all three servers, or auto";
  }
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : absl::StrCat("OpenSSL error ", code);
}

absl::StatusOr<SslCtx> MakePeerSslCtx(const TlsPeerOptions& options) {
  ERR_clear_error();
  SslCtx ctx(SSL_CTX_new(TLS_method()));
  if (ctx == nullptr) return absl::InternalError(TakeSslError());
  SSL_CTX_set_min_proto_version(ctx.get(), TLS1_3_VERSION);
  SSL_CTX_set_max_proto_version(ctx.get(), TLS1_3_VERSION);
  if (SSL_CTX_set_ciphersuites(ctx.get(), kCiphersuites) != 1) {
    return absl::InternalError(TakeSslError());
  }
  if (std::none_of(std::begin(kGroups), std::end(kGroups), [&](const char* groups) {
        return SSL_CTX_set1_groups_list(ctx.get(), groups) == 1;
      })) {
    return absl::InternalError(TakeSslError());
  }
  ERR_clear_error();  // of a list that it does not know
  SSL_CTX_set_verify(ctx.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_session_cache_mode(ctx.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(ctx.get(), 0);
  SSL_CTX_set_mode(ctx.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  // A record's plaintext is wiped in OpenSSL's buffer once it was read.
  SSL_CTX_set_options(ctx.get(), SSL_OP_CLEANSE_PLAINTEXT);
  SSL_CTX_set_default_read_buffer_len(ctx.get(), kReadBuffer);
  if (SSL_CTX_use_certificate_chain_file(ctx.get(), options.certificate_file.c_str()) != 1) {
    return FileError("certificate", options.certificate_file);
  }
  if (SSL_CTX_use_PrivateKey_file(ctx.get(), options.key_file.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(ctx.get()) != 1) {
    return FileError("key", options.key_file);
  }
  if (SSL_CTX_load_verify_file(ctx.get(), options.ca_file.c_str()) != 1) {
    return FileError("CA file", options.ca_file);
  }
  RETURN_IF_ERROR(OfferRecords(options.records, ctx.get()));
  return ctx;
}

absl::Status CheckNotDenied(const TlsPeerOptions& options, int party,
                            const CertificateFingerprint& fingerprint) {
  if (options.denied == nullptr || !options.denied(fingerprint)) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat("certificate of ", ExpectedUri(options, party),
                                                  " (P", party, ") is on this server's deny list"));
}

absl::StatusOr<CertificateFingerprint> CheckPeerCertificate(const TlsPeerOptions& options,
                                                            int party, SSL* ssl) {
  std::unique_ptr<X509, FreeX509> certificate(SSL_get1_peer_certificate(ssl));
  if (certificate == nullptr) return absl::PermissionDeniedError("peer has no certificate");
  ASSIGN_OR_RETURN(std::string uri, OnlyUri(certificate.get()));
  const std::string expected = ExpectedUri(options, party);
  if (uri != expected) {
    return absl::PermissionDeniedError(
        absl::StrCat("peer certificate names ", uri, ", expected ", expected));
  }
  CertificateFingerprint fingerprint;
  unsigned size = 0;
  if (X509_digest(certificate.get(), EVP_sha256(), fingerprint.data(), &size) != 1) {
    return absl::InternalError(TakeSslError());
  }
  RETURN_IF_ERROR(CheckNotDenied(options, party, fingerprint));
  return fingerprint;
}

}  // namespace mpckdc
