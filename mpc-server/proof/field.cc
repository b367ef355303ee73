// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/base/isa.h"
#include "mpc-server/proof/clmul_portable.h"
#include "mpc-server/proof/field128.h"
#include "mpc-server/proof/field64.h"
#include "mpc-server/proof/field_kernels.h"
#include "mpc-server/proof/points.h"

namespace mpckdc::proof {
namespace {

const FieldKernels& Kernels() {
  static const FieldKernels& best = AllFieldKernels().For(BestIsa());
  return best;
}

// The bits of the low half at the even places.
uint64_t Spread(uint64_t v) {
  v = (v | v << 16) & 0x0000FFFF0000FFFF;
  v = (v | v << 8) & 0x00FF00FF00FF00FF;
  v = (v | v << 4) & 0x0F0F0F0F0F0F0F0F;
  v = (v | v << 2) & 0x3333333333333333;
  return (v | v << 1) & 0x5555555555555555;
}
// The bits at the even places, together.
uint64_t Compress(uint64_t v) {
  v &= 0x5555555555555555;
  v = (v | v >> 1) & 0x3333333333333333;
  v = (v | v >> 2) & 0x0F0F0F0F0F0F0F0F;
  v = (v | v >> 4) & 0x00FF00FF00FF00FF;
  v = (v | v >> 8) & 0x0000FFFF0000FFFF;
  return (v | v >> 16) & 0x00000000FFFFFFFF;
}

F Reduce(const WideF& w) {
  return {proof::Reduce(w.low) + proof::Reduce(w.high) * kTraceOne, proof::Reduce(w.low + w.both)};
}

K SquareTimes(K a, int n) {
  for (; n > 0; --n) a = Square(a);
  return a;
}

}  // namespace

const IsaTable<FieldKernels>& AllFieldKernels() {
  static const IsaTable<FieldKernels> all = {
    {"portable", Isa::kPortable, kFieldPortable},
#if defined(__x86_64__)
    {"avx2_pclmul", Isa::kAvx2, kFieldPclmul},
    {"avx512_vpclmul", Isa::kAvx512, kFieldVpclmul, __builtin_cpu_supports("vpclmulqdq") != 0},
#endif
  };
  return all;
}

K operator*(K a, K b) { return Kernels().multiply(a, b); }
K Reduce(WideK a) { return K{ClmulPortable::ReduceByShifts(a)}; }
K Square(K a) { return Reduce(WideK{Spread(a.v & 0xFFFFFFFF), Spread(a.v >> 32)}); }

// The root of sum v_i x^i is sum v_2i x^i + root(x) * sum v_(2i+1) x^i.
K SquareRoot(K a) {
  static const K root_of_x = SquareTimes(kX, 63);
  return K{Compress(a.v)} + root_of_x * K{Compress(a.v >> 1)};
}

// a^(2^64 - 2) = (a^(2^63 - 1))^2; p[n] = a^(2^n - 1), p[m + n] = p[m]^(2^n) * p[n].
K Inverse(K a) {
  const K p2 = Square(a) * a;
  const K p3 = Square(p2) * a;
  const K p6 = SquareTimes(p3, 3) * p3;
  const K p7 = Square(p6) * a;
  const K p14 = SquareTimes(p7, 7) * p7;
  const K p15 = Square(p14) * a;
  const K p30 = SquareTimes(p15, 15) * p15;
  const K p31 = Square(p30) * a;
  const K p62 = SquareTimes(p31, 31) * p31;
  return Square(Square(p62) * a);
}

K Dot(const K* a, const K* b, size_t n) { return Kernels().dot(a, b, n); }
void Scale(const K* a, K c, size_t n, K* out) { Kernels().scale(a, c, n, out); }
F operator*(F a, F b) { return Kernels().multiply_f(a, b); }
F operator*(F a, K b) { return F{a.low * b, a.high * b}; }

// The conjugate of a + b*y is a + b + b*y; their product, the norm a^2 + ab + c*b^2, lies in K.
F Inverse(F a) {
  const K norm = a.low * (a.low + a.high) + kTraceOne * Square(a.high);
  return F{a.low + a.high, a.high} * Inverse(norm);
}

F Dot(const F* a, const F* b, size_t n) { return Kernels().dot_f(a, b, n); }
void MultiplyAdd(const F* a, F c, size_t n, F* out) { Kernels().multiply_add_f(a, c, n, out); }
void MultiplyAdd(const K* a, F c, size_t n, F* out) { Kernels().multiply_add_kf(a, c, n, out); }
void MultiplyEach(const F* a, const K* b, size_t n, F* out) {
  Kernels().multiply_each_fk(a, b, n, out);
}
void AddPoints(const K* u, const K* v, size_t step, size_t parts, size_t variables, size_t n,
               K* sums) {
  WideK wide[kMostPoints];
  Kernels().points_k(u, v, step, parts, variables, n, wide);
  for (size_t p = 0; p < PointCount(variables); ++p) sums[p] += Reduce(wide[p]);
}
void AddPoints(const F* u, const F* v, size_t step, size_t parts, size_t variables, size_t n,
               F* sums) {
  WideF wide[kMostPoints];
  Kernels().points_f(u, v, step, parts, variables, n, wide);
  for (size_t p = 0; p < PointCount(variables); ++p) sums[p] += Reduce(wide[p]);
}
void Combine(const K* a, size_t step, const F* c, size_t parts, size_t n, F* out) {
  Kernels().combine_kf(a, step, c, parts, n, out);
}
void Combine(const F* a, size_t step, const F* c, size_t parts, size_t n, F* out) {
  Kernels().combine_f(a, step, c, parts, n, out);
}

}  // namespace mpckdc::proof
