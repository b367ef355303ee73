// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/garble/gf128_tape.h"

#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace mpckdc::garble {
namespace {

constexpr size_t kBits = 128;

// The row of the coefficient of x^i.
constexpr size_t RowOf(size_t i) { return 8 * (i / 8) + 7 - i % 8; }

// Polynomials, the lowest coefficient first.
using Polynomial = std::vector<Bit>;

Polynomial Add(BitRecorder& bits, absl::Span<const Bit> a, absl::Span<const Bit> b) {
  Polynomial sum;
  for (size_t i = 0; i < a.size(); ++i) sum.push_back(bits.Xor(a[i], b[i]));
  return sum;
}

// Karatsuba: two halves each.
Polynomial Multiply(BitRecorder& bits, absl::Span<const Bit> a, absl::Span<const Bit> b) {
  if (a.size() == 1) return {bits.And(a[0], b[0])};
  const size_t half = a.size() / 2;
  const auto low = [&](absl::Span<const Bit> p) { return p.first(half); };
  const auto high = [&](absl::Span<const Bit> p) { return p.subspan(half); };
  const Polynomial lows = Multiply(bits, low(a), low(b)), highs = Multiply(bits, high(a), high(b));
  const Polynomial sums = Multiply(bits, Add(bits, low(a), high(a)), Add(bits, low(b), high(b)));
  Polynomial product(2 * a.size() - 1, kZeroBit);
  for (size_t i = 0; i < lows.size(); ++i) {
    const Bit mixed = bits.Xor(sums[i], lows[i], highs[i]);
    product[i] = bits.Xor(product[i], lows[i]);
    product[i + half] = bits.Xor(product[i + half], mixed);
    product[i + 2 * half] = bits.Xor(product[i + 2 * half], highs[i]);
  }
  return product;
}

// Modulo x^128 + x^7 + x^2 + x + 1.
std::vector<Bit> Reduced(BitRecorder& bits, Polynomial p) {
  while (p.size() > kBits) {
    const Bit top = p.back();
    p.pop_back();
    for (const size_t k : {0, 1, 2, 7}) {
      Bit& to = p[p.size() - kBits + k];
      to = bits.Xor(to, top);
    }
  }
  std::vector<Bit> rows(kBits);
  for (size_t i = 0; i < kBits; ++i) rows[RowOf(i)] = p[i];
  return rows;
}

Polynomial Input(BitRecorder& bits, size_t first) {
  Polynomial p;
  for (size_t i = 0; i < kBits; ++i) p.push_back(bits.Input(first + RowOf(i)));
  return p;
}

BitProgram RecordMultiply() {
  BitRecorder bits;
  const Polynomial a = Input(bits, 0), b = Input(bits, kBits);
  return bits.Finish(Reduced(bits, Multiply(bits, a, b)));
}
BitProgram RecordSquare() {
  BitRecorder bits;
  const Polynomial a = Input(bits, 0);
  Polynomial square(2 * kBits - 1, kZeroBit);
  for (size_t i = 0; i < kBits; ++i) square[2 * i] = a[i];
  return bits.Finish(Reduced(bits, std::move(square)));
}

}  // namespace

const Tape& Gf128MultiplyTape() {
  static const Tape tape(RecordMultiply());
  return tape;
}
const Tape& Gf128SquareTape() {
  static const Tape tape(RecordSquare());
  return tape;
}

}  // namespace mpckdc::garble
