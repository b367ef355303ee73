// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/hash/bit_log.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace mpckdc {
namespace {

bool IsOpened(BitOp op) { return op >= BitOp::kMajority; }
size_t ProductsOf(const BitSection& s) { return s.op == BitOp::kProducts ? s.products : 1; }
size_t ArgsOf(const BitSection& s) {
  return s.op == BitOp::kProducts ? s.linears + 2 * s.products : 3;
}

// `count` rows, `from_row` bytes apart, into rows of `row` bytes.
void XorRows(uint8_t* to, size_t row, const uint8_t* from, size_t from_row, size_t count) {
  for (size_t i = 0; i < count; ++i, to += row, from += from_row) {
    for (size_t o = 0; o < row; o += sizeof(uint64_t)) {
      uint64_t a, b;
      std::memcpy(&a, to + o, sizeof(a));
      std::memcpy(&b, from + o, sizeof(b));
      a ^= b;
      std::memcpy(to + o, &a, sizeof(a));
    }
  }
}

}  // namespace

void BitLog::Reset() {
  if (log_ == nullptr) return;
  log_ = nullptr;
  for (Group& g : groups_) {
    g.by_products = {};
    g.pieces.clear();
  }
}

void BitLog::Open(ProofLog& log, const BitKernels& kernels, absl::Span<const BitSection> sections,
                  const uint16_t* args, const BitGroup& group) {
  log_ = &log;
  row_ = kernels.row;
  if (groups_.size() <= group.number) groups_.resize(group.number + 1);
  Group& g = groups_[group.number];
  g.pieces.clear();
  BitRecord to = {group.own, group.next, {}, {}};
  for (const BitSection& s : sections) {
    if (!IsOpened(s.op)) continue;
    assert(ProductsOf(s) >= 1 && ProductsOf(s) <= kMaxGadgetProducts);
    UnderWay& at = g.by_products[ProductsOf(s) - 1];
    for (size_t done = 0; done < s.count;) {
      if (at.nodes == 0) at.section = log.Open(ProductsGadget(ProductsOf(s)), group.lanes);
      const size_t count = std::min(s.count - done, kProofNodes - at.nodes);
      for (int role = 0; role < kProofRoles; ++role) {
        to.wires[role] = at.section.Wires(role, at.nodes);
        to.t[role] = at.section.T(role, at.nodes);
      }
      const auto record = at.section.row == row_ ? kernels.record : kBitRecordFewOfMany;
      record(s, args + s.at + done * ArgsOf(s), count, group.slots, to);
      to.own += count * row_;
      to.next += count * row_;
      g.pieces.push_back({at.section, at.nodes, count});
      at.nodes = (at.nodes + count) % kProofNodes;
      done += count;
    }
  }
}

void BitLog::Receive(size_t group, const uint8_t* received) {
  if (log_ == nullptr) return;
  for (const Piece& p : groups_[group].pieces) {
    XorRows(p.section.T(kProofLeft, p.node), p.section.row, received, row_, p.count);
    received += p.count * row_;
    if (p.node + p.count == kProofNodes) log_->Close(p.section, kProofNodes);
  }
}

void BitLog::Finish(size_t group) {
  if (log_ == nullptr) return;
  for (UnderWay& at : groups_[group].by_products) {
    if (at.nodes != 0) log_->Close(at.section, at.nodes);
    at.nodes = 0;
  }
}

}  // namespace mpckdc
