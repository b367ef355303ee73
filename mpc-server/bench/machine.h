// SPDX-License-Identifier: Apache-2.0
// On what and from what a figure comes: without these it says nothing.
#ifndef MPC_SERVER_BENCH_MACHINE_H_
#define MPC_SERVER_BENCH_MACHINE_H_

#include <nlohmann/json.hpp>
#include <string>

namespace mpckdc::bench {

// The CPU's model name, the cores that this process may use, kernel and best instruction set.
nlohmann::ordered_json ThisMachine();

// `git describe` of the tree when this program was built; "-dirty" marks uncommitted changes.
std::string Commit();

// All of it in a line.
std::string MachineText();

}  // namespace mpckdc::bench

#endif  // MPC_SERVER_BENCH_MACHINE_H_
