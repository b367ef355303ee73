// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/setup.h"

#include "mpc-server/compute/batch_work.h"
#ifdef MPCKDC_AEAD_LINK
#include "mpc-server/wire/record_cipher.h"
#endif

namespace mpckdc::bench {

// libipsec-mb, and so the records, exist for some machines only.
bool ChannelIsBuilt(Channel channel) {
#ifdef MPCKDC_AEAD_LINK
  return channel != Channel::kAead || RecordCipher::Available();
#else
  return channel != Channel::kAead;
#endif
}
Channel DefaultChannel() {
  return ChannelIsBuilt(Channel::kAead) ? Channel::kAead : Channel::kTls;
}

Sbox SboxOf(const BenchSetup& setup) {
  const size_t teams = static_cast<size_t>(Teams(setup));
  return setup.sbox.value_or(BatchWork::SboxOf((setup.lanes + teams - 1) / teams));
}

namespace {

// With the round that exchanges the zero shares first, where there is one.
Cost AsRun(const BenchSetup& setup, const Cost& cost) {
  if (setup.randomness == Randomness::kKeyed) return cost;
  return {cost.rounds + 1, 2 * cost.bytes_to_next, cost.bytes_to_prev};
}

}  // namespace

void DeclaredSends::Add(const BenchSetup& setup, const Cost& more, uint64_t to_prev) {
  const Cost run = AsRun(setup, more);
  cost = cost + run;
  frames += run.rounds + to_prev;
}

DeclaredSends DeclaredOfBlocks(const BenchSetup& setup, AesBits bits, size_t blocks, Sbox sbox,
                               const Cost& others) {
  DeclaredSends sends;
  Cost beside = others;
  for (const std::vector<size_t>& chunks : ChunksOf(setup, blocks)) {
    std::vector<Cost> slots(setup.slots);
    for (size_t c = 0; c < chunks.size(); ++c) {
      const Cost chunk = Together(CostOfAes(bits, chunks[c], sbox), std::exchange(beside, Cost{}));
      if (chunk.rounds == 0) continue;
      const Cost run = AsRun(setup, chunk);
      slots[c % setup.slots] = slots[c % setup.slots] + run;
      sends.frames += run.rounds;
    }
    for (const Cost& slot : slots) sends.cost = Together(sends.cost, slot);
  }
  return sends;
}

}  // namespace mpckdc::bench
