// SPDX-License-Identifier: Apache-2.0
//
// The simulated disk keeps the contract of kv.h.
#include "mpc-server/sim/disk.h"

#include "mpc-server/testing/engine_contract.h"

namespace mpckdc::engine_contract {
namespace {

std::unique_ptr<KvEngine> MakeDisk(const std::string&) {
  static sim::Dice dice(1);
  return std::make_unique<sim::SimDisk>(MemoryEngine().Snapshot(), &dice, sim::DiskControl{});
}

INSTANTIATE_TEST_SUITE_P(Simulated, EngineContractTest,
                         ::testing::Values(EngineMaker{"Disk", MakeDisk}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace mpckdc::engine_contract
