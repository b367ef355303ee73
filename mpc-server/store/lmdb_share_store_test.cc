// SPDX-License-Identifier: Apache-2.0
//
// The disk: what survives, what damage is seen, whose store is refused, what a full disk does.
#include "mpc-server/store/lmdb_share_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/store/record_codec.h"
#include "mpc-server/testing/folder.h"
#include "mpc-server/testing/records.h"

namespace mpckdc {
namespace {

namespace fs = std::filesystem;
namespace rf = record_format;
using ::testing::HasSubstr;

constexpr uint64_t kMap = 64 << 20;
constexpr size_t kPage = 4096;
const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);
const StoreIdentity kIdentity{"EXAMPLE.COM", 1, 7};

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

void WriteFile(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

class LmdbShareStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(StoreKeys::Create(KeyFile(), SystemRandom()).ok());
  }
  std::string KeyFile() const { return folder_.File("store.key"); }
  std::string DataFile() const { return folder_.File("shares.mdb"); }

  absl::StatusOr<std::unique_ptr<LmdbShareStore>> Open(StoreIdentity identity = kIdentity,
                                                       uint64_t map_bytes = kMap) {
    auto keys = StoreKeys::Load(KeyFile());
    if (!keys.ok()) return keys.status();
    return LmdbShareStore::Open(
        {folder_.path(), std::move(identity), *std::move(keys), &SystemRandom(), map_bytes});
  }

  KeyRecord Enrol(ShareStore& store, const std::string& principal) {
    KeyRecord record = RecordForTest(random_, principal);
    TransactionId txn;
    random_.Fill(absl::MakeSpan(txn));
    EXPECT_TRUE(store.Stage(txn, {record}, kNow).ok());
    EXPECT_TRUE(store.Commit(txn, kNow).ok());
    return record;
  }

  TestFolder folder_;
  SeededRandomForTest random_{2};
};

TEST_F(LmdbShareStoreTest, KeepsEverythingAcrossReopening) {
  NonceMark mark{};
  mark[3] = 9;
  const ReplayEntry entry{Handle{1}, {2}, kNow};
  KeyRecord record;
  {
    auto store = *Open();
    record = Enrol(*store, "alice@EXAMPLE.COM");
    ASSERT_TRUE(store->ReserveNonceMark(mark).ok());
    ASSERT_TRUE(store->AddReplayEntries({entry}).ok());
    ASSERT_TRUE(store->MarkInitialised().ok());
    ASSERT_TRUE(store->WriteItem("package-key", SecretBytes{4, 5}).ok());
  }
  auto store = *Open();
  EXPECT_TRUE(SameRecord(*store->Get(record.info.handle), record));
  EXPECT_EQ(*store->ReadNonceMark(), mark);
  EXPECT_TRUE(store->Meta().initialised);
  EXPECT_EQ(*store->ReadItem("package-key"), (SecretBytes{4, 5}));
  size_t entries = 0;
  ASSERT_TRUE(store->LoadReplayEntries([&](const ReplayEntry& e) { entries += e == entry; }).ok());
  EXPECT_EQ(entries, 1u);
}

// The next test runs this one in a process of its own: secret memory does not survive a fork.
constexpr char kChildFolder[] = "MPC_KDC_TEST_CHILD_FOLDER";
constexpr uint64_t kChildSeed = 77;

TEST(LmdbShareStoreChild, DISABLED_EnrolsAndDies) {
  const char* folder = getenv(kChildFolder);
  ASSERT_NE(folder, nullptr);
  auto keys = StoreKeys::Load(std::string(folder) + "/store.key");
  ASSERT_TRUE(keys.ok());
  auto store = LmdbShareStore::Open({folder, kIdentity, *keys, &SystemRandom(), kMap});
  ASSERT_TRUE(store.ok()) << store.status();
  SeededRandomForTest random(kChildSeed);
  const KeyRecord committed = RecordForTest(random, "alice@EXAMPLE.COM");
  ASSERT_TRUE((*store)->Stage(TransactionId{1}, {committed}, kNow).ok());
  ASSERT_TRUE((*store)->Commit(TransactionId{1}, kNow).ok());
  const KeyRecord staged = RecordForTest(random, "bob@EXAMPLE.COM");
  ASSERT_TRUE((*store)->Stage(TransactionId{2}, {staged}, kNow).ok());
  kill(getpid(), SIGKILL);
}

