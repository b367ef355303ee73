// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/setup.h"

#include "mpc-server/bitslice/slices.h"
#include "mpc-server/circuit/aes_kernels.h"

namespace mpckdc::bench {

absl::string_view ChannelName(Channel channel) {
  switch (channel) {
    case Channel::kTls:
      return "tls";
    case Channel::kMemory:
      return "memory";
  }
  return "?";
}

absl::string_view PlacementName(Placement placement) {
  return placement == Placement::kProcesses ? "processes" : "threads";
}

absl::string_view SboxName(Sbox sbox) {
  return sbox == Sbox::kThroughput ? "throughput" : "latency";
}

absl::string_view WorkName(Work work) { return work == Work::kAes ? "aes" : "floor"; }

std::vector<size_t> RoundSizes(AesBits bits, Sbox sbox, size_t lanes) {
  constexpr size_t kBytesOfBlock = 16;
  std::vector<size_t> sizes;
  for (size_t step = 0; step < SboxStages(sbox) * AesRounds(bits); ++step) {
    sizes.push_back(WireBytes(lanes, kBytesOfBlock * SlicesPerByte(StageAt(sbox, step))));
  }
  return sizes;
}

}  // namespace mpckdc::bench
