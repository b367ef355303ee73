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
  g.parts = ProofSectionsFor(group.lanes);
  const uint8_t *own = group.own, *next = group.next;
  for (const BitSection& s : sections) {
    if (!IsOpened(s.op)) continue;
    assert(ProductsOf(s) >= 1 && ProductsOf(s) <= kMaxGadgetProducts);
    UnderWay& at = g.by_products[ProductsOf(s) - 1];
    for (size_t done = 0; done < s.count;) {
      for (size_t part = 0; at.nodes == 0 && part < g.parts; ++part) {
        at.sections[part] =
            log.Open(ProductsGadget(ProductsOf(s)), ProofLanesOf(group.lanes, part));
      }
      const size_t count = std::min(s.count - done, kProofNodes - at.nodes);
      for (size_t part = 0; part < g.parts; ++part) {
        const ProofSection& section = at.sections[part];
        const size_t o = part * kFewProofLanes / 8;
        BitRecord to = {own + o, next + o, {}, {}};
        for (int role = 0; role < kProofRoles; ++role) {
          to.wires[role] = section.Wires(role, at.nodes);
          to.t[role] = section.T(role, at.nodes);
        }
        const auto wide = section.far ? kernels.record_far : kernels.record;
        const auto record = section.row == row_ ? wide : kBitRecordFewOfMany;
        record(s, args + s.at + done * ArgsOf(s), count, group.slots + o, to);
      }
      own += count * row_;
      next += count * row_;
      g.pieces.push_back({at.sections, at.nodes, count});
      at.nodes = (at.nodes + count) % kProofNodes;
      done += count;
    }
  }
}

void BitLog::Receive(size_t group, const uint8_t* received) {
  if (log_ == nullptr) return;
  const Group& g = groups_[group];
  for (const Piece& p : g.pieces) {
    for (size_t part = 0; part < g.parts; ++part) {
      const ProofSection& section = p.sections[part];
      XorRows(section.T(kProofLeft, p.node), section.row, received + part * kFewProofLanes / 8,
              row_, p.count);
      if (p.node + p.count == kProofNodes) log_->Close(section, kProofNodes);
    }
    received += p.count * row_;
  }
}

void BitLog::Finish(size_t group) {
  if (log_ == nullptr) return;
  Group& g = groups_[group];
  for (UnderWay& at : g.by_products) {
    for (size_t part = 0; at.nodes != 0 && part < g.parts; ++part) {
      log_->Close(at.sections[part], at.nodes);
    }
    at.nodes = 0;
  }
}

}  // namespace mpckdc