// Killed right after an acknowledged commit, without any clean-up.
TEST_F(LmdbShareStoreTest, AcknowledgedEnrolmentSurvivesAKilledProcess) {
  const pid_t child = fork();
  if (child == 0) {
    setenv(kChildFolder, folder_.path().c_str(), 1);
    execl("/proc/self/exe", "child", "--gtest_filter=*DISABLED_EnrolsAndDies",
          "--gtest_also_run_disabled_tests", nullptr);
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  SeededRandomForTest random(kChildSeed);
  const KeyRecord record = RecordForTest(random, "alice@EXAMPLE.COM");
  auto store = *Open();
  EXPECT_TRUE(SameRecord(*store->Get(record.info.handle), record));
  EXPECT_EQ(*store->Count(KeyState::kStaged), 1u);
  EXPECT_EQ(*store->ExpireStaged(kNow + absl::Hours(1)), 1u);
}

TEST_F(LmdbShareStoreTest, RecordSizesStaySmall) {
  Sealer sealer(*StoreKeys::Load(KeyFile()), kIdentity, &SystemRandom());
  const auto sealed_size = [&](int32_t enctype) {
    const KeyRecord record = RecordForTest(random_, std::string(60, 'p') + "@EXAMPLE.COM", enctype);
    return sealer.Seal(rf::Kind::kKey, 1, "h", EncodeKeyRecord(record)).size();
  };
  // What an LMDB page of 4 KB takes twice; larger ones get pages of their own.
  constexpr size_t kLargestNode = 2038, kNodeHead = 8 + rf::kPlaceBytes;
  for (const Enctype& enctype : kEnctypes) {
    EXPECT_LE(sealed_size(enctype.number) + kNodeHead, kLargestNode) << enctype.name;
  }
}

TEST_F(LmdbShareStoreTest, NoPlainShareIsInTheFile) {
  KeyRecord record;
  {
    auto store = *Open();
    record = Enrol(*store, "alice@EXAMPLE.COM");
  }
  const std::string file = ReadFile(DataFile());
  const auto holds = [&](absl::Span<const uint8_t> bytes) {
    return absl::StrContains(file, AsText(bytes));
  };
  EXPECT_TRUE(holds(record.info.handle)) << "the search sees";
  EXPECT_FALSE(holds(AsBytes("alice@EXAMPLE.COM")));
  for (const SharedBlock& share : record.usages[0].round_keys) {
    EXPECT_FALSE(holds(share.x));
    EXPECT_FALSE(holds(share.a));
  }
}

// Changes each byte of a sealed record in the file, one at a time, on a closed store.
TEST_F(LmdbShareStoreTest, EachChangedByteOfARecordIsDataLossThatNamesTheKey) {
  KeyRecord record;
  KeyRecord other;
  {
    auto store = *Open();
    record = Enrol(*store, "alice@EXAMPLE.COM");
    other = Enrol(*store, "bob@EXAMPLE.COM");
  }
  std::string sealed;
  {
    const char* const names[] = {rf::kDbKeys, rf::kDbRecords};
    auto env = *LmdbEnv::Open(DataFile(), kMap, names);
    const KeyTable table(env->Dbi(0), env->Dbi(1));
    sealed = std::string(AsText(*table.Get(*env->BeginRead(), AsText(record.info.handle))));
  }
  const std::string good = ReadFile(DataFile());
  ASSERT_GT(sealed.size(), rf::kOverheadBytes);
  for (size_t i = 0; i < sealed.size(); i += i < 60 || i + 20 > sealed.size() ? 1 : 37) {
    std::string bad = good;  // the staged copy's page may still hold the same bytes: change all
    for (size_t at = bad.find(sealed); at != std::string::npos; at = bad.find(sealed, at + 1)) {
      bad[at + i] = static_cast<char>(bad[at + i] ^ 0x40);
    }
    WriteFile(DataFile(), bad);
    auto store = *Open();
    const absl::Status status = store->Get(record.info.handle).status();
    ASSERT_TRUE(absl::IsDataLoss(status)) << "byte " << i << ": " << status;
    ASSERT_THAT(std::string(status.message()), HasSubstr(HandleText(record.info.handle)));
    ASSERT_TRUE(SameRecord(*store->Get(other.info.handle), other));
  }
}

class RawStoreTest : public LmdbShareStoreTest {
 protected:
  // Replaces the stored value of a key record, as somebody with the disk could.
  void Replace(const Handle& handle, absl::FunctionRef<std::string(std::string)> change) {
    const char* const names[] = {rf::kDbKeys, rf::kDbRecords};
    auto env = *LmdbEnv::Open(DataFile(), kMap, names);
    const KeyTable table(env->Dbi(0), env->Dbi(1));
    ASSERT_TRUE(env->Write([&](LmdbTxn& txn) {
      const std::string old(AsText(*table.Get(txn, AsText(handle))));
      return table.Put(txn, AsText(handle), change(old));
    }).ok());
  }

  // Gives the store another version.
  void SetVersion(uint32_t version) {
    const char* const names[] = {rf::kDbMeta};
    auto env = *LmdbEnv::Open(DataFile(), kMap, names);
    const Sealer sealer(*StoreKeys::Load(KeyFile()), kIdentity, &SystemRandom());
    ASSERT_TRUE(env->Write([&](LmdbTxn& txn) {
      return txn.Put(env->Dbi(0), rf::kNameIdentity,
                     sealer.SealIdentity({kIdentity, 1, true, version}));
    }).ok());
  }

  // Puts a committed record where stores of version 1 have it.
  void MakeOld(const Handle& handle) {
    const char* const names[] = {rf::kDbKeys, rf::kDbRecords};
    auto env = *LmdbEnv::Open(DataFile(), kMap, names);
    const KeyTable table(env->Dbi(0), env->Dbi(1));
    ASSERT_TRUE(env->Write([&](LmdbTxn& txn) {
      const std::string record(AsText(*table.Get(txn, AsText(handle))));
      absl::Status s = table.Delete(txn, AsText(handle));
      if (s.ok()) s = txn.Put(env->Dbi(0), AsText(handle), record);
      return s;
    }).ok());
  }

  // Removes what the place of a key names.
  void EmptyPlace(const Handle& handle) {
    const char* const names[] = {rf::kDbKeys, rf::kDbRecords};
    auto env = *LmdbEnv::Open(DataFile(), kMap, names);
    ASSERT_TRUE(env->Write([&](LmdbTxn& txn) {
      const std::string place(AsText(*txn.Get(env->Dbi(0), AsText(handle))));
      EXPECT_EQ(place.size(), rf::kPlaceBytes);
      return txn.Delete(env->Dbi(1), place);
    }).ok());
  }
};

TEST_F(RawStoreTest, TruncatedAndExtendedRecordsAreDataLoss) {
  const KeyRecord record = Enrol(**Open(), "alice@EXAMPLE.COM");
  std::string good;
  Replace(record.info.handle, [&](std::string old) { return good = old; });
  for (size_t size = 0; size <= good.size() + 1; size += size < 64 ? 1 : 31) {
    if (size == good.size()) continue;
    Replace(record.info.handle, [&](const std::string&) {
      std::string bad = good;
      bad.resize(size);
      return bad;
    });
    EXPECT_TRUE(absl::IsDataLoss((*Open())->Get(record.info.handle).status())) << size;
  }
}

TEST_F(RawStoreTest, RecordOfAnotherKeyIsDataLoss) {
  auto store = *Open();
  const KeyRecord alice = Enrol(*store, "alice@EXAMPLE.COM");
  const KeyRecord mallory = Enrol(*store, "mallory@EXAMPLE.COM");
  store.reset();
  std::string value;
  Replace(mallory.info.handle, [&](std::string old) { return value = old; });
  Replace(alice.info.handle, [&](const std::string&) { return value; });
  store = *Open();
  EXPECT_TRUE(absl::IsDataLoss(store->Get(alice.info.handle).status()));
  EXPECT_TRUE(absl::IsDataLoss(store->SetGate({alice.info.handle}, Gate::kNone)));
  size_t damaged = 0;
  ASSERT_TRUE(store->ForEach(KeyState::kCommitted, [&](const absl::StatusOr<KeyInfo>& info) {
    damaged += absl::IsDataLoss(info.status());
    return true;
  }).ok());
  EXPECT_EQ(damaged, 1u);
}

// ---- Places ----

TEST_F(RawStoreTest, RecordsOfAVersion1StoreAreReadChangedAndDeleted) {
  KeyRecord kept, changed, deleted;
  {
    auto store = *Open();
    kept = Enrol(*store, "kept@EXAMPLE.COM");
    changed = Enrol(*store, "changed@EXAMPLE.COM");
    deleted = Enrol(*store, "deleted@EXAMPLE.COM");
  }
  for (const KeyRecord* record : {&kept, &changed, &deleted}) MakeOld(record->info.handle);
  SetVersion(1);
  auto store = *Open();
  EXPECT_EQ(store->Meta().format_version, rf::kStoreVersion);
  EXPECT_TRUE(store->Meta().initialised);
  KeyRecord fresh = Enrol(*store, "fresh@EXAMPLE.COM");
  ASSERT_TRUE(store->SetGate({changed.info.handle}, Gate::kNone).ok());
  changed.info.gate = Gate::kNone;
  EXPECT_EQ(*store->Delete({deleted.info.handle}), 1u);
  store.reset();
  store = *Open();
  EXPECT_EQ(*store->Count(KeyState::kCommitted), 3u);
  for (const KeyRecord* record : {&kept, &changed, &fresh}) {
    EXPECT_TRUE(SameRecord(*store->Get(record->info.handle), *record));
  }
  EXPECT_TRUE(absl::IsNotFound(store->Get(deleted.info.handle).status()));
}

TEST_F(RawStoreTest, StoresOfOtherVersionsAreRefused) {
  { auto store = *Open(); }
  for (const uint32_t version : {0u, rf::kStoreVersion + 1u}) {
    SetVersion(version);
    const absl::Status status = Open().status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("format version"));
  }
}

