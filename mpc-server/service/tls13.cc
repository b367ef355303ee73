// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/tls13.h"

#include <openssl/bio.h>
#include <openssl/conf.h>
#include <openssl/crypto.h>
#include <openssl/ssl.h>

#include <memory>

namespace mpckdc {
namespace {

constexpr char kConfig[] =
    "openssl_conf = mpc_kdc\n"
    "[mpc_kdc]\n"
    "ssl_conf = ssl\n"
    "[ssl]\n"
    "system_default = tls13\n"
    "[tls13]\n"
    "Protocol = -ALL,TLSv1.3\n"
    "CipherString = DEFAULT@SECLEVEL=2\n";

// A context made as gRPC makes its own must refuse TLS 1.2.
absl::Status CheckContext() {
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_method()),
                                                            &SSL_CTX_free);
  constexpr uint64_t kOff = SSL_OP_NO_TLSv1 | SSL_OP_NO_TLSv1_1 | SSL_OP_NO_TLSv1_2;
  if (context == nullptr || (SSL_CTX_get_options(context.get()) & kOff) != kOff) {
    return absl::FailedPreconditionError("cannot restrict OpenSSL to TLS 1.3");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RequireTls13() {
  OPENSSL_init_ssl(OPENSSL_INIT_LOAD_CONFIG, nullptr);
  std::unique_ptr<BIO, decltype(&BIO_free)> in(BIO_new_mem_buf(kConfig, -1), &BIO_free);
  std::unique_ptr<CONF, decltype(&NCONF_free)> config(NCONF_new(nullptr), &NCONF_free);
  if (in == nullptr || config == nullptr ||
      NCONF_load_bio(config.get(), in.get(), nullptr) != 1 ||
      CONF_modules_load(config.get(), nullptr, 0) != 1) {
    return absl::FailedPreconditionError("cannot configure OpenSSL for TLS 1.3");
  }
  return CheckContext();
}

}  // namespace mpckdc
