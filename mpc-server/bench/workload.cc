// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/workload.h"

#include <sodium.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "mpc-server/testing/three_parties.h"
#include "mpc-server/testing/usage_key_oracle.h"

namespace mpckdc::bench {

Workload WorkloadOf(const BenchSetup& setup) {
  if (setup.unit == Unit::kLogin) return LoginWorkload(setup);
  return setup.unit == Unit::kHmac ? HmacWorkload(setup) : BlockWorkload(setup);
}

DeclaredSends DeclaredOfAll(const BenchSetup& setup) {
  const Workload workload = WorkloadOf(setup);
  DeclaredSends sum;
  for (int t = 0; t < Teams(setup); ++t) {
    const DeclaredSends one = workload.declared(LanesOf(setup, t));
    sum = {Together(sum.cost, one.cost), sum.frames + one.frames};
  }
  return sum;
}

Bytes Draw(const BenchSetup& setup, Stream purpose, uint64_t number, size_t bytes) {
  uint8_t key[crypto_stream_chacha20_KEYBYTES] = {};
  uint8_t nonce[crypto_stream_chacha20_NONCEBYTES];
  static_assert(sizeof(nonce) == sizeof(number));
  std::memcpy(key, &setup.seed, sizeof(setup.seed));
  key[sizeof(setup.seed)] = static_cast<uint8_t>(purpose);
  std::memcpy(nonce, &number, sizeof(number));
  Bytes out(bytes);
  if (crypto_stream_chacha20(out.data(), out.size(), nonce, key) != 0) std::abort();  // cannot be
  return out;
}

Block InputOf(size_t lane, uint32_t batch) {
  Block input{};
  const uint64_t number = lane;
  std::memcpy(input.data(), &number, sizeof(number));
  std::memcpy(&input[sizeof(number)], &batch, sizeof(batch));
  return input;
}

// Party i's share of v is (x_i, x_{i-1} + v); x_0 and x_1 are drawn, x_2 is their sum.
void ShareInto(const BenchSetup& setup, int party, uint64_t number, absl::Span<const Block> values,
               SharedBlock* out) {
  const size_t n = values.size();
  const std::vector<Block> drawn =
      BlocksOf(Draw(setup, Stream::kSharing, number, 2 * n * sizeof(Block)));
  const auto x = [&](int p, size_t k) {
    return p == 2 ? XorBlocks(drawn[k], drawn[n + k]) : drawn[static_cast<size_t>(p) * n + k];
  };
  for (size_t k = 0; k < n; ++k) {
    out[k] = {x(party, k), XorBlocks(x(PrevParty(party), k), values[k])};
  }
}

std::vector<size_t> SampleOfLanes(size_t lanes, size_t most) {
  std::vector<size_t> sample;
  const size_t count = std::min(lanes, most);
  for (size_t i = 0; i < count; ++i) {
    sample.push_back(count == 1 ? 0 : i * (lanes - 1) / (count - 1));
  }
  return sample;
}

bool SharesAreRight(const Workload& workload, uint32_t batch, absl::Span<const size_t> sample,
                    const OutputShares& shares) {
  const size_t each = workload.outputs_per_lane;
  for (const std::vector<SharedBlock>& s : shares) {
    if (s.size() != sample.size() * each) return false;
  }
  std::vector<Block> values(each);
  for (size_t i = 0; i < sample.size(); ++i) {
    for (size_t k = 0; k < each; ++k) {
      const size_t at = i * each + k;
      if (!JoinForTest({shares[0][at], shares[1][at], shares[2][at]}, &values[k])) return false;
    }
    if (!workload.is_right(sample[i], batch, values)) return false;
  }
  return !sample.empty();
}

}  // namespace mpckdc::bench