TEST_F(RawStoreTest, AnEmptyPlaceIsDataLossThatNamesTheKey) {
  KeyRecord record;
  {
    auto store = *Open();
    record = Enrol(*store, "alice@EXAMPLE.COM");
  }
  EmptyPlace(record.info.handle);
  auto store = *Open();
  const absl::Status status = store->Get(record.info.handle).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(HandleText(record.info.handle)));
  EXPECT_TRUE(absl::IsDataLoss(store->SetGate({record.info.handle}, Gate::kNone)));
  EXPECT_EQ(*store->Delete({record.info.handle}), 1u) << "what is damaged can be deleted";
}

// The newest key may be deleted, and its place taken again by the next: nobody names it any more.
TEST_F(RawStoreTest, PlacesAfterDeletions) {
  auto store = *Open();
  std::vector<KeyRecord> kept;
  for (int i = 0; i < 30; ++i) {
    const KeyRecord record = Enrol(*store, "user@EXAMPLE.COM");
    if (i % 3 == 0) {
      ASSERT_EQ(*store->Delete({record.info.handle}), 1u);
    } else {
      kept.push_back(record);
    }
  }
  for (const KeyRecord& record : kept) {
    EXPECT_TRUE(SameRecord(*store->Get(record.info.handle), record));
  }
  EXPECT_EQ(*store->Count(KeyState::kCommitted), kept.size());
}

