// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/dk.h"

#include <numeric>

namespace mpckdc {
namespace {

// Bit i (from the most significant) of `in` repeated for ever, each copy rotated right by 13 more.
int RotatedBit(absl::Span<const uint8_t> in, size_t i) {
  const size_t bits = 8 * in.size();
  const size_t copy = i / bits;
  const size_t at = (i % bits + bits - 13 * copy % bits) % bits;
  return in[at / 8] >> (7 - at % 8) & 1;
}

}  // namespace

// RFC 3961, 5.1: the copies are cut into 16-byte numbers, added in one's complement. The constants
// are public.
Block NFold16(absl::Span<const uint8_t> in) {
  const size_t total = std::lcm(in.size(), sizeof(Block));
  Block sum{};
  for (size_t chunk = 0; chunk < total; chunk += sizeof(Block)) {
    int carry = 0;
    for (int pass = 0; pass < 2; ++pass) {  // the second adds the end-around carry
      for (size_t b = sizeof(Block); b-- > 0;) {
        int v = sum[b] + carry;
        if (pass == 0) {
          int byte = 0;
          for (size_t k = 0; k < 8; ++k) byte = byte << 1 | RotatedBit(in, 8 * (chunk + b) + k);
          v += byte;
        }
        sum[b] = static_cast<uint8_t>(v);
        carry = v >> 8;
      }
    }
  }
  return sum;
}

Block UsageConstant(uint32_t usage, DerivedKeyKind kind) {
  uint8_t constant[5];
  for (int i = 0; i < 4; ++i) constant[i] = static_cast<uint8_t>(usage >> (24 - 8 * i));
  constant[4] = static_cast<uint8_t>(kind);
  return NFold16(constant);
}

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
