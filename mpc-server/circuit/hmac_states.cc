// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/hmac_states.h"

namespace mpckdc {
namespace {

constexpr uint8_t kPads[] = {0x36, 0x5C};  // ipad, opad

}  // namespace

void HmacStates::Reset(absl::Span<const HmacKey> keys, Adder adder) {
  const size_t per_block = HashBlockBytes(hash_) / sizeof(Block);
  blocks_.assign(2 * keys.size() * per_block, SharedBlock{});
  lanes_.clear();
  for (const HmacKey& key : keys) {
    for (const uint8_t pad : kPads) {
      SharedBlock* block = &blocks_[lanes_.size() * per_block];
      for (size_t i = 0; i < key.bytes; ++i) {
        block[i / 16].x[i % 16] = key.key[i / 16].x[i % 16];
        block[i / 16].a[i % 16] = key.key[i / 16].a[i % 16];
      }
      Block padding;
      padding.fill(pad);
      for (size_t b = 0; b < per_block; ++b) block[b] = AddPublic(block[b], padding);
      lanes_.push_back({nullptr, block});
    }
  }
  compress_.Reset(lanes_, adder);
  done_ = keys.empty();
}

absl::Status HmacStates::Consume(RoundIn in) {
  if (absl::Status s = compress_.Consume(in); !s.ok()) return s;
  if (!compress_.Done()) return absl::OkStatus();
  states_.clear();
  for (size_t i = 0; i < lanes_.size(); ++i) {
    const absl::Span<const SharedBlock> state = compress_.state(i);
    states_.insert(states_.end(), state.begin(), state.end());
  }
  done_ = true;
  return absl::OkStatus();
}

absl::Span<const SharedBlock> HmacStates::states(size_t key) const {
  const size_t blocks = 2 * HashStateBlocks(hash_);
  return absl::MakeConstSpan(states_).subspan(key * blocks, blocks);
}

}  // namespace mpckdc
