// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/protocol/exchanged_zeros.h"

#include <cstring>

namespace mpckdc {

void ExchangedZeros::Reset(absl::Span<Circuit* const> circuits, RandomSource& random) {
  Cost cost;
  for (const Circuit* circuit : circuits) cost = Together(cost, circuit->DeclaredCost());
  random_ = &random;
  own_ = pool_.Refill(cost.bytes_to_next);
}

void ExchangedZeros::Produce(ZeroShares&, RoundOut out) {
  random_->Fill(own_);
  std::memcpy(out.to_next.data(), own_.data(), own_.size());
}

absl::Status ExchangedZeros::Consume(RoundIn in) {
  for (size_t i = 0; i < own_.size(); ++i) own_[i] ^= in.from_prev[i];
  own_ = {};
  return absl::OkStatus();
}

}  // namespace mpckdc
