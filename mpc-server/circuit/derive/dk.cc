// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/derive/dk.h"

namespace mpckdc {

DeriveDk::DeriveDk(AesBits bits, Isa isa)
    : bits_(bits), blocks_(AesKeyBlocks(bits)), schedule_(bits, isa), aes_(bits, isa) {}

void DeriveDk::Reset(absl::Span<const DerivedKeyRequest> requests) {
  SecretVector<SharedBlock> bases;
  const SharedBlock* previous = nullptr;
  requests_.clear();
  for (const DerivedKeyRequest& r : requests) {
    if (r.base != previous) bases.insert(bases.end(), r.base, r.base + blocks_);
    previous = r.base;
    requests_.push_back({bases.size() / blocks_ - 1, UsageConstant(r.usage, r.kind)});
  }
  keys_.assign(requests.size() * blocks_, SharedBlock{});
  Restart();
  schedule_.Reset(bases);
  Start(schedule_, [this] { StartBlock(0); });
}

void DeriveDk::StartBlock(size_t b) {
  std::vector<AesLane> lanes;
  for (size_t i = 0; i < requests_.size(); ++i) {
    lanes.push_back({schedule_.round_keys(requests_[i].base).data(),
                     b == 0 ? nullptr : &keys_[i * blocks_ + b - 1], requests_[i].constant});
  }
  aes_.Reset(lanes);
  Start(aes_, [this, b] {
    for (size_t i = 0; i < requests_.size(); ++i) keys_[i * blocks_ + b] = aes_.output(i);
    if (b + 1 < blocks_) StartBlock(b + 1);
  });
}

absl::Span<const SharedBlock> DeriveDk::key(size_t request) const {
  return absl::MakeConstSpan(keys_).subspan(request * blocks_, blocks_);
}

Cost DeriveDk::DeclaredCost() const {
  Cost cost = schedule_.DeclaredCost();
  for (size_t b = 0; b < blocks_; ++b) cost = cost + CostOfAes(bits_, requests_.size());
  return cost;
}

}  // namespace mpckdc
