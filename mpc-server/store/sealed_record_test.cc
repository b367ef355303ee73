// SPDX-License-Identifier: Apache-2.0
//
// What a sealed record is: the key file, the seal, and the bytes inside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/store/record_codec.h"
#include "mpc-server/store/sealer.h"
#include "mpc-server/testing/folder.h"
#include "mpc-server/testing/records.h"

namespace mpckdc {
namespace {

namespace rf = record_format;
using ::testing::HasSubstr;

// ---- Store keys ----

class KeyFileTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(StoreKeys::Create(path_, SystemRandom()).ok()); }

  TestFolder folder_;
  const std::string path_ = folder_.File("store.key");
};

TEST_F(KeyFileTest, IsCreatedPrivateAndNeverReplaced) {
  struct stat info;
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  EXPECT_TRUE(absl::IsAlreadyExists(StoreKeys::Create(path_, SystemRandom())));
}

TEST_F(KeyFileTest, ThatOthersCanReadIsRefused) {
  for (mode_t mode : {0640, 0604, 0620, 0666}) {
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
    const absl::Status status = StoreKeys::Load(path_).status();
    EXPECT_TRUE(absl::IsPermissionDenied(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr("chmod 0600"));
  }
}

TEST(StoreKeysTest, MalformedKeyFilesNameTheLine) {
  const std::string hex(64, 'a');
  for (const std::string& text : {"1 " + hex.substr(1) + "\n", "0 " + hex + "\n", hex + "\n",
                                  "1 " + hex + "\n1 " + hex + "\n", "1  " + hex + "\n",
                                  "1 " + hex + "0\n", "1 " + std::string(64, 'g') + "\n"}) {
    const absl::Status status = StoreKeys::Parse(AsBytes(text), "f").status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("f:"));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(StoreKeys::Parse(AsBytes("# none\n"), "f").status()));
  const auto two = StoreKeys::Parse(AsBytes("# c\n1 " + hex + "\n2 " + hex), "f");
  ASSERT_TRUE(two.ok());
  EXPECT_NE(two->ForEpoch(2), nullptr);
  EXPECT_EQ(two->ForEpoch(3), nullptr);
}

// A login opens records by these keys, and the disk may take as long as it likes over the file.
TEST(StoreKeysTest, AreReadWhileTheirFileIsWritten) {
  StoreKeys keys = StoreKeysForTest();
  const std::shared_ptr<const SecretBytes> first = keys.ForEpoch(1);
  std::vector<std::thread> readers;
  absl::Notification read;
  bool same = false;
  keys.SetSaver([&](absl::Span<const uint8_t>) {
    if (!readers.empty()) return absl::OkStatus();
    readers.emplace_back([&] {
      same = keys.ForEpoch(1) == first;
      read.Notify();
    });
    EXPECT_TRUE(read.WaitForNotificationWithTimeout(absl::Seconds(10))) << "it waits for the file";
    return absl::OkStatus();
  });
  ASSERT_TRUE(keys.Add(2, SystemRandom()).ok());
  readers.at(0).join();
  EXPECT_TRUE(same);
  ASSERT_TRUE(keys.EraseBefore(2).ok());
  EXPECT_EQ(keys.ForEpoch(1), nullptr);
  EXPECT_NE(keys.ForEpoch(2), nullptr);
}