// The goal of the storm: at most 2 KB for each aes128-gcm key.
TEST_F(LmdbShareStoreTest, ThousandsOfKeysTakeLessThanTwoKilobytesEach) {
  auto store = *Open(kIdentity, 64 << 20);
  constexpr int kChunks = 16, kKeysPerChunk = 512;
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    std::vector<KeyRecord> records;
    for (int i = 0; i < kKeysPerChunk; ++i) {
      records.push_back(RecordForTest(random_, "u0000001@EXAMPLE.COM"));
    }
    TransactionId txn{};
    txn[0] = static_cast<uint8_t>(chunk + 1);
    ASSERT_TRUE(store->Stage(txn, records, kNow).ok());
    ASSERT_EQ(*store->Commit(txn, kNow), records.size());
  }
  store.reset();
  EXPECT_LT(fs::file_size(DataFile()) / (kChunks * kKeysPerChunk), 2048u);
}

TEST_F(LmdbShareStoreTest, RecordsAreBoundToRealmPartyClusterEpochKindAndName) {
  const auto keys = *StoreKeys::Load(KeyFile());
  const SecretBytes plain = {1, 2, 3};
  const std::string sealed =
      Sealer(keys, kIdentity, &SystemRandom()).Seal(rf::Kind::kKey, 1, "name", plain);
  const auto opens = [&](StoreIdentity identity, rf::Kind kind, absl::string_view name) {
    return Sealer(keys, std::move(identity), &SystemRandom())
        .Open(kind, name, AsBytes(sealed))
        .ok();
  };
  EXPECT_TRUE(opens(kIdentity, rf::Kind::kKey, "name"));
  EXPECT_FALSE(opens({"OTHER.COM", 1, 7}, rf::Kind::kKey, "name"));
  EXPECT_FALSE(opens({"EXAMPLE.COM", 2, 7}, rf::Kind::kKey, "name"));
  EXPECT_FALSE(opens({"EXAMPLE.COM", 1, 8}, rf::Kind::kKey, "name"));
  EXPECT_FALSE(opens(kIdentity, rf::Kind::kItem, "name"));
  EXPECT_FALSE(opens(kIdentity, rf::Kind::kKey, "nam"));
}

