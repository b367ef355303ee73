// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/derive/kdf_hmac_sha2.h"

#include <algorithm>

namespace mpckdc {
KdfHmacSha2::KdfHmacSha2(const Enctype& enctype, Adder adder, Isa isa)
    : enctype_(enctype), adder_(adder), states_(enctype.hash, isa), hmac_(enctype.hash, isa) {}

void KdfHmacSha2::Reset(absl::Span<const DerivedKeyRequest> requests) {
  std::vector<HmacKey> bases;
  requests_.clear();
  size_t blocks = 0;
  for (const DerivedKeyRequest& r : requests) {
    if (bases.empty() || bases.back().key != r.base) {
      bases.push_back({r.base, enctype_.key_bytes});
    }
    const size_t bytes = DerivedKeyBytes(enctype_, r.kind);
    requests_.push_back({bases.size() - 1, bytes, KdfMessage(r.usage, r.kind, bytes), blocks});
    blocks += (bytes + sizeof(Block) - 1) / sizeof(Block);
  }
  keys_.assign(blocks, SharedBlock{});
  Restart();
  states_.Reset(bases, adder_);
  Start(states_, [this] { StartHmacs(); });
}

void KdfHmacSha2::StartHmacs() {
  std::vector<HmacLane> lanes;
  for (const Request& r : requests_) {
    lanes.push_back({states_.states(r.base).data(), r.message, nullptr, 0});
  }
  hmac_.Reset(lanes, adder_);
  Start(hmac_, [this] { KeepKeys(); });
}

void KdfHmacSha2::KeepKeys() {
  for (size_t i = 0; i < requests_.size(); ++i) {
    const Request& r = requests_[i];
    const absl::Span<const SharedBlock> digest = hmac_.digest(i);
    for (size_t b = 0; b < r.bytes; b += sizeof(Block)) {
      const size_t bytes = std::min(sizeof(Block), r.bytes - b);
      const SharedBlock& from = digest[b / sizeof(Block)];
      SharedBlock& to = keys_[r.first + b / sizeof(Block)];
      std::copy_n(from.x.begin(), bytes, to.x.begin());
      std::copy_n(from.a.begin(), bytes, to.a.begin());
    }
  }
}

absl::Span<const SharedBlock> KdfHmacSha2::key(size_t request) const {
  const Request& r = requests_[request];
  return absl::MakeConstSpan(keys_).subspan(r.first, (r.bytes + sizeof(Block) - 1) / sizeof(Block));
}

Cost KdfHmacSha2::DeclaredCost() const {
  const std::vector<HmacShape> shapes(requests_.size(), {kKdfMessageBytes, false});
  return states_.DeclaredCost() + CostOfHmac(enctype_.hash, adder_, shapes);
}

}  // namespace mpckdc
