// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/circuit/hash/bit_recorder.h"

#include <algorithm>
#include <cassert>

namespace mpckdc {
namespace {

bool IsConstant(Bit a) { return a.id < 2; }
bool IsComplement(Bit a) { return a.id & 1; }
bool IsOpened(BitOp op) { return op >= BitOp::kMajority; }

}  // namespace

BitRecorder::BitRecorder() { nodes_.push_back({BitOp::kPublic, true, 0, 0, 0, 0, 0}); }

Bit BitRecorder::Add(BitOp op, absl::Span<const uint32_t> args, uint8_t linears,
                     uint8_t products) {
  Node n = {op, op != BitOp::kInput && !IsOpened(op), linears, products,
            static_cast<uint8_t>(args.size()), 0, static_cast<uint32_t>(args_.size())};
  if (op != BitOp::kInput && op != BitOp::kPublic) {
    for (uint32_t a : args) {
      n.level = std::max(n.level, nodes_[a].level);
      n.is_public = n.is_public && nodes_[a].is_public;
    }
  }
  if (IsOpened(op)) {
    ++n.level;
    ++opened_;
  }
  args_.insert(args_.end(), args.begin(), args.end());
  nodes_.push_back(n);
  return {static_cast<uint32_t>(2 * (nodes_.size() - 1))};
}

void BitRecorder::Rewind(const Mark& mark) {
  nodes_.resize(mark.nodes, Node{});
  args_.resize(mark.args);
  opened_ = mark.opened;
}

Bit BitRecorder::Input(size_t row) {
  return Add(BitOp::kInput, {static_cast<uint32_t>(row)});
}
Bit BitRecorder::Public(size_t row) {
  return Add(BitOp::kPublic, {static_cast<uint32_t>(row)});
}

uint32_t BitRecorder::Plain(Bit a) {
  if (!IsComplement(a)) return a.id / 2;
  return Add(BitOp::kNot, {a.id / 2}).id / 2;
}

// Complements move to the result; equal values cancel.
Bit BitRecorder::Xor(Bit a, Bit b, Bit c) {
  uint32_t complement = 0;
  absl::InlinedVector<uint32_t, 3> terms;
  for (Bit t : {a, b, c}) {
    complement ^= t.id & 1;
    const uint32_t node = t.id / 2;
    if (node == 0) continue;
    const auto same = std::find(terms.begin(), terms.end(), node);
    if (same != terms.end()) {
      terms.erase(same);
    } else {
      terms.push_back(node);
    }
  }
  if (terms.empty()) return {complement};
  if (terms.size() == 1) return {2 * terms[0] ^ complement};
  const Bit sum = Add(terms.size() == 2 ? BitOp::kXor2 : BitOp::kXor3, terms);
  return {sum.id ^ complement};
}

// With a constant: xy, or xy + x + y. Three complements move to the result.
Bit BitRecorder::Majority(Bit x, Bit y, Bit z) {
  if (IsConstant(x)) std::swap(x, z);
  if (IsConstant(y)) std::swap(y, z);
  if (z == kZeroBit) return And(x, y);
  if (z == kOneBit) return Open({{x, y}, {{x, y}}});
  if (IsComplement(x) && IsComplement(y) && IsComplement(z)) {
    return Not(Majority(Not(x), Not(y), Not(z)));
  }
  return Add(BitOp::kMajority, {Plain(x), Plain(y), Plain(z)});
}

Bit BitRecorder::Choose(Bit x, Bit y, Bit z) {
  if (IsConstant(x) || IsConstant(y) || IsConstant(z)) {
    return Open({{z}, {{x, y}, {x, z}}});
  }
  return Add(BitOp::kChoose, {Plain(x), Plain(y), Plain(z)});
}

// Takes out what needs no message: constants, and products with public bits where nothing else is
// left to open.
Bit BitRecorder::Open(const BitSum& sum) {
  BitSum rest;
  rest.linear = sum.linear;
  bool only_public = true;
  for (auto [u, v] : sum.products) {
    if (u == kZeroBit || v == kZeroBit) continue;
    if (u == kOneBit || v == kOneBit) {
      rest.linear.push_back(u == kOneBit ? v : u);
      continue;
    }
    only_public = only_public && (IsPublic(u) || IsPublic(v));
    rest.products.push_back({u, v});
  }
  if (!only_public) return OpenChecked(std::move(rest));
  Bit result = kZeroBit;
  for (auto [u, v] : rest.products) {
    if (!IsPublic(u)) std::swap(u, v);
    result = Xor(result, Add(BitOp::kScale, {Plain(u), Plain(v)}));
  }
  for (Bit t : rest.linear) result = Xor(result, t);
  return result;
}

// A summand that is known before the message joins it. One that is not is added afterwards.
Bit BitRecorder::OpenChecked(BitSum sum) {
  uint32_t before = 0, complement = 0;
  for (auto [u, v] : sum.products) before = std::max({before, level(u), level(v)});
  absl::InlinedVector<uint32_t, 24> args;
  absl::InlinedVector<Bit, 4> later;
  for (Bit t : sum.linear) {
    complement ^= t.id & 1;
    if (t.id / 2 == 0) continue;
    if (level(t) <= before) {
      args.push_back(t.id / 2);
    } else {
      later.push_back({t.id & ~1u});
    }
  }
  const size_t linears = args.size();
  for (auto [u, v] : sum.products) {
    args.push_back(Plain(u));
    args.push_back(Plain(v));
  }
  Bit result = Add(BitOp::kProducts, args, static_cast<uint8_t>(linears),
                   static_cast<uint8_t>(sum.products.size()));
  for (Bit t : later) result = Xor(result, t);
  return {result.id ^ complement};
}

}  // namespace mpckdc
