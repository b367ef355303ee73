// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/checks.h"

#include <cassert>
#include <cstring>

#include "mpc-server/base/status_macros.h"
#include "mpc-server/circuit/gcm/gf128.h"

namespace mpckdc {

ZeroCheck::ZeroCheck(PartyContext& party, const char* what, Isa isa)
    : party_(party), isa_(isa), open_(party.party(), what) {}

void ZeroCheck::Reset(absl::Span<const absl::Span<const SharedBlock>> items) {
  ends_.clear();
  log_.Reset();
  blocks_.clear();
  for (const absl::Span<const SharedBlock>& item : items) {
    assert(!item.empty());
    blocks_.insert(blocks_.end(), item.begin(), item.end());
    ends_.push_back(blocks_.size());
  }
  rho_.resize(blocks_.size());
  party_.DrawRandom(absl::MakeSpan(rho_));
  products_.assign(items.size(), SharedBlock{});
  zero_.assign(items.size(), 0);
  state_ = items.empty() ? State::kDone : State::kMultiply;
}

RoundShape ZeroCheck::NextRound() const {
  if (state_ == State::kOpen) return open_.NextRound();
  return {sizeof(Block) * ends_.size(), 0, "zero check/multiply"};
}

void ZeroCheck::Produce(ZeroShares& zero, RoundOut out) {
  if (state_ == State::kOpen) return open_.Produce(zero, out);
  const bool recorded = zero.log() != nullptr;
  if (recorded) {
    log_.Begin(*zero.log(), ends_.size(), blocks_.size(), zero.FillApart(out.to_next));
  } else {
    zero.Fill(out.to_next);
  }
  size_t j = 0;
  for (size_t i = 0; i < ends_.size(); ++i) {
    uint8_t* r = out.to_next.data() + sizeof(Block) * i;
    for (; j < ends_[i]; ++j) {
      const Block term = XorBlocks(GfMultiply(rho_[j].x, blocks_[j].x, isa_),
                                   GfMultiply(rho_[j].a, blocks_[j].a, isa_));
      for (size_t b = 0; b < sizeof(Block); ++b) r[b] ^= term[b];
      if (recorded) log_.Pair(rho_[j], blocks_[j]);
    }
    if (recorded) log_.EndItem();
  }
  sent_ = out.to_next;
}

absl::Status ZeroCheck::Consume(RoundIn in) {
  if (state_ == State::kMultiply) {
    log_.Receive(in.from_prev);
    for (size_t i = 0; i < products_.size(); ++i) {
      Block received;
      std::memcpy(received.data(), in.from_prev.data() + sizeof(Block) * i, sizeof(Block));
      std::memcpy(products_[i].a.data(), sent_.data() + sizeof(Block) * i, sizeof(Block));
      products_[i].x = XorBlocks(products_[i].a, received);
    }
    open_.Reset(products_);
    state_ = State::kOpen;
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(open_.Consume(in));
  for (size_t i = 0; i < zero_.size(); ++i) zero_[i] = open_.values()[i] == Block{};
  state_ = State::kDone;
  return absl::OkStatus();
}

Cost ZeroCheck::DeclaredCost() const { return CostOfZeroCheck(ends_.size()); }

}  // namespace mpckdc
