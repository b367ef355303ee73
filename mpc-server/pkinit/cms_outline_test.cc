// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/pkinit/cms_outline.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/testing/pkinit.h"
#include "mpc-server/testing/slow_keys.h"

namespace mpckdc {
namespace {

using ::testing::HasSubstr;

std::string Outline(absl::string_view cms) { return std::string(CheckOutline(cms).message()); }

TEST(CmsOutline, WhatClientsSend) {
  const ClientAuthority authority;
  const LoginOptions login{.also_sent = {authority.certificate()}};
  for (const int rsa_bits : {0, 2048}) {
    EXPECT_EQ(Outline(SignCms("content", authority.Issue({.rsa_bits = rsa_bits}), login)), "");
  }
}

TEST(CmsOutline, KeysThatTakeLong) {
  for (const bool with_lengths : {true, false}) {
    const auto outline = [&](const std::string& key) {
      return Outline(CmsWith({CertificateOfKey(key)}, with_lengths));
    };
    EXPECT_THAT(outline(KeyOfItsOwnCurve()), HasSubstr("a curve without a name"));
    EXPECT_THAT(outline(KeyOfItsOwnCurve(kSm2)), HasSubstr("a curve without a name"));
    EXPECT_THAT(outline(CompressedKey()), HasSubstr("a compressed point"));
    EXPECT_THAT(outline(""), HasSubstr("cannot be read"));
    EXPECT_EQ(Outline(CmsWith({}, with_lengths)), "");
  }
}

TEST(CmsOutline, CertificatesWhereOpenSslAloneFindsThem) {
  const std::string quick = CertificateOfKey(FullKey());
  const std::string slow = CertificateOfKey(KeyOfItsOwnCurve());
  for (const auto with : {CmsWithLongTag, CmsWithFalseEnd}) {
    const std::string cms = with({quick});
    const auto* at = reinterpret_cast<const uint8_t*>(cms.data());
    const CmsPtr decoded(d2i_CMS_ContentInfo(nullptr, &at, static_cast<long>(cms.size())));
    ASSERT_NE(decoded, nullptr);
    const X509StackPtr found(CMS_get1_certs(decoded.get()));
    EXPECT_EQ(sk_X509_num(found.get()), 1);
    EXPECT_THAT(Outline(with({slow})), HasSubstr("not signed data"));
  }
}

TEST(CmsOutline, PointsRelativeToALongName) {
  EXPECT_THAT(Outline(CmsWith({CertificateOfPoints(1, 1)})), HasSubstr("distribution point"));
  EXPECT_EQ(Outline(CmsWith({CertificateOfPoints(2, 1, /*relative=*/false)})), "");
}

TEST(CmsOutline, HowManyCertificates) {
  const ClientAuthority authority;
  const std::string one = [&] {
    uint8_t* der = nullptr;
    const int size = i2d_X509(authority.certificate(), &der);
    std::string bytes(reinterpret_cast<char*>(der), static_cast<size_t>(size));
    OPENSSL_free(der);
    return bytes;
  }();
  std::vector<std::string> many(limits::kMaxProofCertificates, one);
  EXPECT_EQ(Outline(CmsWith(many)), "");
  many.push_back(one);
  EXPECT_THAT(Outline(CmsWith(many)), HasSubstr("9 certificates"));
}

TEST(CmsOutline, OtherThanSignedData) {
  const std::string slow = CertificateOfKey(KeyOfItsOwnCurve());
  EXPECT_THAT(Outline(EnvelopedWith({slow})), HasSubstr("not signed data"));
  const std::string good = CmsWith({slow});
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_NE(Outline(good.substr(0, size)), "") << size;
  }
  // Elements in each other whose lengths are not said.
  std::string deep;
  for (int i = 0; i < 10'000; ++i) deep += "\x30\x80";
  EXPECT_THAT(Outline(deep), HasSubstr("not signed data"));
}

}  // namespace
}  // namespace mpckdc
