// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/tls_keys.h"

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

#include "mpc-server/testing/pkinit.h"
#include "mpc-server/testing/slow_keys.h"

namespace mpckdc {
namespace {

using X509Pointer = std::unique_ptr<X509, decltype(&X509_free)>;

std::string Encode(X509* certificate) {
  std::string bytes(static_cast<size_t>(i2d_X509(certificate, nullptr)), '\0');
  auto* out = reinterpret_cast<unsigned char*>(bytes.data());
  i2d_X509(certificate, &out);
  return bytes;
}

X509Pointer Decode(const std::string& bytes, size_t* used = nullptr) {
  const auto* in = reinterpret_cast<const unsigned char*>(bytes.data());
  const auto* const begin = in;
  X509Pointer made(d2i_X509(nullptr, &in, static_cast<long>(bytes.size())), &X509_free);
  if (used != nullptr) *used = static_cast<size_t>(in - begin);
  return made;
}

TEST(TlsKeys, AreLookedAt) {
  EXPECT_TRUE(TlsLooksAtKeys().ok());
  for (const std::string& certificate :
       {CertificateOfKey(KeyOfItsOwnCurve()), CertificateOfKey(KeyOfItsOwnCurve(kSm2)),
        CertificateOfKey(CompressedKey()), CertificateOfKey(""), CertificateOfPoints(1, 1)}) {
    ERR_clear_error();
    EXPECT_EQ(Decode(certificate), nullptr);
    EXPECT_NE(ERR_peek_error(), 0u) << "whoever called says why";
  }
  ERR_clear_error();
}

TEST(TlsKeys, OtherCertificatesAreDecodedAsEver) {
  const ClientAuthority authority;
  const std::string bytes = Encode(authority.certificate());
  size_t used = 0;
  const X509Pointer made = Decode(bytes + "what follows", &used);
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(used, bytes.size());
  EXPECT_EQ(X509_cmp(made.get(), authority.certificate()), 0);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(Decode(bytes.substr(0, size)), nullptr) << size;
  }
  ERR_clear_error();
}

}  // namespace
}  // namespace mpckdc
