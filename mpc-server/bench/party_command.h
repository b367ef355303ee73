// SPDX-License-Identifier: Apache-2.0
// `mpc-bench party`: one of the three processes.
#ifndef MPC_SERVER_BENCH_PARTY_COMMAND_H_
#define MPC_SERVER_BENCH_PARTY_COMMAND_H_

#include <istream>
#include <ostream>

#include "mpc-server/bench/options.h"

namespace mpckdc::bench {

// Connects, then answers the commands of messages.h until `in` ends. Returns the exit status.
int RunParty(const Options& options, std::istream& in, std::ostream& out);

}  // namespace mpckdc::bench

#endif  // MPC_SERVER_BENCH_PARTY_COMMAND_H_