// Nothing is sealed under a key that is not on the disk, and none is forgotten that still is.
TEST(StoreKeysTest, ChangeWithTheirFile) {
  StoreKeys keys = StoreKeysForTest();
  bool full = true;
  keys.SetSaver([&](absl::Span<const uint8_t>) {
    EXPECT_EQ(keys.ForEpoch(2), nullptr);
    return full ? absl::ResourceExhaustedError("disk full") : absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsResourceExhausted(keys.Add(2, SystemRandom())));
  EXPECT_EQ(keys.ForEpoch(2), nullptr);
  full = false;
  ASSERT_TRUE(keys.Add(2, SystemRandom()).ok());
  keys.SetSaver([&](absl::Span<const uint8_t>) {
    EXPECT_NE(keys.ForEpoch(1), nullptr);
    return absl::ResourceExhaustedError("disk full");
  });
  EXPECT_TRUE(absl::IsResourceExhausted(keys.EraseBefore(2)));
  EXPECT_NE(keys.ForEpoch(1), nullptr);
}

// ---- The seal ----

TEST(SealerTest, RecordsAreBoundToRealmPartyClusterEpochKindAndName) {
  const SecretBytes plain = {1, 2, 3};
  const std::string sealed = Sealer(StoreKeysForTest(), kIdentityForTest, &SystemRandom())
                                 .Seal(rf::Kind::kKey, 1, "name", plain);
  const auto opens = [&](StoreIdentity identity, rf::Kind kind, absl::string_view name) {
    return Sealer(StoreKeysForTest(), std::move(identity), &SystemRandom())
        .Open(kind, name, AsBytes(sealed))
        .ok();
  };
  EXPECT_TRUE(opens(kIdentityForTest, rf::Kind::kKey, "name"));
  EXPECT_FALSE(opens({"OTHER.COM", 1, 7}, rf::Kind::kKey, "name"));
  EXPECT_FALSE(opens({"EXAMPLE.COM", 2, 7}, rf::Kind::kKey, "name"));
  EXPECT_FALSE(opens({"EXAMPLE.COM", 1, 8}, rf::Kind::kKey, "name"));
  EXPECT_FALSE(opens(kIdentityForTest, rf::Kind::kItem, "name"));
  EXPECT_FALSE(opens(kIdentityForTest, rf::Kind::kKey, "nam"));
}

TEST(SealerTest, RecordSizesStaySmall) {
  SeededRandomForTest random(1);
  const Sealer sealer(StoreKeysForTest(), kIdentityForTest, &SystemRandom());
  const auto sealed_size = [&](int32_t enctype) {
    const KeyRecord record = RecordForTest(random, std::string(60, 'p') + "@EXAMPLE.COM", enctype);
    return sealer.Seal(rf::Kind::kKey, 1, "h", EncodeKeyRecord(record)).size();
  };
  // What an LMDB page of 4 KB takes twice; larger ones get pages of their own.
  constexpr size_t kLargestNode = 2038, kNodeHead = 8 + rf::kPlaceBytes;
  for (const Enctype& enctype : kEnctypes) {
    EXPECT_LE(sealed_size(enctype.number) + kNodeHead, kLargestNode) << enctype.name;
  }
}

// ---- Codec ----

TEST(RecordCodecTest, RefusesEveryTruncationAndExtension) {
  SeededRandomForTest random(1);
  for (const Enctype& enctype : kEnctypes) {
    const KeyRecord record =
        RecordForTest(random, "a@EXAMPLE.COM", enctype.number, KeyClass::kTgs);
    SecretBytes plain = EncodeKeyRecord(record);
    EXPECT_TRUE(SameRecord(*DecodeKeyRecord(record.info.handle, plain), record));
    EXPECT_EQ(*DecodeKeyInfo(record.info.handle, plain), record.info);
    for (size_t size = 0; size < plain.size(); ++size) {
      EXPECT_FALSE(
          DecodeKeyRecord(record.info.handle, absl::MakeConstSpan(plain).subspan(0, size)).ok());
    }
    plain.push_back(0);
    EXPECT_FALSE(DecodeKeyRecord(record.info.handle, plain).ok());
  }
}

// A count of shares that are not there was taken for none, where none are due.
TEST(RecordCodecTest, RefusesACountBeyondTheEnd) {
  SeededRandomForTest random(1);
  const KeyRecord record = RecordForTest(random, "a@EXAMPLE.COM", kEnctypeAes256Sha1);
  const UsageKey& last = record.usages.back();
  ASSERT_TRUE(last.round_keys.empty());
  SecretBytes plain = EncodeKeyRecord(record);
  const size_t at = plain.size() - last.mac_states.size() * sizeof(SharedBlock) -
                    record_format::kMacCountBytes - 1;
  ASSERT_EQ(plain[at], 0);
  plain[at] = 255;
  EXPECT_FALSE(DecodeKeyRecord(record.info.handle, plain).ok());
}

// Stores have keys of krbtgt and of services from before usage 64. No other usage may be missing,
// and none of a user's key.
TEST(RecordCodecTest, ReadsAKeyFromBeforeItsClasssLastUsage) {
  SeededRandomForTest random(1);
  const KeyRecord whole =
      RecordForTest(random, "krbtgt/R@R", kEnctypeAes256Gcm, KeyClass::kTgs);
  EXPECT_FALSE(DecodeKeyInfo(whole.info.handle, EncodeKeyRecord(whole))->before_cammac);
  KeyRecord old = whole;
  old.usages.pop_back();
  const SecretBytes plain = EncodeKeyRecord(old);
  EXPECT_TRUE(DecodeKeyInfo(old.info.handle, plain)->before_cammac);
  const auto read = DecodeKeyRecord(old.info.handle, plain);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->UsageNumbers(), (std::vector<uint32_t>{2, 17}));
  EXPECT_TRUE(read->info.before_cammac);
  old.usages.pop_back();
  EXPECT_FALSE(CheckKeyRecord(old).ok());
  KeyRecord other = whole;
  other.usages.erase(other.usages.begin());
  EXPECT_FALSE(CheckKeyRecord(other).ok());
  KeyRecord user = RecordForTest(random, "alice@R", kEnctypeAes256Gcm);
  user.usages.pop_back();
  EXPECT_FALSE(CheckKeyRecord(user).ok());
}

