// SPDX-License-Identifier: Apache-2.0
//
// Three parties' stores, each over an engine in memory, with the key files that they write.
#ifndef MPC_SERVER_TESTING_EPOCHS_FIXTURE_H_
#define MPC_SERVER_TESTING_EPOCHS_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "mpc-server/base/bytes.h"
#include "mpc-server/store/epochs.h"
#include "mpc-server/testing/memory_engine.h"
#include "mpc-server/testing/records.h"
#include "mpc-server/testing/rewriting.h"

namespace mpckdc {

inline const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

// What a thief of one server's store has of one block.
inline Block ComponentOf(const SharedBlock& share, int party, int component) {
  // P_i has a_i and a_{i-1} = x_i + a_i.
  return component == party ? share.a : XorBlocks(share.x, share.a);
}

// The key, from the shares of two parties that follow each other: v = a_{i+1} + x_i.
inline Block Join(const SharedBlock& of_i, const SharedBlock& of_next) {
  return XorBlocks(of_next.a, of_i.x);
}

class EpochsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int p = 0; p < 3; ++p) {
      engines_[p] = std::make_shared<MemoryEngine>();
      ASSERT_TRUE(Reopen(p).ok());
    }
  }

  // As after a restart of the server: the keys are those of its key file.
  absl::Status Reopen(int p) {
    stores_[p].reset();
    StoreKeys keys = *StoreKeys::Parse(AsBytes(files_[p]), absl::StrCat("key file ", p));
    keys.SetSaver([this, p](absl::Span<const uint8_t> text) {
      if (!key_file_fails_.ok()) return key_file_fails_;
      files_[p] = std::string(AsText(text));
      return absl::OkStatus();
    });
    auto opened = ShareStore::Open(engines_[p], {{"EXAMPLE.COM", p, 7}, keys, &SystemRandom()});
    if (opened.ok()) stores_[p] = *std::move(opened);
    return opened.status();
  }

  // A key's shares, of the three parties.
  std::array<KeyRecord, 3> Deal(int32_t enctype = kEnctypeAes256Gcm) {
    std::array<KeyRecord, 3> dealt;
    KeyRecord plain = RecordForTest(random_, "alice@EXAMPLE.COM", enctype);
    for (KeyRecord& record : dealt) record = plain;
    ForEach(dealt, [&](std::array<SharedBlock*, 3> blocks) {
      std::array<Block, 3> a;
      for (Block& each : a) random_.Fill(absl::MakeSpan(each));
      for (int p = 0; p < 3; ++p) *blocks[p] = {XorBlocks(a[p], a[(p + 2) % 3]), a[p]};
    });
    return dealt;
  }

  static void ForEach(std::array<KeyRecord, 3>& records,
                      std::function<void(std::array<SharedBlock*, 3>)> visit) {
    const auto of = [&](auto block) {
      visit({block(records[0]), block(records[1]), block(records[2])});
    };
    for (size_t i = 0; i < records[0].base.size(); ++i) {
      of([&](KeyRecord& r) { return &r.base[i]; });
    }
    for (size_t u = 0; u < records[0].usages.size(); ++u) {
      for (size_t i = 0; i < records[0].usages[u].round_keys.size(); ++i) {
        of([&](KeyRecord& r) { return &r.usages[u].round_keys[i]; });
      }
      for (size_t i = 0; i < records[0].usages[u].mac_states.size(); ++i) {
        of([&](KeyRecord& r) { return &r.usages[u].mac_states[i]; });
      }
      if (records[0].usages[u].mac_states.empty()) {
        of([&](KeyRecord& r) { return &r.usages[u].h; });
      }
    }
  }

  std::vector<Block> Keys(std::array<KeyRecord, 3>& records) {
    std::vector<Block> keys;
    ForEach(records, [&](std::array<SharedBlock*, 3> b) {
      keys.push_back(Join(*b[0], *b[1]));
      EXPECT_EQ(Join(*b[1], *b[2]), keys.back());
      EXPECT_EQ(Join(*b[2], *b[0]), keys.back());
    });
    return keys;
  }

  std::array<KeyRecord, 3> Get(const Handle& handle) {
    std::array<KeyRecord, 3> records;
    for (int p = 0; p < 3; ++p) {
      absl::StatusOr<KeyRecord> got = stores_[p]->Get(handle);
      EXPECT_TRUE(got.ok()) << got.status();
      if (got.ok()) records[p] = *std::move(got);
    }
    return records;
  }

  TransactionId Stage(const std::array<KeyRecord, 3>& records, uint64_t epoch) {
    TransactionId txn{};
    txn[0] = ++txns_;
    for (int p = 0; p < 3; ++p) {
      const absl::Status staged = stores_[p]->Stage(txn, {&records[p], 1}, epoch, kNow);
      EXPECT_TRUE(staged.ok()) << staged;
    }
    return txn;
  }
  void Commit(const TransactionId& txn) {
    for (int p = 0; p < 3; ++p) {
      const auto committed = stores_[p]->Commit(txn, kNow);
      EXPECT_TRUE(committed.ok()) << committed.status();
    }
  }
  std::array<KeyRecord, 3> Enrol(int32_t enctype = kEnctypeAes256Gcm) {
    std::array<KeyRecord, 3> records = Deal(enctype);
    Commit(Stage(records, stores_[0]->Epoch().epoch));
    return records;
  }

  RefreshSeed Seed(uint8_t n) {
    RefreshSeed seed;
    seed.Get().fill(n);
    return seed;
  }
  static RefreshId Id(uint8_t n) {
    RefreshId id{};
    id[3] = n;
    return id;
  }
  void Prepare(uint8_t n) {
    for (auto& store : stores_) {
      const absl::Status prepared = store->PrepareEpoch(Id(n), Seed(n));
      ASSERT_TRUE(prepared.ok()) << prepared;
    }
  }
  void Enter() {
    for (auto& store : stores_) {
      const absl::Status entered = store->EnterEpoch(kNow);
      ASSERT_TRUE(entered.ok()) << entered;
    }
  }
  void RewriteAll(int p) {
    const auto done = mpckdc::RewriteAll(*stores_[p]);
    ASSERT_TRUE(done.ok()) << done.status();
    ASSERT_TRUE(stores_[p]->RewriteStaged().ok());
    ASSERT_EQ(mpckdc::RewriteAll(*stores_[p])->written, 0u);
    const absl::Status ended = stores_[p]->EndRefresh();
    ASSERT_TRUE(ended.ok()) << ended;
  }

  void ExpectKey(const Handle& handle, std::array<KeyRecord, 3> expected) {
    std::array<KeyRecord, 3> now = Get(handle);
    EXPECT_EQ(Keys(now), Keys(expected));
  }

  RandomSource& random_ = SystemRandom();
  absl::Status key_file_fails_;
  std::array<std::string, 3> files_ = {"1 " + std::string(64, 'a'), "1 " + std::string(64, 'b'),
                                       "1 " + std::string(64, 'c')};
  std::array<std::shared_ptr<MemoryEngine>, 3> engines_;
  std::array<std::unique_ptr<ShareStore>, 3> stores_;
  uint8_t txns_ = 0;
  Handle half_{};
};

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_EPOCHS_FIXTURE_H_
