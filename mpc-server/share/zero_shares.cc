// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/share/zero_shares.h"

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

absl::Span<uint8_t> ZeroPool::Refill(size_t size) {
  if (bytes_.size() < size) bytes_.resize(size);
  at_ = 0;
  size_ = size;
  return absl::MakeSpan(bytes_).first(size);
}

void ZeroPool::Take(absl::Span<uint8_t> out) {
  if (out.size() > size_ - at_) {
    std::fprintf(stderr, "zero shares: %zu bytes wanted, %zu exchanged and unused\n", out.size(),
                 size_ - at_);
    std::abort();
  }
  if (!out.empty()) std::memcpy(out.data(), bytes_.data() + at_, out.size());
  at_ += out.size();
}

}  // namespace mpckdc
