// SPDX-License-Identifier: Apache-2.0
//
// The contract of kv.h: LMDB, PostgreSQL (a server of this test's own), memory.
#include "mpc-server/store/lmdb.h"
#include "mpc-server/store/postgres.h"
#include "mpc-server/testing/engine_contract.h"
#include "mpc-server/testing/memory_engine.h"
#include "mpc-server/testing/postgres_cluster.h"

namespace mpckdc::engine_contract {
namespace {

std::unique_ptr<KvEngine> MakePostgres(const std::string& folder) {
  PostgresCluster* const cluster = SharedPostgresCluster();
  if (cluster == nullptr) return nullptr;
  auto opened =
      PostgresEngine::Open(cluster->ConnInfo(cluster->NewDatabase()), folder, SystemRandom());
  EXPECT_TRUE(opened.ok()) << opened.status();
  return opened.ok() ? *std::move(opened) : nullptr;
}

INSTANTIATE_TEST_SUITE_P(
    Engines, EngineContractTest,
    ::testing::Values(
        EngineMaker{"Memory", [](const auto&) { return std::make_unique<MemoryEngine>(); }},
        EngineMaker{"Lmdb", [](const auto& folder) { return *LmdbEngine::Open(folder, 64 << 20); }},
        EngineMaker{"Postgres", MakePostgres}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace mpckdc::engine_contract
