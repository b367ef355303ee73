// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/testing/usage_key_oracle.h"

#include <cstring>

#include "mpc-server/key/usage_keys.h"

namespace mpckdc {

std::vector<Block> BlocksOf(absl::Span<const uint8_t> bytes) {
  std::vector<Block> blocks((bytes.size() + sizeof(Block) - 1) / sizeof(Block), Block{});
  if (!bytes.empty()) std::memcpy(blocks.data(), bytes.data(), bytes.size());
  return blocks;
}

PlainUsage PlainUsageOf(const Enctype& enctype, absl::Span<const uint8_t> base, uint32_t usage) {
  const ExpandedUsage expanded = *ExpandUsage(enctype, base, usage);
  PlainUsage plain{BlocksOf(expanded.round_keys), BlocksOf(expanded.mac_states)};
  if (enctype.is_gcm()) plain.h = BlocksOf(expanded.h)[0];
  return plain;
}

}  // namespace mpckdc
