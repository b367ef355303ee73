// SPDX-License-Identifier: Apache-2.0
// Many keys in a package, a call and a list.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/package/package.h"
#include "mpc-server/package/package_open.h"
#include "mpc-server/testing/admin_service_fixture.h"
#include "mpc-server/testing/records.h"

namespace mpckdc {
namespace {

TEST_F(AdminServiceTest, ManyKeysAreListedInSeveralMessages) {
  SeededRandomForTest random(1);
  std::vector<KeyRecord> records;
  constexpr size_t kKeys = 2 * limits::kMaxListKeysPerMessage + 3;
  for (size_t i = 0; i < kKeys; ++i) records.push_back(RecordForTest(random, "u@EXAMPLE.COM"));
  ASSERT_TRUE(store_.Stage(TransactionId{1}, records, absl::Now()).ok());
  v1::ListKeysRequest list;
  list.set_staged(true);
  const std::vector<v1::ListKeysReply> messages = List(list);
  size_t count = 0;
  for (const v1::ListKeysReply& keys : messages) count += static_cast<size_t>(keys.keys_size());
  EXPECT_EQ(count, kKeys);
  EXPECT_EQ(messages.size(), 3u);
}

class ManyKeysTest : public AdminServiceTest {
 protected:
  // `count` keys in one package for this server.
  v1::SealedPackage PackageOf(size_t count) {
    std::vector<enroll::KeyToShare> keys;
    for (size_t i = 0; i < count; ++i) {
      v1::KeyInfo info = AliceInfo();
      info.set_handle(enroll::RandomIdentifier());
      keys.push_back({info, SecretBytes(32, static_cast<uint8_t>(i))});
    }
    enroll::PackageTarget target;
    target.realm = "EXAMPLE.COM";
    target.epoch = 1;
    for (std::string& key : target.package_keys) key = RandomKey();
    target.package_keys[kParty] = package_key_->public_key();
    auto signer = enroll::PackageSigner::FromPem(cert_.certificate_pem, cert_.key_pem);
    return (*enroll::BuildPackages(keys, target, kTxn, *signer))[kParty];
  }
};

TEST_F(ManyKeysTest, OnePackageStagesAllItsKeys) {
  ASSERT_TRUE(Stage({PackageOf(limits::kMaxKeysPerPackage), PackageOf(3)}).ok());
  EXPECT_EQ(*store_.Count(KeyState::kStaged), limits::kMaxKeysPerPackage + 3);
}

TEST_F(ManyKeysTest, ACallTakesNoMoreKeysThanTheLimit) {
  const std::vector<v1::SealedPackage> packages(
      limits::kMaxKeysPerCall / limits::kMaxKeysPerPackage + 1,
      PackageOf(limits::kMaxKeysPerPackage));
  const grpc::Status status = Stage(packages);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(*store_.Count(KeyState::kStaged), 0u);
}

TEST_F(ManyKeysTest, TheListComesInPages) {
  ASSERT_TRUE(Stage({PackageOf(10)}).ok());
  ASSERT_TRUE(Commit(kTxn).ok());
  v1::ListKeysRequest request;
  ASSERT_EQ(List(request).size(), 1u);
  EXPECT_EQ(List(request)[0].keys_size(), 10) << "without a limit all at once, as ever";
  EXPECT_EQ(List(request)[0].next(), "");
  request.set_limit(4);
  std::vector<int> sizes;
  std::set<std::string> handles;
  do {
    const std::vector<v1::ListKeysReply> page = List(request);
    ASSERT_EQ(page.size(), 1u);
    sizes.push_back(page[0].keys_size());
    for (const v1::KeyInfo& key : page[0].keys()) handles.insert(key.handle());
    request.set_from(page[0].next());
  } while (!request.from().empty());
  EXPECT_EQ(sizes, (std::vector<int>{4, 4, 2}));
  EXPECT_EQ(handles.size(), 10u);
  request.set_principal("nobody@EXAMPLE.COM");
  EXPECT_EQ(List(request)[0].keys_size(), 0);
  EXPECT_NE(List(request)[0].next(), "") << "looked at four, there are more";
}

TEST_F(ManyKeysTest, DecoderRefusesMixedAndTruncatedPackages) {
  const SecretBytes plain = *package_key_->Unseal(PackageOf(2).sealed());
  ASSERT_TRUE(DecodeSharePackage(plain, "EXAMPLE.COM").ok());
  v1::SharePackage package;
  ASSERT_TRUE(package.ParseFromArray(plain.data(), static_cast<int>(plain.size())));
  const auto decodes = [](const v1::SharePackage& p) {
    const std::string bytes = p.SerializeAsString();
    return DecodeSharePackage(AsBytes(bytes), "EXAMPLE.COM").ok();
  };
  ASSERT_TRUE(decodes(package));
  v1::SharePackage changed = package;
  changed.set_version(1);
  EXPECT_FALSE(decodes(changed)) << "version 1 has no list of keys";
  changed.set_version(3);
  EXPECT_FALSE(decodes(changed));
  changed = package;
  *changed.mutable_info() = package.keys(0).info();
  EXPECT_FALSE(decodes(changed)) << "a key outside of the list";
  changed = package;
  changed.clear_keys();
  EXPECT_FALSE(decodes(changed)) << "no key at all";
  changed = package;
  changed.mutable_keys(1)->clear_base_a();
  EXPECT_FALSE(decodes(changed));
  for (size_t size = 0; size < plain.size(); size += 7) {
    EXPECT_FALSE(
        DecodeSharePackage(absl::MakeConstSpan(plain).subspan(0, size), "EXAMPLE.COM").ok());
  }
}

}  // namespace
}  // namespace mpckdc
