// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/base/sha256.h"

#include <openssl/evp.h>

#include <cstdlib>
#include <memory>

namespace mpckdc {

// The context is kept: OpenSSL's one-shot functions look the algorithm up each time, which takes
// longer than to hash what a job has.
Digest Sha256(absl::string_view bytes) {
  struct FreeContext {
    void operator()(EVP_MD_CTX* c) const { EVP_MD_CTX_free(c); }
  };
  static EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  thread_local const std::unique_ptr<EVP_MD_CTX, FreeContext> context(EVP_MD_CTX_new());
  Digest digest;
  const bool done = EVP_DigestInit_ex2(context.get(), algorithm, nullptr) == 1 &&
                    EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()) == 1 &&
                    EVP_DigestFinal_ex(context.get(), digest.data(), nullptr) == 1;
  if (!done) std::abort();  // out of memory, or an OpenSSL without SHA-256
  return digest;
}

}  // namespace mpckdc
