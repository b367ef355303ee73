// SPDX-License-Identifier: Apache-2.0
// Measurements as JSON and as tables, with the machine that they come from.
#ifndef MPC_SERVER_BENCH_PRINT_H_
#define MPC_SERVER_BENCH_PRINT_H_

#include <string>

#include "mpc-server/bench/measure.h"

namespace mpckdc::bench {

// On what and from what a figure comes: without these it says nothing. The CPU's model name, the
// cores that this process may use, kernel, best instruction set and `git describe` of the tree when
// this program was built ("-dirty" marks uncommitted changes), in a line.
std::string MachineText();
int Cores();

// The same, to which a command adds its results.
ordered_json Heading(const std::string& command);

std::string UnitName(Unit unit);
// What was set, and what it costs as declared.
ordered_json SetupJson(const BenchSetup& s);

// A login under the CTR enctypes, as AES blocks; and what blocks as many as `login`'s are beside
// it.
inline constexpr size_t kCtrBlocks = 33;
ordered_json CtrJson(const ordered_json& blocks, const ordered_json& login);

// A table of a command's results: its head, and a line from Measure()'s. Empty: it has none.
std::string TableHead(const std::string& command);
std::string TableLine(const std::string& command, const ordered_json& result);

// What the CPU time of a block goes to (breakdown.cc). Adds the parts to `result`, which has the
// floor; returns them as text.
std::string Breakdown(const BenchSetup& s, ordered_json* result);

// Table 2 of Araki et al. The paper's servers had a machine and a 10 Gb/s network each; here three
// parties share one machine. What can be compared is the work of a core: blocks per core-second,
// the cores of the three servers together. The paper does not say how busy its cores were; counting
// them as fully busy is to its disadvantage, so the factor is at most what is printed.
ordered_json PaperJson();
std::string PaperText();
double TimesThePaper(const ordered_json& result);

}  // namespace mpckdc::bench

#endif  // MPC_SERVER_BENCH_PRINT_H_
