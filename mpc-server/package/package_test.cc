// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/package/package.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/key/string_to_key.h"
#include "mpc-server/key/usage_keys.h"
#include "mpc-server/testing/bytes.h"
#include "mpc-server/testing/enrolment.h"
#include "mpc-server/testing/fake_admin_service.h"
#include "mpc-server/testing/join.h"

namespace mpckdc::enroll {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string Text(const SecretBytes& bytes) { return {bytes.begin(), bytes.end()}; }

class PackageTest : public testing::Test {
 protected:
  PackageTest() {
    target_.realm = "EXAMPLE.COM";
    target_.epoch = 3;
    for (uint32_t party = 0; party < 3; ++party) {
      servers_.push_back(std::make_unique<FakeAdminServer>(party, target_.realm));
      servers_[party]->status().set_epoch(target_.epoch);
      target_.package_keys[party] = servers_[party]->status().package_key();
    }
  }

  absl::StatusOr<SealedTriple> Build(const std::vector<KeyToShare>& keys) const {
    return BuildPackages(keys, target_, transaction_, TestSigner());
  }

  // Realm, party, epoch, transaction and encoding are compared.
  v1::SharePackage Open(const SealedTriple& packages, int party) {
    v1::SharePackage package;
    const grpc::Status s = servers_[party]->OpenPackage(packages[party], transaction_, &package);
    EXPECT_TRUE(s.ok()) << s.error_message();
    return package;
  }