void AppendShares(absl::Span<const SharedBlock> shares, SecretBytes* out) {
  for (const SharedBlock& share : shares) {
    AppendBytes(*out, share.x);
    AppendBytes(*out, share.a);
  }
}

// The bytes that doc/share_store_format.md draws, put together by hand: stores are on disks.
SecretBytes AsDrawn(const KeyRecord& record, bool gcm) {
  SecretBytes out;
  AppendUint(out, record.info.kvno, 4);
  AppendUint(out, static_cast<uint32_t>(record.info.enctype), 4);
  AppendUint(out, 0, 4);
  AppendUint(out, 1, 1);  // user
  AppendUint(out, 1, 1);  // timestamp
  AppendUint(out, record.info.principal.size(), 2);
  AppendUint(out, record.info.salt.size(), 2);
  AppendUint(out, record.base.size(), 1);
  AppendUint(out, 3, 1);
  AppendBytes(out, AsBytes(record.info.principal));
  AppendBytes(out, AsBytes(record.info.salt));
  AppendShares(record.base, &out);
  for (const UsageKey& usage : record.usages) {
    AppendUint(out, usage.usage, 4);
    AppendUint(out, usage.round_keys.size(), 1);
    AppendShares(usage.round_keys, &out);
    if (gcm) AppendShares(absl::MakeConstSpan(&usage.h, 1), &out);
    if (!gcm) AppendUint(out, usage.mac_states.size(), 1);
    AppendShares(usage.mac_states, &out);
  }
  return out;
}

TEST(RecordCodecTest, WritesWhatIsDrawn) {
  struct {
    int32_t enctype;
    size_t sealed_bytes;
    std::array<size_t, 3> round_keys;
    size_t mac_blocks;
  } const drawn[] = {
      {kEnctypeAes128Gcm, 1304, {11, 11, 11}, 0},   {kEnctypeAes256Gcm, 1720, {15, 15, 15}, 0},
      {kEnctypeAes128Sha1, 1243, {11, 11, 0}, 4},   {kEnctypeAes256Sha1, 1531, {15, 15, 0}, 4},
      {kEnctypeAes128Sha256, 1243, {11, 11, 0}, 4}, {kEnctypeAes256Sha384, 1915, {15, 15, 0}, 8},
  };
  SeededRandomForTest random(1);
  for (const auto& d : drawn) {
    const KeyRecord record = RecordForTest(random, "alice@EXAMPLE.COM", d.enctype);
    for (size_t u = 0; u < 3; ++u) {
      EXPECT_EQ(record.usages[u].round_keys.size(), d.round_keys[u]);
      EXPECT_EQ(record.usages[u].mac_states.size(), d.mac_blocks);
    }
    const SecretBytes plain = EncodeKeyRecord(record);
    EXPECT_EQ(plain.size() + rf::kOverheadBytes, d.sealed_bytes) << d.enctype;
    EXPECT_EQ(plain, AsDrawn(record, d.mac_blocks == 0)) << d.enctype;
  }
}

}  // namespace
}  // namespace mpckdc
