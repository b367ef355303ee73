// SPDX-License-Identifier: Apache-2.0
// Both fields by their definitions, and every instruction set's operations.
#include <array>
#include <random>
#include <type_traits>
#include <vector>

#include "gtest/gtest.h"
#include "mpc-server/base/isa.h"
#include "mpc-server/proof/field128.h"
#include "mpc-server/proof/field64.h"
#include "mpc-server/proof/field_kernels.h"
#include "mpc-server/proof/points.h"

namespace mpckdc::proof {
namespace {

// Bit by bit.
K SlowProduct(K a, K b) {
  uint64_t r = 0;
  for (int i = 63; i >= 0; --i) {
    r = r << 1 ^ (r >> 63 ? 0x1B : 0);
    if (b.v >> i & 1) r ^= a.v;
  }
  return K{r};
}
// y^2 = y + c.
F SlowProduct(F a, F b) {
  const K y2 = SlowProduct(a.high, b.high);
  return F{SlowProduct(a.low, b.low) + SlowProduct(y2, kTraceOne),
           SlowProduct(a.low, b.high) + SlowProduct(a.high, b.low) + y2};
}

struct Random {
  std::mt19937_64 source{7};
  K OneK() {
    const uint64_t v = source();
    return K{v % 8 == 0 ? v >> 60 : v % 8 == 1 ? ~(v >> 60) : v};
  }
  F OneF() { return F{OneK(), OneK()}; }
  std::vector<K> Ks(size_t n) {
    std::vector<K> v(n);
    for (K& k : v) k = OneK();
    return v;
  }
  std::vector<F> Fs(size_t n) {
    std::vector<F> v(n);
    for (F& f : v) f = OneF();
    return v;
  }
  template <class T>
  std::vector<T> Many(size_t n) {
    if constexpr (std::is_same_v<T, K>) return Ks(n);
    if constexpr (std::is_same_v<T, F>) return Fs(n);
  }
};

// x^(2^i) of the field with that modulus, i = 64 the first with x^(2^i) = x is irreducibility for a
// degree that is a power of two: gcd(x^(2^32) + x, f) = 1 is that x^(2^32) + x is invertible.
TEST(FieldTest, ModulusOfKIsIrreducible) {
  K x = kX;
  for (int i = 0; i < 32; ++i) x = SlowProduct(x, x);
  K difference = x + kX, inverse = kOne;
  for (int i = 0; i < 32; ++i) x = SlowProduct(x, x);
  EXPECT_EQ(x, kX);
  K power = difference;  // to 2^64 - 2
  for (int i = 0; i < 63; ++i) {
    power = SlowProduct(power, power);
    inverse = SlowProduct(inverse, power);
  }
  EXPECT_EQ(SlowProduct(inverse, difference), kOne);
}

// y^2 + y + c has a root in K if and only if the trace of c is 0.
TEST(FieldTest, ConstantHasTraceOne) {
  K trace, power = kTraceOne;
  for (int i = 0; i < 64; ++i) {
    trace += power;
    power = SlowProduct(power, power);
  }
  EXPECT_EQ(trace, kOne);
}

TEST(FieldTest, OneElement) {
  Random random;
  for (int trial = 0; trial < 200; ++trial) {
    const K a = random.OneK(), b = random.OneK();
    EXPECT_EQ(a * b, SlowProduct(a, b));
    EXPECT_EQ(Square(a), SlowProduct(a, a));
    EXPECT_EQ(Square(SquareRoot(a)), a);
    if (!(a == K{})) {
      EXPECT_EQ(SlowProduct(a, Inverse(a)), kOne);
    }
    const F f = random.OneF(), g = random.OneF();
    EXPECT_EQ(f * g, SlowProduct(f, g));
    EXPECT_EQ(f * a, SlowProduct(f, F{a, K{}}));
    if (!(f == F{})) {
      EXPECT_EQ(SlowProduct(f, Inverse(f)), (F{kOne, K{}}));
    }
  }
  EXPECT_EQ(Inverse(K{}), K{});
  EXPECT_EQ(Inverse(F{}), F{});
}

class FieldKernelsTest : public testing::TestWithParam<size_t> {};

TEST_P(FieldKernelsTest, EqualTheDefinition) {
  Random random;
  for (const auto& variant : AllFieldKernels().supported()) {
    SCOPED_TRACE(variant.name);
    const FieldKernels& k = variant.functions;
    const size_t n = GetParam();
    const std::vector<K> a = random.Ks(n), b = random.Ks(n);
    const std::vector<F> f = random.Fs(n), g = random.Fs(n);
    const K c = random.OneK();
    const F r = random.OneF();

    EXPECT_EQ(k.multiply(c, r.low), SlowProduct(c, r.low));
    EXPECT_EQ(k.multiply_f(r, F{c, r.low}), SlowProduct(r, F{c, r.low}));
    K dot;
    F dot_f;
    for (size_t i = 0; i < n; ++i) {
      dot += SlowProduct(a[i], b[i]);
      dot_f += SlowProduct(f[i], g[i]);
    }
    EXPECT_EQ(k.dot(a.data(), b.data(), n), dot);
    EXPECT_EQ(k.dot_f(f.data(), g.data(), n), dot_f);

    std::vector<K> scaled(n);
    std::vector<F> out_f = g, out_kf = g, each_fk(n);
    k.scale(a.data(), c, n, scaled.data());
    k.multiply_add_f(f.data(), r, n, out_f.data());
    k.multiply_add_kf(a.data(), r, n, out_kf.data());
    k.multiply_each_fk(f.data(), b.data(), n, each_fk.data());
    for (size_t i = 0; i < n; ++i) {
      EXPECT_EQ(scaled[i], SlowProduct(a[i], c));
      EXPECT_EQ(out_f[i], g[i] + SlowProduct(f[i], r));
      EXPECT_EQ(out_kf[i], g[i] + SlowProduct(F{a[i], K{}}, r));
      EXPECT_EQ(each_fk[i], SlowProduct(f[i], F{b[i], K{}}));
    }
  }
}

// Vectors in parts, at all points and with coefficients.
template <class T, class Wide, class Points, class Slow>
void ExpectPoints(Random& random, size_t n, size_t variables, size_t parts, const Points& points,
                  const Slow& slow) {
  const size_t step = n + 3;
  const std::vector<T> u = random.Many<T>(parts * step), v = random.Many<T>(parts * step);
  std::array<Wide, kMostPoints> wide{};
  points(u.data(), v.data(), step, parts, variables, n, wide.data());
  for (size_t p = 0; p < PointCount(variables); ++p) {
    T expected{};
    for (size_t i = 0; i < n; ++i) {
      T at_u{}, at_v{};  // the sums over the nodes that p stands for
      for (size_t s = 0; s < parts; ++s) {
        bool counts = true;
        for (size_t d = 0, q = p; d < variables; ++d, q /= 3) {
          counts = counts && (q % 3 == 2 || q % 3 == (s >> d & 1));
        }
        if (!counts) continue;
        at_u += u[s * step + i];
        at_v += v[s * step + i];
      }
      expected += SlowProduct(at_u, at_v);
    }
    EXPECT_EQ(slow(wide[p]), expected) << p;
  }
}

TEST_P(FieldKernelsTest, OfPartsEqualTheDefinition) {
  Random random;
  const size_t n = GetParam();
  for (const auto& variant : AllFieldKernels().supported()) {
    SCOPED_TRACE(variant.name);
    const FieldKernels& k = variant.functions;
    for (size_t variables = 0; variables <= 3; ++variables) {
      for (size_t parts = 1; parts <= size_t{1} << variables; ++parts) {
        ExpectPoints<K, WideK>(random, n, variables, parts, k.points_k,
                               [](const WideK& w) { return Reduce(w); });
        ExpectPoints<F, WideF>(random, n, variables, parts, k.points_f, [](const WideF& w) {
          const K low = Reduce(w.low), high = Reduce(w.high);
          return F{low + SlowProduct(high, kTraceOne), low + Reduce(w.both)};
        });
      }
    }
    for (size_t parts = 1; parts <= 9; ++parts) {
      const size_t step = n + 3;
      const std::vector<K> a = random.Many<K>(parts * step);
      const std::vector<F> f = random.Many<F>(parts * step), c = random.Many<F>(parts);
      std::vector<F> out_k(n), out_f(n);
      k.combine_kf(a.data(), step, c.data(), parts, n, out_k.data());
      k.combine_f(f.data(), step, c.data(), parts, n, out_f.data());
      for (size_t i = 0; i < n; ++i) {
        F sum_k, sum_f;
        for (size_t m = 0; m < parts; ++m) {
          sum_k += SlowProduct(F{a[m * step + i], K{}}, c[m]);
          sum_f += SlowProduct(f[m * step + i], c[m]);
        }
        EXPECT_EQ(out_k[i], sum_k);
        EXPECT_EQ(out_f[i], sum_f);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Lengths, FieldKernelsTest, testing::Values(0, 1, 3, 4, 7, 8, 9, 16, 61));

}  // namespace
}  // namespace mpckdc::proof
