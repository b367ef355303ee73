// SPDX-License-Identifier: Apache-2.0
// A circuit run by three parties that record it (share/proof_log.h), one of which may deviate.
#ifndef MPC_SERVER_TESTING_RECORDED_RUN_H_
#define MPC_SERVER_TESTING_RECORDED_RUN_H_

#include <array>
#include <cstdint>

#include "mpc-server/testing/memory_channel.h"
#include "mpc-server/testing/proof_oracle.h"
#include "mpc-server/testing/sample_circuits.h"

namespace mpckdc {

// A bit of one party's message of one round is turned over, as the party itself has it from then
// on: it deviates and is consistent with itself.
struct BitFlip {
  int party = -1;
  size_t round = 0, byte = 0;
  int bit = 0;
};

struct RecordOptions {
  BitFlip flip;
  // What is recorded is taken away before each round in which it is more than so many bytes.
  size_t part = SIZE_MAX;
  bool log = true;
  Randomness randomness = Randomness::kKeyed;
  MemoryRing::Interceptor interceptor = nullptr;
};

struct RecordedRun {
  std::array<Recording, 3> parties;
  Cost counted;
  uint64_t recorded_bytes = 0;  // of messages
};
RecordedRun RunRecorded(const MakeCircuit& make, const RecordOptions& options);

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_RECORDED_RUN_H_
