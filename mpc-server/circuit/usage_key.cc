// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/usage_key.h"

#include <numeric>

namespace mpckdc {
namespace {

constexpr uint8_t kKgByte = 0x47;

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

Block UsageConstant(uint32_t usage) {
  uint8_t constant[5];
  for (int i = 0; i < 4; ++i) constant[i] = static_cast<uint8_t>(usage >> (24 - 8 * i));
  constant[4] = kKgByte;
  return NFold16(constant);
}

DeriveUsageKeys::DeriveUsageKeys(AesBits bits, Isa isa)
    : bits_(bits),
      base_schedule_(bits, isa),
      usage_schedule_(bits, isa),
      first_(bits, isa),
      second_(bits, isa),
      tag_key_(bits, isa) {}

void DeriveUsageKeys::Reset(absl::Span<const UsageKeyRequest> requests) {
  SecretVector<SharedBlock> bases;
  constants_.clear();
  results_.clear();
  for (const UsageKeyRequest& r : requests) {
    bases.insert(bases.end(), r.base, r.base + AesKeyBlocks(bits_));
    constants_.push_back(UsageConstant(r.usage));
    results_.push_back({r.usage, {}, {}});
  }
  base_schedule_.Reset(bases);
  current_ = &base_schedule_;
  stage_ = requests.empty() ? Stage::kDone : Stage::kBaseSchedule;
}

absl::Status DeriveUsageKeys::Consume(RoundIn in) {
  if (absl::Status s = current_->Consume(in); !s.ok()) return s;
  if (current_->Done()) Advance();
  return absl::OkStatus();
}

// Kg = DK's first block (AES-128), or the first and its encryption (AES-256).
void DeriveUsageKeys::Advance() {
  const size_t n = constants_.size();
  std::vector<AesLane> lanes(n);
  switch (stage_) {
    case Stage::kBaseSchedule:
      for (size_t i = 0; i < n; ++i) {
        lanes[i] = {base_schedule_.round_keys(i).data(), nullptr, constants_[i]};
      }
      first_.Reset(lanes);
      current_ = &first_;
      stage_ = Stage::kDeriveFirst;
      return;
    case Stage::kDeriveFirst:
      if (bits_ == AesBits::k256) {
        for (size_t i = 0; i < n; ++i) {
          lanes[i] = {base_schedule_.round_keys(i).data(), &first_.output(i), Block{}};
        }
        second_.Reset(lanes);
        current_ = &second_;
        stage_ = Stage::kDeriveSecond;
        return;
      }
      [[fallthrough]];
    case Stage::kDeriveSecond: {
      SecretVector<SharedBlock> keys;
      for (size_t i = 0; i < n; ++i) {
        keys.push_back(first_.output(i));
        if (bits_ == AesBits::k256) keys.push_back(second_.output(i));
      }
      usage_schedule_.Reset(keys);
      current_ = &usage_schedule_;
      stage_ = Stage::kUsageSchedule;
      return;
    }
    case Stage::kUsageSchedule:
      for (size_t i = 0; i < n; ++i) {
        const auto keys = usage_schedule_.round_keys(i);
        results_[i].round_keys.assign(keys.begin(), keys.end());
        lanes[i] = {keys.data(), nullptr, Block{}};
      }
      tag_key_.Reset(lanes);
      current_ = &tag_key_;
      stage_ = Stage::kTagKey;
      return;
    case Stage::kTagKey:
      for (size_t i = 0; i < n; ++i) results_[i].h = tag_key_.output(i);
      stage_ = Stage::kDone;
      return;
    case Stage::kDone:
      return;
  }
}

Cost DeriveUsageKeys::DeclaredCost() const {
  const size_t n = constants_.size();
  const Cost schedule = CostOfKeySchedule(bits_, n), aes = CostOfAes(bits_, n);
  const Cost cost = schedule + aes + schedule + aes;
  return bits_ == AesBits::k256 ? cost + aes : cost;
}

}  // namespace mpckdc