  const std::string transaction_ = RandomIdentifier();
  PackageTarget target_;
  std::vector<std::unique_ptr<FakeAdminServer>> servers_;
};

// Joins one shared field of the three parties' messages.
template <class Message>
std::string Joined(const std::array<const Message*, 3>& messages,
                   const std::string& (Message::*x_of)() const,
                   const std::string& (Message::*a_of)() const) {
  std::array<std::string, 3> x, a;
  for (int party = 0; party < 3; ++party) {
    x[party] = (messages[party]->*x_of)();
    a[party] = (messages[party]->*a_of)();
  }
  return JoinForTest(x, a);
}

// `opened`: a package of one key, or one of the keys of a package, of each party.
template <class Message>
void ExpectSharesOf(const KeyToShare& key, const std::array<const Message*, 3>& opened) {
  EXPECT_EQ(Joined(opened, &Message::base_x, &Message::base_a), Text(key.base));
  const std::vector<ExpandedUsage> usages =
      *ExpandUsages(key.info.enctype(), key.base, KeyClass::kUser);
  for (size_t u = 0; u < usages.size(); ++u) {
    std::array<const v1::UsageShare*, 3> shares;
    for (int party = 0; party < 3; ++party) {
      shares[party] = &opened[party]->usages(static_cast<int>(u));
      EXPECT_EQ(shares[party]->usage(), usages[u].usage);
      EXPECT_EQ(opened[party]->info().SerializeAsString(), key.info.SerializeAsString());
    }
    using Share = v1::UsageShare;
    EXPECT_EQ(Joined(shares, &Share::round_keys_x, &Share::round_keys_a),
              Text(usages[u].round_keys));
    EXPECT_EQ(Joined(shares, &Share::h_x, &Share::h_a), Text(usages[u].h));
    EXPECT_EQ(Joined(shares, &Share::mac_states_x, &Share::mac_states_a),
              Text(usages[u].mac_states));
  }
}

TEST_F(PackageTest, SharesJoinToTheKeyAndItsUsageKeys) {
  for (const Enctype& enctype : kEnctypes) {
    const v1::KeyInfo info = TestKeyInfo(enctype.number);
    const SecretBytes base = *StringToKey(enctype.number, Bytes("password"), Bytes(info.salt()));
    absl::StatusOr<SealedTriple> packages = Build({{info, base}});
    ASSERT_TRUE(packages.ok()) << packages.status();
    std::array<v1::SharePackage, 3> opened;
    for (int party = 0; party < 3; ++party) {
      opened[party] = Open(*packages, party);
      EXPECT_EQ(opened[party].version(), 1u);
    }
    ExpectSharesOf<v1::SharePackage>({info, base}, {&opened[0], &opened[1], &opened[2]});
  }
}

// A package of many keys carries for each what a package of its own would.
TEST_F(PackageTest, ManyKeysInOnePackage) {
  std::vector<KeyToShare> keys;
  for (size_t i = 0; i < limits::kMaxKeysPerPackage; ++i) {
    const int32_t enctype = i % 2 == 0 ? kEnctypeAes128Gcm : kEnctypeAes256Gcm;
    keys.push_back(
        {TestKeyInfo(enctype), SecretBytes(BaseKeyBytes(enctype), static_cast<uint8_t>(i))});
  }
  absl::StatusOr<SealedTriple> packages = Build(keys);
  ASSERT_TRUE(packages.ok()) << packages.status();
  std::array<v1::SharePackage, 3> opened;
  for (int party = 0; party < 3; ++party) {
    EXPECT_LE((*packages)[party].sealed().size(), limits::kMaxPackageBytes);
    opened[party] = Open(*packages, party);
    EXPECT_EQ(opened[party].version(), 2u);
    EXPECT_FALSE(opened[party].has_info());
    ASSERT_EQ(opened[party].keys_size(), static_cast<int>(keys.size()));
  }
  for (int i = 0; i < opened[0].keys_size(); ++i) {
    ExpectSharesOf<v1::KeyShare>(
        keys[i], {&opened[0].keys(i), &opened[1].keys(i), &opened[2].keys(i)});
  }
}

// Enctypes 18 and aes256-gcm have one base key: its shares in one say nothing of those in the other.
TEST_F(PackageTest, EqualBaseKeysAreSharedApart) {
  const SecretBytes base(32, 0x5a);
  const std::vector<KeyToShare> keys = {{TestKeyInfo(kEnctypeAes256Gcm), base},
                                        {TestKeyInfo(kEnctypeAes256Sha1), base}};
  const SealedTriple packages = *Build(keys);
  for (int party = 0; party < 3; ++party) {
    const v1::SharePackage opened = Open(packages, party);
    ASSERT_EQ(opened.keys_size(), 2);
    EXPECT_NE(opened.keys(0).base_x(), opened.keys(1).base_x());
    EXPECT_NE(opened.keys(0).base_a(), opened.keys(1).base_a());
  }
}

// doc/share_package_format.md says what a key more costs, in units of 100 bytes.
TEST_F(PackageTest, SizesOfTheDocument) {
  struct {
    int32_t enctype;
    size_t hundreds;
  } const told[] = {{kEnctypeAes128Gcm, 13},    {kEnctypeAes256Gcm, 17},  {kEnctypeAes128Sha1, 12},
                    {kEnctypeAes128Sha256, 12}, {kEnctypeAes256Sha1, 15}, {kEnctypeAes256Sha384, 19}};
  for (const auto& t : told) {
    const auto size = [&](size_t keys) {
      const KeyToShare one = {TestKeyInfo(t.enctype), SecretBytes(BaseKeyBytes(t.enctype), 1)};
      return (*Build(std::vector<KeyToShare>(keys, one)))[0].sealed().size();
    };
    EXPECT_EQ((size(3) - size(2) + 50) / 100, t.hundreds) << t.enctype << ": " << size(3) - size(2);
  }
}

// The longest names and salts that a key may have still fit, with the enctype that takes most.
TEST_F(PackageTest, TheLargestPackageFits) {
  KeyToShare key = {TestKeyInfo(kEnctypeAes256Sha384), SecretBytes(32, 1)};
  const std::string realm = "@EXAMPLE.COM";
  key.info.set_principal(std::string(limits::kMaxPrincipalBytes - realm.size(), 'p') + realm);
  key.info.set_salt(std::string(limits::kMaxSaltBytes, 's'));
  const std::vector<KeyToShare> keys(limits::kMaxKeysPerPackage, key);
  absl::StatusOr<SealedTriple> packages = Build(keys);
  ASSERT_TRUE(packages.ok()) << packages.status();
  EXPECT_LE((*packages)[0].sealed().size(), limits::kMaxPackageBytes);
  EXPECT_FALSE(Build(std::vector<KeyToShare>(limits::kMaxKeysPerPackage + 1, key)).ok());
  EXPECT_FALSE(Build({}).ok());
}

TEST_F(PackageTest, NoPackageHoldsTheKeyOrRepeatsAShare) {
  const v1::KeyInfo info = TestKeyInfo();
  const SecretBytes base(32, 0x5a);
  std::set<std::string> seen;
  for (int round = 0; round < 4; ++round) {
    const SealedTriple packages = *Build({{info, base}});
    for (int party = 0; party < 3; ++party) {
      v1::SharePackage package = Open(packages, party);
      EXPECT_EQ(package.SerializeAsString().find(Text(base)), std::string::npos);
      EXPECT_TRUE(seen.insert(package.base_x()).second);
      EXPECT_TRUE(seen.insert(package.base_a()).second);
      FakeAdminServer& neighbour = *servers_[(party + 1) % 3];
      EXPECT_EQ(neighbour.OpenPackage(packages[party], transaction_, &package).error_message(),
                "not sealed to this party");
    }
  }
}

TEST_F(PackageTest, SignatureCoversTheSealedBytes) {
  const SealedTriple packages = *Build({{TestKeyInfo(), SecretBytes(32, 1)}});
  const v1::SealedPackage& good = packages[0];
  EXPECT_TRUE(VerifyPackageSignature(good.signer(), good.sealed(), good.signature()).ok());
  std::string altered = good.sealed();
  altered[40] ^= 1;
  EXPECT_FALSE(VerifyPackageSignature(good.signer(), altered, good.signature()).ok());
  EXPECT_FALSE(VerifyPackageSignature(good.signer(), good.sealed(), packages[1].signature()).ok());
  EXPECT_FALSE(VerifyPackageSignature(good.signer(), good.sealed(), "").ok());
  EXPECT_FALSE(VerifyPackageSignature("junk", good.sealed(), good.signature()).ok());
}

TEST_F(PackageTest, RefusesBadInput) {
  auto why = [&](const v1::KeyInfo& info) {
    return std::string(Build({{info, SecretBytes(32, 1)}}).status().message());
  };
  const std::pair<std::function<void(v1::KeyInfo&)>, const char*> cases[] = {
      {[](auto& info) { info.set_enctype(kEnctypeAes128Gcm); }, "has 16 bytes, not 32"},
      {[](auto& info) { info.set_enctype(23); }, "enctype 23 is none of aes256-gcm"},
      {[](auto& info) { info.set_principal("alice@OTHER.ORG"); },
       "not a principal of realm EXAMPLE.COM"},
      {[](auto& info) { info.set_principal("krbtgt/OTHER.ORG@OTHER.ORG"); },
       "not a principal of realm EXAMPLE.COM"},
      {[](auto& info) { info.clear_principal(); }, "a key without a principal"},
      {[](auto& info) { info.set_handle("short"); }, "key handle has 5 bytes instead of 16"},
      {[](auto& info) { info.set_kvno(0); }, "key version 0"},
      {[](auto& info) { info.clear_gate(); }, "alice@EXAMPLE.COM: the gate must be"},
      {[](auto& info) { info.clear_key_class(); }, "unknown key class"},
      // In a byte it would be a user's.
      {[](auto& info) { info.set_key_class(static_cast<v1::KeyClass>(257)); }, "unknown key class"},
  };
  for (const auto& [spoil, complaint] : cases) {
    v1::KeyInfo info = TestKeyInfo();
    spoil(info);
    EXPECT_THAT(why(info), HasSubstr(complaint));
  }
  target_.package_keys[1] = target_.package_keys[0];
  EXPECT_THAT(why(TestKeyInfo()), HasSubstr("same package key"));
  target_.package_keys[1] = "";
  EXPECT_THAT(why(TestKeyInfo()), HasSubstr("no package key"));
  target_.package_keys[1] = std::string(32, '\0');  // a point of low order
  EXPECT_THAT(why(TestKeyInfo()), HasSubstr("not a usable X25519 key"));
}

TEST_F(PackageTest, SignerRefusesKeysThatDoNotFit) {
  const AdminIdentity one = TestAuthority::Shared().Issue("admin", "one");
  const AdminIdentity two = TestAuthority::Shared().Issue("admin", "two");
  const auto why = [](const std::string& certificate, const std::string& key) {
    return std::string(PackageSigner::FromPemFiles(certificate, key).status().message());
  };
  EXPECT_THAT(why(one.certificate_file, two.key_file),
              AllOf(HasSubstr("not the certificate's"), HasSubstr(two.key_file)));
  EXPECT_THAT(why("/nonexistent", two.key_file), HasSubstr("cannot open /nonexistent"));
  EXPECT_THAT(why(one.certificate_file, one.certificate_file), HasSubstr("no PEM private key"));
}

// ---- Certificates ----

TEST(RoleName, Parses) {
  const RoleName name = *ParseRoleName("spiffe://EXAMPLE.COM/mpc/admin/root");
  EXPECT_EQ(name.realm, "EXAMPLE.COM");
  EXPECT_EQ(name.role, "admin");
  EXPECT_EQ(name.name, "root");
  for (const char* bad :
       {"", "spiffe://", "http://EXAMPLE.COM/mpc/admin/root", "spiffe://EXAMPLE.COM/mpc/root/x",
        "spiffe://EXAMPLE.COM/mpc/admin/", "spiffe:///mpc/admin/x",
        "spiffe://EXAMPLE.COM/mpc/admin/x/y", "spiffe://EXAMPLE.COM/other/admin/x",
        "spiffe://EXAMPLE.COM/mpc/Admin/x"}) {
    EXPECT_FALSE(ParseRoleName(bad).ok()) << bad;
  }
}

// OpenSSL would ask the terminal for a password, and a daemon that has one would wait for ever.
TEST(Certificate, AnEncryptedOneIsRefusedWithoutAQuestion) {
  const AdminIdentity identity = TestAuthority::Shared().Issue("admin", "locked");
  std::string pem = *ReadSmallFile(identity.certificate_file);
  pem.insert(pem.find('\n') + 1,
             "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00112233445566778899AABBCCDDEEFF\n\n");
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(5);  // its default ends the process
    _exit(ParseCertificate(pem).ok() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  close(terminal);
  EXPECT_TRUE(WIFEXITED(status)) << "it asked";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Certificate, ChecksRoleRealmAndDates) {
  TestAuthority authority;
  const CertificateFacts admin =
      *ReadCertificate(authority.Issue("admin", "root").certificate_file);
  EXPECT_EQ(admin.uri, "spiffe://EXAMPLE.COM/mpc/admin/root");
  EXPECT_TRUE(CheckCertificate(admin, "x", "EXAMPLE.COM", "admin", absl::Now()).ok());
  auto why = [&](const CertificateFacts& facts, const char* realm, const char* role,
                 absl::Time now) {
    return std::string(CheckCertificate(facts, "who.pem", realm, role, now).message());
  };
  EXPECT_THAT(why(admin, "EXAMPLE.COM", "kdc", absl::Now()), HasSubstr("expected role kdc"));
  EXPECT_THAT(why(admin, "OTHER.ORG", "admin", absl::Now()), HasSubstr("in realm OTHER.ORG"));
  EXPECT_THAT(why(admin, "EXAMPLE.COM", "admin", admin.not_after + absl::Seconds(1)),
              HasSubstr("who.pem: the certificate expired on"));
  EXPECT_THAT(why(admin, "EXAMPLE.COM", "admin", admin.not_before - absl::Seconds(1)),
              HasSubstr("not valid before"));
  const CertificateFacts ca = *ReadCertificate(absl::StrCat(authority.directory(), "/ca.pem"));
  EXPECT_THAT(why(ca, "EXAMPLE.COM", "admin", absl::Now()), HasSubstr("has 0 URI names"));
  EXPECT_THAT(std::string(ReadCertificate(absl::StrCat(authority.directory(), "/admin-root.key"))
                              .status()
                              .message()),
              HasSubstr("no PEM certificate"));
}

}  // namespace
}  // namespace mpckdc::enroll
