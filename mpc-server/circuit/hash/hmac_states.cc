// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/hash/hmac_states.h"

#include "mpc-server/key/hash_plain.h"

namespace mpckdc {
namespace {

constexpr uint8_t kPads[] = {0x36, 0x5C};  // ipad, opad
constexpr const char* kSteps[] = {"compress/sha1", "compress/sha256", "compress/sha384"};

}  // namespace

HmacStates::HmacStates(HashKind hash, Isa isa)
    : hash_(hash), run_(hash, isa), initial_(HashStateBlocks(hash)) {
  const absl::Span<const uint8_t> state = HashInitialState(hash);
  for (size_t i = 0; i < state.size(); ++i) initial_[i / 16].a[i % 16] = state[i];
}

void HmacStates::Reset(absl::Span<const HmacKey> keys, Adder adder) {
  const size_t per_block = HashBlockBytes(hash_) / sizeof(Block);
  keys_ = keys.size();
  adder_ = adder;
  padded_.assign(2 * keys_ * per_block, SharedBlock{});
  lanes_.clear();
  for (const HmacKey& key : keys) {
    for (const uint8_t pad : kPads) {
      SharedBlock* block = &padded_[lanes_.size() * per_block];
      for (size_t i = 0; i < key.bytes; ++i) {
        block[i / 16].x[i % 16] = key.key[i / 16].x[i % 16];
        block[i / 16].a[i % 16] = key.key[i / 16].a[i % 16];
      }
      Block padding;
      padding.fill(pad);
      for (size_t b = 0; b < per_block; ++b) block[b] = AddPublic(block[b], padding);
      lanes_.push_back({initial_.data(), block, nullptr, HashBlockBytes(hash_), 0, false});
    }
  }
  if (keys_ != 0) run_.Start(MessageKind::kShared, adder, lanes_);
}

RoundShape HmacStates::NextRound() const {
  return {run_.MessageBytes(), 0, kSteps[static_cast<size_t>(hash_)]};
}

absl::Status HmacStates::Consume(RoundIn in) {
  run_.Consume(in.from_prev);
  return absl::OkStatus();
}

absl::Span<const SharedBlock> HmacStates::states(size_t key) const {
  const size_t blocks = 2 * HashStateBlocks(hash_);
  return run_.states().subspan(key * blocks, blocks);
}

Cost HmacStates::DeclaredCost() const { return CostOfHmacStates(hash_, adder_, keys_); }

}  // namespace mpckdc
