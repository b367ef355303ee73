// SPDX-License-Identifier: Apache-2.0
// The whole of mpc-bench for one command line.
#ifndef MPC_SERVER_BENCH_RUN_H_
#define MPC_SERVER_BENCH_RUN_H_

#include <string>

#include "absl/types/span.h"

namespace mpckdc::bench {

// `program` is this program's file, which is started anew for each party; `arguments` come without
// the program's name. Exit status: 0; 1 when something failed or was not verified; 2 for a bad
// command line.
int RunBench(const std::string& program, absl::Span<const std::string> arguments);

}  // namespace mpckdc::bench

#endif  // MPC_SERVER_BENCH_RUN_H_
