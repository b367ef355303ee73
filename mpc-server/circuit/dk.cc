// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/dk.h"

namespace mpckdc {

DeriveDk::DeriveDk(AesBits bits, Isa isa)
    : bits_(bits), schedule_(bits, isa), first_(bits, isa), second_(bits, isa) {}

void DeriveDk::Reset(absl::Span<const DerivedKeyRequest> requests) {
  SecretVector<SharedBlock> bases;
  const SharedBlock* previous = nullptr;
  requests_.clear();
  for (const DerivedKeyRequest& r : requests) {
    if (r.base != previous) bases.insert(bases.end(), r.base, r.base + AesKeyBlocks(bits_));
    previous = r.base;
    requests_.push_back({bases.size() / AesKeyBlocks(bits_) - 1, UsageConstant(r.usage, r.kind)});
  }
  schedule_.Reset(bases);
  current_ = &schedule_;
  stage_ = requests.empty() ? Stage::kDone : Stage::kSchedule;
}

absl::Status DeriveDk::Consume(RoundIn in) {
  if (absl::Status s = current_->Consume(in); !s.ok()) return s;
  if (current_->Done()) Advance();
  return absl::OkStatus();
}

// Of the constants, or of what `previous` made of them.
std::vector<AesLane> DeriveDk::Lanes(const AesEncrypt* previous) const {
  std::vector<AesLane> lanes;
  for (size_t i = 0; i < requests_.size(); ++i) {
    lanes.push_back({schedule_.round_keys(requests_[i].base).data(),
                     previous == nullptr ? nullptr : &previous->output(i), requests_[i].constant});
  }
  return lanes;
}

void DeriveDk::Advance() {
  switch (stage_) {
    case Stage::kSchedule:
      first_.Reset(Lanes(nullptr));
      current_ = &first_;
      stage_ = Stage::kFirst;
      return;
    case Stage::kFirst:
      if (bits_ == AesBits::k256) {
        second_.Reset(Lanes(&first_));
        current_ = &second_;
        stage_ = Stage::kSecond;
        return;
      }
      [[fallthrough]];
    case Stage::kSecond:
      keys_.clear();
      for (size_t i = 0; i < requests_.size(); ++i) {
        keys_.push_back(first_.output(i));
        if (bits_ == AesBits::k256) keys_.push_back(second_.output(i));
      }
      stage_ = Stage::kDone;
      return;
    case Stage::kDone:
      return;
  }
}

absl::Span<const SharedBlock> DeriveDk::key(size_t request) const {
  return absl::MakeConstSpan(keys_).subspan(request * AesKeyBlocks(bits_), AesKeyBlocks(bits_));
}

Cost DeriveDk::DeclaredCost() const {
  if (requests_.empty()) return {};
  const Cost aes = CostOfAes(bits_, requests_.size());
  const Cost cost = CostOfKeySchedule(bits_, schedule_.key_count()) + aes;
  return bits_ == AesBits::k256 ? cost + aes : cost;
}

}  // namespace mpckdc
