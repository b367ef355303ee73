// SPDX-License-Identifier: Apache-2.0
//
// A database of its own on a real PostgreSQL server for each test.
#ifndef MPC_SERVER_TESTING_POSTGRES_FIXTURE_H_
#define MPC_SERVER_TESTING_POSTGRES_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/random_source.h"
#include "mpc-server/store/postgres.h"
#include "mpc-server/testing/folder.h"
#include "mpc-server/testing/postgres_cluster.h"

namespace mpckdc {

class PostgresTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto made = PostgresCluster::Create();
    ASSERT_TRUE(made.ok()) << made.status();
    cluster_ = made->release();
  }
  static void TearDownTestSuite() {
    delete cluster_;
    cluster_ = nullptr;
  }
  void SetUp() override {
    ASSERT_NE(cluster_, nullptr);
    if (!cluster_->running()) {
      ASSERT_TRUE(cluster_->Start().ok());
    }
    database_ = cluster_->NewDatabase();
  }

  absl::StatusOr<std::unique_ptr<PostgresEngine>> Open(std::string conninfo = "") {
    if (conninfo.empty()) conninfo = cluster_->ConnInfo(database_);
    return PostgresEngine::Open(conninfo, folder_.path(), SystemRandom());
  }
  absl::Status OpenError(const std::string& conninfo = "") { return Open(conninfo).status(); }
  static absl::Status Put(KvEngine& engine, const std::string& key,
                          const std::string& value = "v") {
    return engine.Write("put", [&](KvTxn& txn) { return txn.Put(record_format::kKeys, key, value); });
  }
  static absl::Status Insert(KvEngine& engine, const std::string& key) {
    return engine.Write("insert", [&](KvTxn& txn) {
      return txn.InsertNew(record_format::kReplay, {{key, ""}}).status();
    });
  }
  static absl::StatusOr<std::string> Get(const KvEngine& engine, const std::string& key,
                                         record_format::Table table = record_format::kKeys) {
    auto txn = engine.BeginRead();
    if (!txn.ok()) return txn.status();
    auto value = (*txn)->Get(table, key);
    if (!value.ok()) return value.status();
    return std::string(AsText(*value));
  }
  // Until it works again.
  template <class Call>
  static absl::Duration TimeUntilOk(Call call, absl::Duration limit = absl::Seconds(20)) {
    const absl::Time start = absl::Now();
    absl::Status last;
    while (absl::Now() - start < limit) {
      last = call();
      if (last.ok()) return absl::Now() - start;
      EXPECT_EQ(last.code(), absl::StatusCode::kUnavailable) << last;
      absl::SleepFor(absl::Milliseconds(20));
    }
    ADD_FAILURE() << last;
    return absl::InfiniteDuration();
  }

  static inline PostgresCluster* cluster_ = nullptr;
  std::string database_;
  TestFolder folder_;
};

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_POSTGRES_FIXTURE_H_
