// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/garble/table_mac.h"

#include <cassert>
#include <cstring>

#include "mpc-server/circuit/gcm/gf128.h"

#ifdef MPCKDC_AEAD_LINK
#include <intel-ipsec-mb.h>
#endif

namespace mpckdc::garble {
namespace {

#ifdef MPCKDC_AEAD_LINK
// GHASH of many blocks at once, where the library knows the CPU; null elsewhere.
IMB_MGR* Library() {
  static IMB_MGR* const library = []() -> IMB_MGR* {
    IMB_MGR* const m = alloc_mb_mgr(0);
    if (m == nullptr) return nullptr;
    IMB_ARCH arch = IMB_ARCH_NONE;
    init_mb_mgr_auto(m, &arch);
    if (arch >= IMB_ARCH_SSE && imb_get_errno(m) == 0) return m;
    free_mb_mgr(m);
    return nullptr;
  }();
  return library;
}
#endif

Block LengthBlock(uint64_t bytes) {
  Block block{};
  for (size_t i = 16; bytes != 0; bytes >>= 8) block[--i] = static_cast<uint8_t>(bytes);
  return block;
}

}  // namespace

void PortableGhash(const Block& h, absl::Span<const uint8_t> bytes, Block& sum) {
  for (size_t at = 0; at < bytes.size(); at += sizeof(Block)) {
    Block block;
    std::memcpy(block.data(), bytes.data() + at, sizeof(block));
    sum = GfMultiply(XorBlocks(sum, block), h);
  }
}

struct TableMac::State {
  struct Keys {
    Block h, pad, sum;
#ifdef MPCKDC_AEAD_LINK
    alignas(64) gcm_key_data expanded;
#endif
  };
  Secret<Keys> keys;
  uint64_t bytes = 0;
};

TableMac::TableMac(const RunKey& key) : state_(std::make_unique<State>()) {
  State::Keys& k = state_->keys.Get();
  Draws draws(key);
  draws.Fill(absl::MakeSpan(k.h));
  draws.Fill(absl::MakeSpan(k.pad));
  k.sum = {};
#ifdef MPCKDC_AEAD_LINK
  if (Library() != nullptr) IMB_GHASH_PRE(Library(), k.h.data(), &k.expanded);
#endif
}

TableMac::~TableMac() = default;

void TableMac::Add(absl::Span<const uint8_t> bytes) {
  assert(bytes.size() % sizeof(Block) == 0);
  State::Keys& k = state_->keys.Get();
  state_->bytes += bytes.size();
#ifdef MPCKDC_AEAD_LINK
  if (Library() != nullptr) {
    IMB_GHASH(Library(), &k.expanded, bytes.data(), bytes.size(), k.sum.data(), k.sum.size());
    return;
  }
#endif
  PortableGhash(k.h, bytes, k.sum);
}

MacTag TableMac::Finish() {
  Add(LengthBlock(state_->bytes));
  const State::Keys& k = state_->keys.Get();
  return XorBlocks(k.sum, k.pad);
}

}  // namespace mpckdc::garble