TEST_F(LmdbShareStoreTest, AnotherRealmsStoreIsRefusedNamingBoth) {
  { auto store = *Open(); }
  for (const StoreIdentity& wrong : {StoreIdentity{"OTHER.COM", 1, 7},
                                     StoreIdentity{"EXAMPLE.COM", 2, 7},
                                     StoreIdentity{"EXAMPLE.COM", 1, 8}}) {
    const absl::Status status = Open(wrong).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("realm EXAMPLE.COM, party 1, cluster 7"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("realm " + wrong.realm));
  }
}

TEST_F(LmdbShareStoreTest, AnotherKeyFileIsRefused) {
  { auto store = *Open(); }
  fs::remove(KeyFile());
  ASSERT_TRUE(StoreKeys::Create(KeyFile(), SystemRandom()).ok());
  const absl::Status status = Open().status();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr(KeyFile()));
}

TEST_F(LmdbShareStoreTest, OneProcessAtATime) {
  auto store = *Open();
  const absl::Status second = Open().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(second));
  EXPECT_THAT(std::string(second.message()), HasSubstr("another mpc-server"));
  store.reset();
  EXPECT_TRUE(Open().ok());
}

TEST_F(LmdbShareStoreTest, FullMapIsDiskFullAndLosesNothing) {
  auto store = *Open(kIdentity, 256 << 10);
  std::vector<KeyRecord> kept;
  absl::Status status;
  for (int i = 0; i < 1000 && status.ok(); ++i) {
    KeyRecord record = RecordForTest(random_, "user@EXAMPLE.COM");
    TransactionId txn;
    random_.Fill(absl::MakeSpan(txn));
    status = store->Stage(txn, {record}, kNow);
    if (status.ok()) status = store->Commit(txn, kNow).status();
    if (status.ok()) kept.push_back(record);
  }
  ASSERT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("disk full"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("map_size_gib"));
  ASSERT_GT(kept.size(), 10u);
  store.reset();
  store = *Open(kIdentity, kMap);  // a larger map: the store goes on
  for (const KeyRecord& record : kept) {
    ASSERT_TRUE(SameRecord(*store->Get(record.info.handle), record));
  }
  Enrol(*store, "more@EXAMPLE.COM");
}

// The file may not grow (RLIMIT_FSIZE stands for a full file system): writes fail half way.
TEST_F(LmdbShareStoreTest, FullDiskLosesNothing) {
  auto store = *Open();
  const KeyRecord first = Enrol(*store, "first@EXAMPLE.COM");
  signal(SIGXFSZ, SIG_IGN);
  struct rlimit old;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  struct rlimit small = old;
  small.rlim_cur = fs::file_size(DataFile()) + kPage;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  auto restore = absl::MakeCleanup([&] { setrlimit(RLIMIT_FSIZE, &old); });
  std::vector<KeyRecord> many;
  for (int i = 0; i < 50; ++i) many.push_back(RecordForTest(random_, "user@EXAMPLE.COM"));
  const absl::Status status = store->Stage(TransactionId{9}, many, kNow);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("disk full"));
  EXPECT_TRUE(SameRecord(*store->Get(first.info.handle), first));
  std::move(restore).Invoke();
  EXPECT_TRUE(store->Stage(TransactionId{9}, many, kNow).ok()) << "works again with space";
  EXPECT_EQ(*store->Commit(TransactionId{9}, kNow), many.size());
  store.reset();
  EXPECT_TRUE(SameRecord(*(*Open())->Get(first.info.handle), first));
}

