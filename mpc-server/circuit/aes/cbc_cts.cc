// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/aes/cbc_cts.h"

#include <algorithm>
#include <cstring>

namespace mpckdc {
namespace {

constexpr size_t kBlockBytes = sizeof(Block);

// Bytes of a message's last block: 1 to 16.
size_t TailBytes(size_t bytes) { return bytes - (CtsBlocks(bytes) - 1) * kBlockBytes; }

void ClearBehind(size_t bytes, SharedBlock* block) {
  std::fill(block->x.begin() + bytes, block->x.end(), 0);
  std::fill(block->a.begin() + bytes, block->a.end(), 0);
}
void ClearUpTo(size_t bytes, SharedBlock* block) {
  std::fill_n(block->x.begin(), bytes, 0);
  std::fill_n(block->a.begin(), bytes, 0);
}

}  // namespace

// --- encryption ----------------------------------------------------------------------------------

CtsEncrypt::CtsEncrypt(AesBits bits, Isa isa) : bits_(bits), aes_(bits, isa) {}

void CtsEncrypt::Reset(absl::Span<const CtsEncryptLane> lanes, Sbox sbox) {
  sbox_ = sbox;
  lanes_.clear();
  blocks_.clear();
  for (const CtsEncryptLane& lane : lanes) {
    lanes_.push_back({lane.round_keys, lane.bytes, blocks_.size()});
    const size_t blocks = lanes_.back().blocks();
    blocks_.insert(blocks_.end(), lane.text, lane.text + blocks);
    ClearBehind(TailBytes(lane.bytes), &blocks_.back());
  }
  Restart();
  StartStep(0);
}

// Block `step` of each lane that is so long.
void CtsEncrypt::StartStep(size_t step) {
  active_.clear();
  aes_lanes_.clear();
  for (size_t i = 0; i < lanes_.size(); ++i) {
    const Lane& lane = lanes_[i];
    if (step >= lane.blocks()) continue;
    SharedBlock* block = &blocks_[lane.first + step];
    if (step != 0) *block = *block ^ block[-1];
    active_.push_back(i);
    aes_lanes_.push_back({lane.round_keys, block, {}});
  }
  if (active_.empty()) return;
  aes_.Reset(aes_lanes_, sbox_);
  Start(aes_, [this, step] { EndStep(step); });
}

void CtsEncrypt::EndStep(size_t step) {
  for (size_t j = 0; j < active_.size(); ++j) {
    const Lane& lane = lanes_[active_[j]];
    blocks_[lane.first + step] = aes_.output(j);
    if (step + 1 == lane.blocks()) Steal(lane);
  }
  StartStep(step + 1);
}

// The last two blocks change places, and Cn-1 is cut.
void CtsEncrypt::Steal(const Lane& lane) {
  if (lane.blocks() == 1) return;
  SharedBlock* last = &blocks_[lane.first + lane.blocks() - 1];
  std::swap(last[-1], *last);
  ClearBehind(TailBytes(lane.bytes), last);
}

absl::Span<const SharedBlock> CtsEncrypt::ciphertext(size_t lane) const {
  return absl::MakeConstSpan(blocks_).subspan(lanes_[lane].first, lanes_[lane].blocks());
}

Cost CtsEncrypt::DeclaredCost() const {
  std::vector<size_t> bytes;
  for (const Lane& lane : lanes_) bytes.push_back(lane.bytes);
  return CostOfCtsEncrypt(bits_, bytes, sbox_);
}

Cost CostOfCtsEncrypt(AesBits bits, absl::Span<const size_t> bytes, Sbox sbox) {
  Cost cost;
  for (size_t step = 0;; ++step) {
    const auto active = std::count_if(bytes.begin(), bytes.end(),
                                      [step](size_t n) { return step < CtsBlocks(n); });
    if (active == 0) return cost;
    cost = cost + CostOfAes(bits, static_cast<size_t>(active), sbox);
  }
}

// --- decryption ----------------------------------------------------------------------------------

CtsDecrypt::CtsDecrypt(AesBits bits, Isa isa) : bits_(bits), aes_(bits, isa) {}

void CtsDecrypt::Reset(absl::Span<const CtsDecryptLane> lanes, Sbox sbox) {
  sbox_ = sbox;
  lanes_.clear();
  public_.clear();
  for (const CtsDecryptLane& lane : lanes) {
    const size_t bytes = lane.ciphertext.size(), blocks = CtsBlocks(bytes);
    lanes_.push_back({lane.round_keys, bytes, public_.size(), kBlockBytes - TailBytes(bytes)});
    for (size_t at = 0; at < bytes; at += kBlockBytes) {
      Block& block = public_.emplace_back();
      std::memcpy(block.data(), &lane.ciphertext[at], std::min(kBlockBytes, bytes - at));
    }
    if (blocks > 1) std::swap(public_[public_.size() - 2], public_.back());
  }
  // AES^-1 of every block that is known. The others' lanes follow when these are done.
  aes_lanes_.clear();
  for (const Lane& lane : lanes_) {
    for (size_t b = 0; b < lane.blocks(); ++b) {
      if (lane.stolen != 0 && b + 2 == lane.blocks()) continue;
      aes_lanes_.push_back({lane.round_keys, nullptr, public_[lane.first + b]});
    }
  }
  text_.assign(public_.size(), SharedBlock{});
  Restart();
  aes_.Reset(aes_lanes_, sbox_);
  Start(aes_, [this] { EndBlocks(); });
}

// With D = AES^-1(Cn): the message's t bytes of Cn-1 give Pn = D + Cn-1 there, and behind them,
// where Pn is padding, Cn-1 = D.
void CtsDecrypt::EndBlocks() {
  size_t next = 0;
  stolen_.clear();
  for (const Lane& lane : lanes_) {
    for (size_t b = 0; b < lane.blocks(); ++b) {
      if (lane.stolen != 0 && b + 2 == lane.blocks()) continue;
      const size_t at = lane.first + b;
      const SharedBlock plain = aes_.output(next++);
      text_[at] = b == 0 ? plain : AddPublic(plain, public_[at - 1]);
      if (lane.stolen == 0 || b + 1 != lane.blocks()) continue;
      SharedBlock stolen = plain;
      ClearUpTo(kBlockBytes - lane.stolen, &stolen);
      stolen_.push_back(AddPublic(stolen, public_[at - 1]));
      ClearBehind(kBlockBytes - lane.stolen, &text_[at]);
    }
  }
  StartStolen();
}

void CtsDecrypt::StartStolen() {
  aes_lanes_.clear();
  for (const Lane& lane : lanes_) {
    if (lane.stolen == 0) continue;
    aes_lanes_.push_back({lane.round_keys, &stolen_[aes_lanes_.size()], {}});
  }
  aes_.Reset(aes_lanes_, sbox_);
  Start(aes_, [this] {
    size_t next = 0;
    for (const Lane& lane : lanes_) {
      if (lane.stolen == 0) continue;
      const size_t at = lane.first + lane.blocks() - 2;
      const SharedBlock plain = aes_.output(next++);
      text_[at] = at == lane.first ? plain : AddPublic(plain, public_[at - 1]);
    }
  });
}

absl::Span<const SharedBlock> CtsDecrypt::text(size_t lane) const {
  return absl::MakeConstSpan(text_).subspan(lanes_[lane].first, lanes_[lane].blocks());
}

Cost CtsDecrypt::DeclaredCost() const {
  std::vector<size_t> bytes;
  for (const Lane& lane : lanes_) bytes.push_back(lane.bytes);
  return CostOfCtsDecrypt(bits_, bytes, sbox_);
}

// All blocks but those that end in stolen bytes, and then these.
Cost CostOfCtsDecrypt(AesBits bits, absl::Span<const size_t> bytes, Sbox sbox) {
  size_t blocks = 0, stolen = 0;
  for (const size_t n : bytes) {
    const bool steals = n > kBlockBytes && n % kBlockBytes != 0;
    blocks += CtsBlocks(n) - (steals ? 1 : 0);
    stolen += steals ? 1 : 0;
  }
  return CostOfAes(bits, blocks, sbox) + CostOfAes(bits, stolen, sbox);
}

}  // namespace mpckdc
