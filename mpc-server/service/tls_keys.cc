// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/tls_keys.h"

#include <dlfcn.h>
#include <openssl/err.h>
#include <openssl/x509.h>

#include "absl/strings/string_view.h"
#include "mpc-server/base/der.h"
#include "mpc-server/base/key_outline.h"

namespace {

using Decode = X509* (*)(X509**, const unsigned char**, long);

Decode Libcryptos() {
  static const auto decode = reinterpret_cast<Decode>(dlsym(RTLD_NEXT, "d2i_X509"));
  return decode;
}

}  // namespace

// In the place of libcrypto's.
extern "C" X509* d2i_X509(X509** certificate, const unsigned char** in, long size) {
  if (in == nullptr || *in == nullptr || size <= 0 || Libcryptos() == nullptr) return nullptr;
  const absl::string_view bytes(reinterpret_cast<const char*>(*in), static_cast<size_t>(size));
  const auto contents = mpckdc::DerReader(bytes).Take(mpckdc::der::kSequence);
  if (!contents || !mpckdc::CheckCertificate(*contents).ok()) {
    ERR_raise(ERR_LIB_X509, X509_R_UNSUPPORTED_ALGORITHM);
    return nullptr;
  }
  return Libcryptos()(certificate, in, size);
}

namespace mpckdc {

absl::Status TlsLooksAtKeys() {
  // What libssl finds by this name is the first of all that the program has loaded.
  const void* const found = dlsym(RTLD_DEFAULT, "d2i_X509");
  if (found == reinterpret_cast<void*>(&d2i_X509) && Libcryptos() != nullptr &&
      Libcryptos() != &d2i_X509) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      "TLS does not look at keys before it decodes them, because of how OpenSSL is linked: let a "
      "firewall keep strangers from the ports (deploy/THREAT-MODEL.md)");
}

}  // namespace mpckdc
