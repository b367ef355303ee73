// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/share/zero_shares.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace mpckdc {

absl::string_view RandomnessName(Randomness randomness) {
  switch (randomness) {
    case Randomness::kKeyed:
      return "keyed";
    case Randomness::kExchanged:
      return "exchanged";
  }
  return "unknown";
}

absl::Span<uint8_t> ZeroPool::Refill(size_t size, bool apart) {
  if (bytes_.size() < size) bytes_.resize(size);
  if (apart && received_.size() < size) received_.resize(size);
  at_ = 0;
  size_ = size;
  apart_ = apart;
  return absl::MakeSpan(bytes_).first(size);
}

void ZeroPool::Add(absl::Span<const uint8_t> received) {
  if (apart_) {
    std::copy(received.begin(), received.end(), received_.begin());
  } else {
    for (size_t i = 0; i < size_; ++i) bytes_[i] ^= received[i];
  }
}

size_t ZeroPool::Advance(size_t size) {
  if (size > size_ - at_) {
    std::fprintf(stderr, "zero shares: %zu bytes wanted, %zu exchanged and unused\n", size,
                 size_ - at_);
    std::abort();
  }
  at_ += size;
  return at_ - size;
}

void ZeroPool::Take(absl::Span<uint8_t> out) {
  const size_t at = Advance(out.size());
  if (!out.empty()) std::memcpy(out.data(), bytes_.data() + at, out.size());
  if (!apart_) return;
  for (size_t i = 0; i < out.size(); ++i) out[i] ^= received_[at + i];
}

void ZeroPool::TakeApart(const StreamsApart& out, size_t size) {
  const size_t at = Advance(size);
  for (size_t i = 0; i < size; ++i) {
    out.own[i] = received_[at + i];
    out.next[i] = bytes_[at + i];
    out.sum[i] = out.own[i] ^ out.next[i];
  }
}

ZeroHalves ZeroShares::FillApart(absl::Span<uint8_t> out) {
  uint8_t* halves = log_->Scratch(2 * out.size());
  const StreamsApart to = {halves, halves + out.size(), out.data()};
  if (pool_ != nullptr) {
    pool_->TakeApart(to, out.size());
  } else {
    streams_->FillZeroApart(place_, to, out.size());
    place_.position += static_cast<uint32_t>((out.size() + 15) / 16);
  }
  return {to.own, to.next};
}

}  // namespace mpckdc
