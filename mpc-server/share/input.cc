// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/share/input.h"

#include <cstring>

namespace mpckdc {

void ShareInput::Reset(absl::Span<const Block> own_shares) {
  count_ = own_shares.size();
  done_ = count_ == 0;
  if (values_.size() < count_) values_.resize(count_);
  for (size_t i = 0; i < count_; ++i) values_[i] = {Block{}, own_shares[i]};
}

RoundShape ShareInput::NextRound() const { return {count_ * sizeof(Block), 0, "input shares"}; }

void ShareInput::Produce(ZeroShares& zero, RoundOut out) {
  zero.Fill(out.to_next);
  for (size_t i = 0; i < count_; ++i) {
    uint8_t* r = out.to_next.data() + i * sizeof(Block);
    for (size_t k = 0; k < sizeof(Block); ++k) r[k] ^= values_[i].a[k];
    std::memcpy(values_[i].a.data(), r, sizeof(Block));
  }
}

absl::Status ShareInput::Consume(RoundIn in) {
  for (size_t i = 0; i < count_; ++i) {
    Block r;
    std::memcpy(r.data(), in.from_prev.data() + i * sizeof(Block), sizeof(Block));
    values_[i].x = XorBlocks(values_[i].a, r);
  }
  done_ = true;
  return absl::OkStatus();
}

Cost ShareInput::DeclaredCost() const {
  return count_ == 0 ? Cost{} : Cost{1, count_ * sizeof(Block), 0};
}

}  // namespace mpckdc
