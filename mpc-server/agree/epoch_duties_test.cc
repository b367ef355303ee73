// SPDX-License-Identifier: Apache-2.0
//
// How a refresh's records are written beside the logins: few in each transaction, nothing computed
// while one is under way, in the order in which they lie on the disk.
#include "mpc-server/agree/epoch_duties.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/testing/jobs.h"
#include "mpc-server/testing/memory_engine.h"
#include "mpc-server/testing/records.h"

namespace mpckdc {
namespace {

namespace rf = record_format;

// What each write of a refresh changed, and how often the store was read before it.
class WatchedEngine : public KvEngine {
 public:
  struct Seen {
    std::vector<std::string> places;
    int reads = 0;
  };

  absl::StatusOr<std::unique_ptr<const KvTxn>> BeginRead() const override {
    ++reads_;
    return engine_.BeginRead();
  }
  absl::Status Write(absl::string_view what, Body body) override {
    const MemoryEngine::State before = engine_.Snapshot();
    const absl::Status status = engine_.Write(what, body);
    if (what != "refresh keys" || !status.ok()) return status;
    const MemoryEngine::State after = engine_.Snapshot();
    Seen& seen = writes.emplace_back();
    seen.reads = std::exchange(reads_, 0);
    for (const auto& [place, record] : *after[static_cast<size_t>(rf::kRecords)]) {
      if (before[static_cast<size_t>(rf::kRecords)]->at(place) != record) {
        seen.places.push_back(place);
      }
    }
    return status;
  }
  MemoryEngine& engine() { return engine_; }

  std::vector<Seen> writes;

 private:
  MemoryEngine engine_;
  mutable int reads_ = 0;
};

class EpochDutiesTest : public ::testing::Test {
 protected:
  static constexpr size_t kKeys = 150, kPerList = 32, kPerWrite = 40;

  void SetUp() override {
    auto opened = ShareStore::Open(engine_, {kIdentityForTest, StoreKeysForTest(), &SystemRandom()});
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
    std::vector<KeyRecord> records;
    for (size_t i = 0; i < kKeys; ++i) {
      records.push_back(RecordForTest(SystemRandom(), absl::StrCat("user", i, "@EXAMPLE.COM"),
                                      kEnctypeAes128Gcm));
    }
    ASSERT_TRUE(store_->Stage(TransactionId{1}, records, absl::Now()).ok());
    ASSERT_TRUE(store_->Commit(TransactionId{1}, absl::Now()).ok());
    ASSERT_TRUE(store_->PrepareEpoch(RefreshId{1}, RefreshSeed()).ok());
    ASSERT_TRUE(store_->EnterEpoch(absl::Now()).ok());
    duties_ = std::make_unique<EpochDuties>(
        store_.get(), &realm_.engine(0), &SystemClock(),
        EpochDutyOptions{.at_least = absl::ZeroDuration(),
                         .keys_per_list = kPerList,
                         .keys_per_write = kPerWrite},
        [](const EpochState&, const EpochProgress&) { return absl::OkStatus(); },
        [](const std::string&) {});
  }
  // How many steps it took; none of them does all.
  int StepToTheEnd() {
    int steps = 0;
    for (; store_->Epoch().rewriting && steps < 1000; ++steps) duties_->Step();
    EXPECT_FALSE(store_->Epoch().rewriting);
    return steps;
  }
  void ExpectAllWrittenInOrder() {
    std::vector<std::string> places;
    for (const auto& write : engine_->writes) {
      EXPECT_LE(write.places.size(), kPerWrite);
      places.insert(places.end(), write.places.begin(), write.places.end());
    }
    EXPECT_EQ(places.size(), kKeys);
    EXPECT_TRUE(std::is_sorted(places.begin(), places.end()));
    EXPECT_EQ(std::set(places.begin(), places.end()).size(), kKeys);
  }

  Realm realm_;  // for its engines alone
  const std::shared_ptr<WatchedEngine> engine_ = std::make_shared<WatchedEngine>();
  std::unique_ptr<ShareStore> store_;
  std::unique_ptr<EpochDuties> duties_;
};

TEST_F(EpochDutiesTest, WritesFewAtATimeInTheOrderOfTheirPlaces) {
  const int steps = StepToTheEnd();
  ExpectAllWrittenInOrder();
  ASSERT_EQ(engine_->writes.size(), (kKeys + kPerWrite - 1) / kPerWrite);
  // Five parts are listed; each write's records are computed 16 at a time, in steps before it.
  EXPECT_GE(steps, 5 + 3 * (3 + 1) + (2 + 1));
  EXPECT_EQ(engine_->writes[1].reads, 3);
  EXPECT_EQ(engine_->writes.back().reads, 2);
  EXPECT_EQ(duties_->Progress().written, kKeys);
  EXPECT_EQ(duties_->Progress().damaged, 0u);
}

// What a full disk refused is written when it can be, and nothing is left out for it.
TEST_F(EpochDutiesTest, GoesOnWhereTheDiskRefused) {
  while (engine_->writes.size() < 2) duties_->Step();
  engine_->engine().FailWrites(absl::ResourceExhaustedError("disk full"));
  for (int i = 0; i < 20; ++i) duties_->Step();
  EXPECT_THAT(duties_->Progress().trouble, ::testing::HasSubstr("disk full"));
  EXPECT_EQ(engine_->writes.size(), 2u);
  engine_->engine().FailWrites(absl::OkStatus());
  StepToTheEnd();
  ExpectAllWrittenInOrder();
  EXPECT_EQ(duties_->Progress().trouble, "");
  EXPECT_EQ(duties_->Progress().written, kKeys);
}

}  // namespace
}  // namespace mpckdc
