// SPDX-License-Identifier: Apache-2.0
//
// Whether the look at a message (cms_outline.h) and OpenSSL, which decodes it afterwards, see the
// same: where the look finds nothing that takes long, OpenSSL finds nothing either, and takes no time.
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <time.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/pkinit/cms_outline.h"
#include "mpc-server/pkinit/openssl_types.h"
#include "mpc-server/testing/fuzz.h"
#include "mpc-server/testing/pkinit.h"
#include "mpc-server/testing/slow_keys.h"

namespace mpckdc {
namespace {

using PointsPtr = std::unique_ptr<CRL_DIST_POINTS, Freer<CRL_DIST_POINTS_free>>;

// Of this thread's own work, whoever else uses the machine. What is quick takes a millisecond or two.
constexpr absl::Duration kAtOnce = absl::Milliseconds(100);
absl::Duration Worked() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return absl::DurationFromTimespec(now);
}

// What clients send, and what the look is for.
FuzzSeeds Outlines() {
  const ClientAuthority authority;
  const LoginOptions login{.also_sent = {authority.certificate()}};
  FuzzSeeds seeds = {SignCms("content", authority.Issue({}), login), CmsWith({}),
                     EnvelopedWith({CertificateOfKey(FullKey())})};
  const std::vector<std::string> certificates = {
      CertificateOfKey(FullKey()), CertificateOfKey(CompressedKey()),
      CertificateOfKey(KeyOfItsOwnCurve(kSm2)), CertificateOfPoints(2, 2),
      CertificateOfPoints(2, 2, /*relative=*/false)};
  for (const std::string& one : certificates) {
    seeds.push_back(CmsWith({one}));
    seeds.push_back(CmsWith({one}, /*with_lengths=*/false));
    seeds.push_back(CmsWithLongTag({one}));
    seeds.push_back(CmsWithFalseEnd({one}));
  }
  seeds.push_back(CmsWith(std::vector<std::string>(limits::kMaxProofCertificates + 1,
                                                   CertificateOfKey(""))));
  return seeds;
}

// Of a curve that has a name, by its name.
bool IsOfNamedCurve(const EVP_PKEY* key) {
  char name[80], encoding[80] = "";
  return EVP_PKEY_get_group_name(key, name, sizeof(name), nullptr) == 1 &&
         EVP_PKEY_get_utf8_string_param(key, OSSL_PKEY_PARAM_EC_ENCODING, encoding,
                                        sizeof(encoding), nullptr) == 1 &&
         std::string(encoding) == OSSL_PKEY_EC_ENCODING_GROUP;
}

bool HasRelativePoint(X509* certificate) {
  const PointsPtr points(static_cast<CRL_DIST_POINTS*>(
      X509_get_ext_d2i(certificate, NID_crl_distribution_points, nullptr, nullptr)));
  for (int i = 0; i < sk_DIST_POINT_num(points.get()); ++i) {
    const DIST_POINT* const point = sk_DIST_POINT_value(points.get(), i);
    if (point->distpoint != nullptr && point->distpoint->type == 1) return true;
  }
  return false;
}

MPCKDC_FUZZ(cms_outline, Outlines) {
  if (!CheckOutline(AsText(in)).ok()) return;
  const absl::Duration begin = Worked();
  const uint8_t* at = in.data();
  const CmsPtr cms(d2i_CMS_ContentInfo(nullptr, &at, static_cast<long>(in.size())));
  if (cms != nullptr) {
    const X509StackPtr found(CMS_get1_certs(cms.get()));
    FUZZ_CHECK(sk_X509_num(found.get()) <= limits::kMaxProofCertificates);
    for (int i = 0; i < sk_X509_num(found.get()); ++i) {
      X509* const one = sk_X509_value(found.get(), i);
      X509_check_purpose(one, -1, 0);  // reads the extensions, as looking for an issuer does
      const EVP_PKEY* const key = X509_get0_pubkey(one);
      const int kind = key == nullptr ? 0 : EVP_PKEY_get_base_id(key);
      FUZZ_CHECK((kind != EVP_PKEY_EC && kind != EVP_PKEY_SM2) || IsOfNamedCurve(key));
      FUZZ_CHECK(!HasRelativePoint(one));
    }
  }
  ERR_clear_error();
  FUZZ_CHECK(Worked() - begin < kAtOnce);
}

}  // namespace
}  // namespace mpckdc
