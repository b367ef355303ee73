// SPDX-License-Identifier: Apache-2.0
// Package by package everything that may be wrong with one.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/package/package_open.h"
#include "mpc-server/testing/admin_service_fixture.h"

namespace mpckdc {
namespace {

TEST_F(AdminServiceTest, PackageForAnotherRealmPartyEpochOrTransactionIsRefused) {
  PackageOptions realm;
  realm.realm = "OTHER.COM";
  realm.info.set_principal("alice@OTHER.COM");
  ExpectRefused(Package(realm), grpc::StatusCode::INVALID_ARGUMENT, "realm EXAMPLE.COM");
  PackageOptions party;
  party.party = 2;
  ExpectRefused(Package(party), grpc::StatusCode::INVALID_ARGUMENT,
                "for party 2, this server is 1");
  PackageOptions epoch;
  epoch.epoch = 2;
  ExpectRefused(Package(epoch), grpc::StatusCode::INVALID_ARGUMENT,
                "for epoch 2, this server is 1");
  PackageOptions txn;
  txn.txn = std::string(16, 'u');
  ExpectRefused(Package(txn), grpc::StatusCode::INVALID_ARGUMENT, "another transaction");
}

TEST_F(AdminServiceTest, PackageSealedToAnotherServerIsRefused) {
  PackageOptions options;
  options.to_us = false;
  ExpectRefused(Package(options), grpc::StatusCode::INVALID_ARGUMENT, "does not open");
}

TEST_F(AdminServiceTest, AlteredPackageIsRefused) {
  const v1::SealedPackage good = Package({});
  v1::SealedPackage bad = good;
  (*bad.mutable_sealed())[40] ^= 1;
  ExpectRefused(bad, grpc::StatusCode::UNAUTHENTICATED, "signature");
  bad = good;
  (*bad.mutable_signature())[20] ^= 1;
  ExpectRefused(bad, grpc::StatusCode::UNAUTHENTICATED, "signature");
  bad = good;
  bad.set_signer(bad.signer().substr(1));
  ExpectRefused(bad, grpc::StatusCode::PERMISSION_DENIED, "no certificate");
  ASSERT_TRUE(Stage({good}).ok()) << "the good one is good";
}

TEST_F(AdminServiceTest, SignerMustBeAnAdministratorOfOurAuthority) {
  const auto signed_by = [&](const TestCert& cert) {
    PackageOptions options;
    options.signer = &cert;
    return Package(options);
  };
  ExpectRefused(signed_by(port_.authority().IssueRole("kdc", "k")),
                grpc::StatusCode::PERMISSION_DENIED, "needs the role admin");
  ExpectRefused(signed_by(TestAuthority().IssueRole("admin", "a")),
                grpc::StatusCode::PERMISSION_DENIED, "not trusted");
  TestCertOptions expired;
  expired.uris = {"spiffe://EXAMPLE.COM/mpc/admin/a"};
  expired.ends = -absl::Minutes(1);
  ExpectRefused(signed_by(port_.authority().Issue(expired)), grpc::StatusCode::PERMISSION_DENIED,
                "expired");
  TestCertOptions two;
  two.uris = {"spiffe://EXAMPLE.COM/mpc/admin/a", "spiffe://EXAMPLE.COM/mpc/kdc/k"};
  ExpectRefused(signed_by(port_.authority().Issue(two)), grpc::StatusCode::PERMISSION_DENIED,
                "2 URI names");
}

TEST_F(AdminServiceTest, KeyClassMustFitThePrincipal) {
  v1::KeyInfo info = AliceInfo();
  info.set_key_class(v1::KEY_CLASS_TGS);
  ExpectRefused(Unchecked(info), grpc::StatusCode::INVALID_ARGUMENT, "krbtgt principals");
}

TEST_F(AdminServiceTest, OneBadPackageOfTwoStagesNothing) {
  v1::SealedPackage bad = Package({});
  (*bad.mutable_sealed())[40] ^= 1;
  PackageOptions second;
  second.info.set_handle(std::string(16, 'b'));
  EXPECT_FALSE(Stage({Package(second), bad}).ok());
  EXPECT_EQ(*store_.Count(KeyState::kStaged), 0u);
}

TEST_F(AdminServiceTest, DecoderAgreesWithTheGeneratedClassAndRefusesTruncation) {
  const SecretBytes plain = *package_key_->Unseal(Package({}).sealed());
  v1::SharePackage reference;
  ASSERT_TRUE(reference.ParseFromArray(plain.data(), static_cast<int>(plain.size())));
  const auto decoded = DecodeSharePackage(plain, "EXAMPLE.COM");
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->transaction, reference.transaction());
  ASSERT_EQ(decoded->records[0].base.size(), 2u);
  EXPECT_EQ(AsText(decoded->records[0].base[1].x), reference.base_x().substr(16));
  EXPECT_EQ(AsText(decoded->records[0].base[1].a), reference.base_a().substr(16));
  for (size_t u = 0; u < 3; ++u) {
    const UsageKey& usage = decoded->records[0].usages[u];
    const v1::UsageShare& want = reference.usages(static_cast<int>(u));
    EXPECT_EQ(usage.usage, want.usage());
    EXPECT_EQ(AsText(usage.round_keys[14].x), want.round_keys_x().substr(14 * 16));
    EXPECT_EQ(AsText(usage.round_keys[3].a), want.round_keys_a().substr(3 * 16, 16));
    EXPECT_EQ(AsText(usage.h.x), want.h_x());
    EXPECT_EQ(AsText(usage.h.a), want.h_a());
  }
  for (size_t size = 0; size < plain.size(); ++size) {
    EXPECT_FALSE(
        DecodeSharePackage(absl::MakeConstSpan(plain).subspan(0, size), "EXAMPLE.COM").ok());
  }
  SecretBytes longer = plain;
  longer.push_back(0);
  EXPECT_FALSE(DecodeSharePackage(longer, "EXAMPLE.COM").ok());
  // Protobuf joins a description of a key that comes twice, and a number's last one counts.
  for (const absl::string_view twice : {"\x32\x02\x18\x07", "\x18\x01"}) {
    SecretBytes doubled(twice.begin(), twice.end());
    doubled.insert(doubled.end(), plain.begin(), plain.end());
    EXPECT_TRUE(reference.ParseFromArray(doubled.data(), static_cast<int>(doubled.size())));
    EXPECT_FALSE(DecodeSharePackage(doubled, "EXAMPLE.COM").ok());
  }
}

// Enctypes 17 to 20: every field where the generated class has it, and nothing of a gcm key's.
TEST_F(AdminServiceTest, DecoderReadsEveryEnctype) {
  for (const Enctype& enctype : kEnctypes) {
    PackageOptions options;
    options.info.set_enctype(enctype.number);
    const SecretBytes plain = *package_key_->Unseal(Package(options).sealed());
    v1::SharePackage reference;
    ASSERT_TRUE(reference.ParseFromArray(plain.data(), static_cast<int>(plain.size())));
    const auto decoded = DecodeSharePackage(plain, "EXAMPLE.COM");
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    const KeyRecord& record = decoded->records[0];
    for (int u = 0; u < 3; ++u) {
      std::string x, a, mac_x, mac_a;
      for (const SharedBlock& share : record.usages[u].round_keys) {
        absl::StrAppend(&x, AsText(share.x));
        absl::StrAppend(&a, AsText(share.a));
      }
      for (const SharedBlock& share : record.usages[u].mac_states) {
        absl::StrAppend(&mac_x, AsText(share.x));
        absl::StrAppend(&mac_a, AsText(share.a));
      }
      const v1::UsageShare& want = reference.usages(u);
      EXPECT_EQ(x, want.round_keys_x());
      EXPECT_EQ(a, want.round_keys_a());
      EXPECT_EQ(mac_x, want.mac_states_x());
      EXPECT_EQ(mac_a, want.mac_states_a());
      EXPECT_EQ(want.h_x().empty(), !enctype.is_gcm());
    }
  }
}

TEST_F(AdminServiceTest, DecoderRefusesWhatIsAnotherEnctypes) {
  const auto changed = [&](int32_t enctype, auto change) {
    PackageOptions options;
    options.info.set_enctype(enctype);
    const SecretBytes plain = *package_key_->Unseal(Package(options).sealed());
    v1::SharePackage package;
    EXPECT_TRUE(package.ParseFromArray(plain.data(), static_cast<int>(plain.size())));
    change(&package);
    const std::string bytes = package.SerializeAsString();
    return DecodeSharePackage(AsBytes(bytes), "EXAMPLE.COM").ok();
  };
  EXPECT_TRUE(changed(18, [](v1::SharePackage*) {}));
  EXPECT_FALSE(changed(18, [](v1::SharePackage* p) {
    p->mutable_usages(0)->set_h_x(std::string(16, 'h'));
    p->mutable_usages(0)->set_h_a(std::string(16, 'h'));
  })) << "H beside the states of an HMAC";
  EXPECT_FALSE(
      changed(18, [](v1::SharePackage* p) { p->mutable_usages(1)->clear_mac_states_a(); }));
  EXPECT_FALSE(changed(18, [](v1::SharePackage* p) {
    *p->mutable_usages(2)->mutable_round_keys_x() = p->usages(0).round_keys_x();
    *p->mutable_usages(2)->mutable_round_keys_a() = p->usages(0).round_keys_a();
  })) << "round keys in a usage of checksums";
  EXPECT_FALSE(changed(kEnctypeAes256Gcm, [](v1::SharePackage* p) {
    p->mutable_usages(0)->set_mac_states_x(std::string(64, 'm'));
    p->mutable_usages(0)->set_mac_states_a(std::string(64, 'm'));
  })) << "states of an HMAC beside H";
  EXPECT_FALSE(changed(18, [](v1::SharePackage* p) { p->mutable_info()->set_enctype(20); }))
      << "two sizes of states";
  EXPECT_FALSE(changed(18, [](v1::SharePackage* p) { p->mutable_info()->set_enctype(23); }));
}

}  // namespace
}  // namespace mpckdc
