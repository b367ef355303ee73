// SPDX-License-Identifier: Apache-2.0
// What the local part of AES on shares costs one party, part by part: the engine's own functions on
// the working set of a batch, in the engine's order, without a channel.
//
// A round of the real protocol makes zero shares and runs one stage's kernel, group by group; the
// messages then change places. Here the neighbour's message is a copy of the own one: the results
// mean nothing, the instructions and the memory traffic are the real ones (no branch and no address
// depends on a share). The copy stands for the channel and is not counted.
#ifndef MPC_SERVER_BENCH_KERNEL_COSTS_H_
#define MPC_SERVER_BENCH_KERNEL_COSTS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "mpc-server/circuit/aes_circuit.h"

namespace mpckdc {

struct KernelCostOptions {
  AesBits bits = AesBits::k128;
  Isa isa = BestIsa();
  Sbox sbox = Sbox::kThroughput;
  size_t batch = 4096;     // blocks
  size_t key_run = 1;      // neighbouring lanes that share one key; 1: a key per lane
  // Zero shares before each kernel and not inside it (AesKernels::makes_zeros): dearer in total,
  // but then they have a part of their own.
  bool zeros_apart = false;
  size_t repeats = 15;     // runs of the whole batch; one more, not counted, warms up
};

// Over the runs.
struct Spread {
  double min = 0;
  double median = 0;
  double max = 0;
};

// Per block and party. Cycles are those of the time stamp counter, which runs at a fixed rate; they
// are 0 on machines without one.
struct KernelCost {
  // "round keys", "input", "output", "zero shares", "aes/norm", .., "total". Without zeros_apart a
  // stage's part has its zero shares, and "zero shares" is what there is to do around them.
  std::string part;
  Spread ns;
  Spread cycles;
};

// Times are of the wall clock: a run that another process interrupted shows in the maximum.
std::vector<KernelCost> MeasureKernelCosts(const KernelCostOptions& options);

}  // namespace mpckdc

#endif  // MPC_SERVER_BENCH_KERNEL_COSTS_H_