// A copy taken while a commit writes its pages: any of the new data pages may be in it, not yet the
// page that makes them current. It must open as the state before.
TEST_F(LmdbShareStoreTest, TornWriteOpensAsTheStateBefore) {
  KeyRecord before;
  {
    auto store = *Open();
    before = Enrol(*store, "before@EXAMPLE.COM");
  }
  const std::string old_file = ReadFile(DataFile());
  KeyRecord after = RecordForTest(random_, "after@EXAMPLE.COM");
  {
    auto env = *LmdbEnv::Open(DataFile(), kMap, {});  // one transaction only: no names to open
  }
  ASSERT_EQ(ReadFile(DataFile()), old_file) << "opening for reading writes nothing";
  {
    auto store = *Open();
    ASSERT_TRUE(store->Stage(TransactionId{1}, {after}, kNow).ok());
  }
  const std::string new_file = ReadFile(DataFile());
  std::vector<size_t> changed;
  for (size_t at = 2 * kPage; at < new_file.size(); at += kPage) {
    if (at >= old_file.size() || new_file.compare(at, kPage, old_file, at, kPage) != 0) {
      changed.push_back(at);
    }
  }
  ASSERT_GE(changed.size(), 2u);
  std::string torn = old_file;
  torn.resize(std::max(old_file.size(), new_file.size()));
  for (size_t at : changed) {
    std::string half = torn;
    half.replace(at, kPage / 2, new_file, at, kPage / 2);
    for (const std::string& image : {half, torn.replace(at, kPage, new_file, at, kPage)}) {
      WriteFile(DataFile(), image);
      auto store = Open();
      ASSERT_TRUE(store.ok()) << store.status();
      ASSERT_TRUE(SameRecord(*(*store)->Get(before.info.handle), before));
      ASSERT_EQ(*(*store)->Count(KeyState::kStaged), 0u);
    }
  }
  WriteFile(DataFile(), new_file);
  EXPECT_EQ(*(*Open())->Count(KeyState::kStaged), 1u);
}

TEST_F(LmdbShareStoreTest, FileCutShortIsDataLossNotACrash) {
  {
    auto store = *Open();
    for (int i = 0; i < 40; ++i) Enrol(*store, "user@EXAMPLE.COM");
  }
  const std::string good = ReadFile(DataFile());
  size_t refused = 0;
  for (size_t size = 3 * kPage; size < good.size(); size += 5 * kPage) {
    WriteFile(DataFile(), good.substr(0, size));
    auto store = Open();
    if (store.ok()) continue;  // only free pages were lost
    ++refused;
    EXPECT_TRUE(absl::IsDataLoss(store.status())) << store.status();
  }
  EXPECT_GT(refused, 3u);
}

// ---- Store keys ----

TEST_F(LmdbShareStoreTest, KeyFileIsCreatedPrivateAndNeverReplaced) {
  struct stat info;
  ASSERT_EQ(stat(KeyFile().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  EXPECT_TRUE(absl::IsAlreadyExists(StoreKeys::Create(KeyFile(), SystemRandom())));
}

TEST_F(LmdbShareStoreTest, KeyFileThatOthersCanReadIsRefused) {
  for (mode_t mode : {0640, 0604, 0620, 0666}) {
    ASSERT_EQ(chmod(KeyFile().c_str(), mode), 0);
    const absl::Status status = StoreKeys::Load(KeyFile()).status();
    EXPECT_TRUE(absl::IsPermissionDenied(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr("chmod 0600"));
  }
}

TEST_F(LmdbShareStoreTest, MalformedKeyFilesNameTheLine) {
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

// ---- Codec ----

TEST_F(LmdbShareStoreTest, CodecRefusesEveryTruncationAndExtension) {
  for (const Enctype& enctype : kEnctypes) {
    const KeyRecord record =
        RecordForTest(random_, "a@EXAMPLE.COM", enctype.number, KeyClass::kTgs);
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

TEST_F(LmdbShareStoreTest, CodecWritesWhatIsDrawn) {
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
  for (const auto& d : drawn) {
    const KeyRecord record = RecordForTest(random_, "alice@EXAMPLE.COM", d.enctype);
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
