// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/share/proof_log.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

namespace mpckdc {
namespace {

// The first slab holds what a login sends, and is of the arena's classes: not mapped for each log.
constexpr size_t kFirstSlabBytes = 256 << 10;
constexpr size_t kSlabBytes = 2 << 20;
constexpr size_t kRowAlignment = 64;
// Of the log. Below, the rows that were just written are still there when they are proved.
constexpr size_t kNearBytes = 1 << 20;

size_t FieldBytes(const ProofFieldSection& s) {
  const size_t bytes =
      kProofRoles * (2 * s.pairs + s.items) * sizeof(Block) + s.items * sizeof(uint32_t);
  return std::bit_ceil(std::max(bytes, kRowAlignment));  // few sizes, so that they are found again
}

// Keeps the first `lanes` bits of each row.
void CutLanes(uint8_t* rows, size_t count, size_t row, size_t lanes) {
  uint64_t mask[kProofLanes / 64] = {};
  for (size_t w = 0; w < lanes / 64; ++w) mask[w] = ~uint64_t{0};
  if (lanes % 64 != 0) mask[lanes / 64] = (uint64_t{1} << lanes % 64) - 1;
  for (size_t i = 0; i < count; ++i, rows += row) {
    for (size_t o = 0; o < row; o += sizeof(uint64_t)) {
      uint64_t v;
      std::memcpy(&v, rows + o, sizeof(v));
      v &= mask[o / sizeof(v)];
      std::memcpy(rows + o, &v, sizeof(v));
    }
  }
}

}  // namespace

ProofSection ProofLog::Open(Gadget gadget, size_t lanes) {
  assert(lanes != 0 && lanes <= kProofLanes);
  ProofSection section = {gadget, static_cast<uint32_t>(lanes), 0,
                          lanes <= kFewProofLanes ? 8u : 64u, false, nullptr};
  section.far = used_ >= kNearBytes;
  section.rows = Take(section.bytes());
  ++open_;
  return section;
}

void ProofLog::Close(const ProofSection& section, size_t nodes) {
  assert(open_ != 0 && nodes != 0 && nodes <= kProofNodes);
  sections_.push_back(section);
  sections_.back().nodes = static_cast<uint32_t>(nodes);
  --open_;
  const size_t row = section.row, bits = GadgetBits(section.gadget);
  message_bytes_ += nodes * bits * ((section.lanes + 7) / 8);
  for (int role = 0; role < kProofRoles; ++role) {
    if (section.lanes % (8 * row) != 0) {
      CutLanes(section.Wires(role), nodes * GadgetWires(section.gadget), row, section.lanes);
      CutLanes(section.T(role), nodes * bits, row, section.lanes);
    }
    if (nodes == kProofNodes) continue;
    const size_t missing = kProofNodes - nodes;
    std::memset(section.Wires(role, nodes), 0, missing * GadgetWires(section.gadget) * row);
    std::memset(section.T(role, nodes), 0, missing * bits * row);
  }
}

ProofFieldSection ProofLog::OpenField(size_t items, size_t pairs) {
  assert(items != 0 && pairs >= items);
  ProofFieldSection section = {static_cast<uint32_t>(items), static_cast<uint32_t>(pairs), nullptr,
                               nullptr};
  uint8_t* data = Take(FieldBytes(section));
  section.blocks = reinterpret_cast<Block*>(data);
  section.ends = reinterpret_cast<uint32_t*>(section.Sum(kProofRoles));
  ++open_;
  return section;
}

void ProofLog::CloseField(const ProofFieldSection& section) {
  assert(open_ != 0 && section.ends[section.items - 1] == section.pairs);
  fields_.push_back(section);
  --open_;
  message_bytes_ += section.items * sizeof(Block);
}

uint8_t* ProofLog::Scratch(size_t size) {
  if (scratch_.size() < size) scratch_.resize(size);
  return scratch_.data();
}

size_t ProofLog::capacity() const {
  size_t bytes = scratch_.size();
  for (const SecretBytes& slab : slabs_) bytes += slab.size();
  return bytes;
}

// What was forgotten while others were open is found again by its size; else sections lie one after
// the other in slabs.
uint8_t* ProofLog::Take(size_t size) {
  used_ += size;
  for (FreeList& list : free_) {
    if (list.size != size || list.free.empty()) continue;
    uint8_t* data = list.free.back();
    list.free.pop_back();
    return data;
  }
  while (slab_ < slabs_.size() && slabs_[slab_].size() - at_ < size) {
    ++slab_;
    at_ = 0;
  }
  if (slab_ == slabs_.size()) {
    slabs_.emplace_back(std::max(size, slabs_.empty() ? kFirstSlabBytes : kSlabBytes));
  }
  uint8_t* data = slabs_[slab_].data() + at_;
  at_ += (size + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
  return data;
}

void ProofLog::Give(uint8_t* data, size_t size) {
  used_ -= size;
  for (FreeList& list : free_) {
    if (list.size == size) return list.free.push_back(data);
  }
  free_.push_back({size, {data}});
}

void ProofLog::Rewind() {
  for (FreeList& list : free_) list.free.clear();
  slab_ = at_ = 0;
  used_ = open_ = 0;
}

void ProofLog::Clear() {
  if (open_ == 0) {
    Rewind();
  } else {
    for (const ProofSection& s : sections_) Give(s.rows, s.bytes());
    for (const ProofFieldSection& s : fields_) {
      Give(reinterpret_cast<uint8_t*>(s.blocks), FieldBytes(s));
    }
  }
  sections_.clear();
  fields_.clear();
}

void ProofLog::Reset() {
  sections_.clear();
  fields_.clear();
  message_bytes_ = 0;
  Rewind();
}

}  // namespace mpckdc
