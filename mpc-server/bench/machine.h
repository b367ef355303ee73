// SPDX-License-Identifier: Apache-2.0
// On what and from what a figure comes: without these it says nothing.
#ifndef MPC_SERVER_BENCH_MACHINE_H_
#define MPC_SERVER_BENCH_MACHINE_H_

#include <string>

namespace mpckdc::bench {

struct Machine {
  std::string cpu;     // model name
  int cores = 0;       // that this process may use
  std::string kernel;
  std::string best_isa;
};
Machine ThisMachine();

// `git describe` of the tree when this program was built; "-dirty" marks uncommitted changes.
std::string Commit();

// All of it in a line.
std::string MachineText();

}  // namespace mpckdc::bench

#endif  // MPC_SERVER_BENCH_MACHINE_H_
