// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/gcm/ghash.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

#include "mpc-server/circuit/gcm/gf128.h"

namespace mpckdc {
namespace {

void AppendPadded(absl::Span<const uint8_t> data, std::vector<Block>& out) {
  for (size_t at = 0; at < data.size(); at += sizeof(Block)) {
    Block block{};
    std::memcpy(block.data(), data.data() + at, std::min(sizeof(Block), data.size() - at));
    out.push_back(block);
  }
}

void PutBitLength(uint64_t bytes, uint8_t* out) {
  for (int i = 0; i < 8; ++i) out[i] = static_cast<uint8_t>(8 * bytes >> (56 - 8 * i));
}

}  // namespace

std::vector<Block> GhashBlocks(absl::Span<const uint8_t> aad,
                               absl::Span<const uint8_t> ciphertext) {
  std::vector<Block> blocks;
  blocks.reserve(GhashBlockCount(aad.size(), ciphertext.size()));
  AppendPadded(aad, blocks);
  AppendPadded(ciphertext, blocks);
  Block lengths;
  PutBitLength(aad.size(), lengths.data());
  PutBitLength(ciphertext.size(), lengths.data() + 8);
  blocks.push_back(lengths);
  return blocks;
}

// Odd powers 2^level + j, j odd below 2^level, up to each item's count.
size_t GhashPowers::ProductsAt(uint32_t level) const {
  const uint32_t split = 1u << level;
  size_t n = 0;
  for (const Item& item : items_) {
    if (item.count > split) n += std::min((item.count - split + 1) / 2, split / 2);
  }
  return n;
}

// Even powers above `limit`/2 up to `limit`, from the halves.
void GhashPowers::SquareUpTo(const Item& item, uint32_t limit) {
  SharedBlock* h = powers_.data() + item.offset - 1;  // h[p] is the power p
  for (uint32_t p = limit / 2 + 2 - limit / 2 % 2; p <= std::min(limit, item.count); p += 2) {
    h[p] = {GfSquare(h[p / 2].x, isa_), GfSquare(h[p / 2].a, isa_)};
  }
}

void GhashPowers::Reset(absl::Span<const GhashPowersRequest> requests) {
  items_.clear();
  log_.Reset();
  largest_ = 0;
  level_ = 1;
  size_t total = 0;
  for (const GhashPowersRequest& r : requests) {
    assert(r.count <= 1u << 24);
    items_.push_back({total, r.count});
    total += r.count;
    largest_ = std::max(largest_, r.count);
  }
  powers_.resize(total);
  for (size_t i = 0; i < items_.size(); ++i) {
    if (items_[i].count == 0) continue;
    powers_[items_[i].offset] = requests[i].h;
    SquareUpTo(items_[i], 2);
  }
}

absl::Span<const SharedBlock> GhashPowers::powers(size_t request) const {
  const Item& item = items_[request];
  return absl::MakeConstSpan(powers_).subspan(item.offset, item.count);
}

bool GhashPowers::Done() const { return largest_ <= 1u << level_; }

RoundShape GhashPowers::NextRound() const {
  return {sizeof(Block) * ProductsAt(level_), 0, "ghash powers"};
}

// Calls f(share of H^split, share of H^j, where to put H^(split + j)) in the message's order.
template <class F>
void ForEachProduct(absl::Span<SharedBlock> powers, uint32_t split, F f) {
  const auto count = static_cast<uint32_t>(powers.size());
  for (uint32_t j = 1; j < split && split + j <= count; j += 2) {
    f(powers[split - 1], powers[j - 1], powers[split + j - 1]);
  }
}

void GhashPowers::Produce(ZeroShares& zero, RoundOut out) {
  const bool recorded = zero.log() != nullptr;
  if (recorded) {
    const size_t products = ProductsAt(level_);
    log_.Begin(*zero.log(), products, products, zero.FillApart(out.to_next));
  } else {
    zero.Fill(out.to_next);
  }
  uint8_t* r = out.to_next.data();
  for (const Item& item : items_) {
    ForEachProduct(absl::MakeSpan(powers_).subspan(item.offset, item.count), 1u << level_,
                   [&](const SharedBlock& s, const SharedBlock& t, SharedBlock&) {
                     const Block sum =
                         XorBlocks(GfMultiply(s.x, t.x, isa_), GfMultiply(s.a, t.a, isa_));
                     for (uint8_t b : sum) *r++ ^= b;
                     if (!recorded) return;
                     log_.Pair(s, t);
                     log_.EndItem();
                   });
  }
  sent_ = out.to_next;
}

absl::Status GhashPowers::Consume(RoundIn in) {
  log_.Receive(in.from_prev);
  size_t at = 0;
  for (const Item& item : items_) {
    ForEachProduct(absl::MakeSpan(powers_).subspan(item.offset, item.count), 1u << level_,
                   [&](const SharedBlock&, const SharedBlock&, SharedBlock& product) {
                     std::memcpy(product.a.data(), sent_.data() + at, sizeof(Block));
                     Block received;
                     std::memcpy(received.data(), in.from_prev.data() + at, sizeof(Block));
                     product.x = XorBlocks(product.a, received);
                     at += sizeof(Block);
                   });
    SquareUpTo(item, 2u << level_);
  }
  ++level_;
  return absl::OkStatus();
}

Cost GhashPowers::DeclaredCost() const {
  Cost cost;
  for (uint32_t level = 1; largest_ > 1u << level; ++level) {
    cost.rounds += 1;
    cost.bytes_to_next += sizeof(Block) * ProductsAt(level);
  }
  return cost;
}

SharedBlock GhashLinear(absl::Span<const Block> blocks, absl::Span<const SharedBlock> powers,
                        Isa isa) {
  assert(powers.size() >= blocks.size());
  SharedBlock sum;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const SharedBlock& h = powers[blocks.size() - 1 - i];
    sum = sum ^ SharedBlock{GfMultiply(blocks[i], h.x, isa), GfMultiply(blocks[i], h.a, isa)};
  }
  return sum;
}

}  // namespace mpckdc
