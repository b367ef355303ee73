// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/garble/draws.h"

#include "mpc-server/base/isa.h"

namespace mpckdc::garble {

Draws::Draws(const RunKey& key) : ctr_(AllCtrs().For(BestIsa())) {
  ctr_.expand(key.data(), &key_.Get());
}

void Draws::Fill(absl::Span<uint8_t> bytes) {
  const auto blocks = static_cast<uint32_t>(bytes.size() / 16);
  ctr_.fill(key_.Get(), CtrPrefix{}, position_, bytes.data(), blocks);
  position_ += blocks;
}

}  // namespace mpckdc::garble
