// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/proof/prover.h"

#include <algorithm>
#include <bit>

#include "mpc-server/proof/ghash_field.h"

namespace mpckdc::proof {
namespace {

template <class T>
void Grow(SecretVector<T>& vector, size_t size) {
  if (vector.size() < size) vector.resize(size);
}

// Both roles' blocks, added up, as elements.
void AddRoles(const Block* own, const Block* left, size_t n, SecretVector<Block>& both, F* out) {
  both.resize(n);
  for (size_t i = 0; i < n; ++i) both[i] = XorBlocks(own[i], left[i]);
  FromGhash(both, out);
}

// The pairs of the field sections, a column each, behind the columns of bits, times a factor.
void AppendFieldPairs(const Statement& statement, F factor, F* u, F* v) {
  size_t item = 0;
  SecretVector<Block> both;
  for (const ProofFieldSection& s : statement.log().field_sections()) {
    AddRoles(s.S(kProofOwn), s.S(kProofLeft), s.pairs, both, u);
    AddRoles(s.T(kProofOwn), s.T(kProofLeft), s.pairs, both, v);
    for (size_t i = 0, pair = 0; i < s.items; ++i, ++item) {
      const F weight = factor * statement.weights().items[item];
      for (; pair < s.ends[i]; ++pair) u[pair] = weight * u[pair];
    }
    u += s.pairs;
    v += s.pairs;
  }
}

}  // namespace

void FoldedBits::Fold(const Statement& statement, Level1& level1) {
  columns_ = statement.plan().bit_rows * kDotRow;
  size_t products = 0;
  for (const SectionGroup& group : statement.groups()) {
    products = std::max(products, FormProductsOf(group.gadget));
  }
  Grow(u_, products * columns_);
  Grow(v_, products * columns_);
  for (const SectionGroup& group : statement.groups()) {
    level1.Fold(group.all(), statement.eq().data(), statement.forms(group), Weighting::kRootOnBoth,
                {u_.data() + group.first_column, v_.data() + group.first_column,
                 8 * group.row_bytes, columns_});
  }
}

// A gadget with fewer products has none where a higher variable is 1, and where it is inf the same
// as where it is 0.
void Prover::ProductSums(const Statement& statement, K* out) {
  std::array<K, PointCount(kMostProductVariables)> all{};
  for (const SectionGroup& group : statement.groups()) {
    const size_t products = std::min(FormProductsOf(group.gadget), kMostParts);
    const auto variables = static_cast<size_t>(std::bit_width(products - 1));
    std::array<K, kMostPoints> sums{};
    AddPoints(bits_.u(0) + group.first_column, bits_.v(0) + group.first_column, bits_.columns(),
              products, variables, group.columns(), sums.data());
    for (size_t p = 0; p < PointCount(statement.product_variables()); ++p) {
      size_t higher = p / PointCount(variables);
      while (higher != 0 && higher % 3 != 1) higher /= 3;
      if (higher == 0) all[p] += sums[p % PointCount(variables)];
    }
    if (FormProductsOf(group.gadget) > kMostParts) AddNinth(group, all.data());
  }
  std::copy_n(all.begin() + 1, statement.ProductSums(), out);
}

// The ninth product is the node where the fourth variable alone is 1. With u and v of it, at points
// of the others without a 1 there is u v where the fourth is 1, and where it is inf
//
//     (u_q + u)(v_q + v) - u_q v_q  =  u v  +  sum of (u_s v + u v_s) over the nodes s within q's
//                                              infs, since u_q is the sum of those u_s
void Prover::AddNinth(const SectionGroup& group, K* sums) const {
  const size_t at = group.first_column, count = group.columns();
  const K *u = bits_.u(kMostParts) + at, *v = bits_.v(kMostParts) + at;
  const K alone = Dot(u, v, count);
  std::array<K, kMostParts> within;
  for (size_t s = 0; s < kMostParts; ++s) {
    within[s] = Dot(bits_.u(s) + at, v, count) + Dot(u, bits_.v(s) + at, count);
  }
  for (size_t place = 1; place < kMostParts; place *= 2) {
    for (size_t s = 0; s < kMostParts; ++s) {
      if ((s & place) != 0) within[s] += within[s - place];
    }
  }
  for (size_t s = 0; s < kMostParts; ++s) {
    const size_t q = 2 * PointOfNode(3, s);
    sums[PointCount(3) + q] += alone;
    sums[2 * PointCount(3) + q] += alone + within[s];
  }
}

void Prover::FoldProducts(const Statement& statement, const ProductChallenges& r) {
  const size_t rows = std::max<size_t>(statement.plan().rows(), 1);
  dot_.Resize(rows);
  std::array<F, size_t{1} << kMostProductVariables> eq;
  if (statement.has_bits()) NodeCoefficients(r.point, eq.data());
  size_t done = 0;
  for (const SectionGroup& group : statement.groups()) {
    const size_t at = group.first_column, products = FormProductsOf(group.gadget);
    std::fill(dot_.u() + done, dot_.u() + at, F{});
    std::fill(dot_.v() + done, dot_.v() + at, F{});
    Combine(bits_.u(0) + at, bits_.columns(), eq.data(), products, group.columns(), dot_.u() + at);
    Combine(bits_.v(0) + at, bits_.columns(), eq.data(), products, group.columns(), dot_.v() + at);
    done = at + group.columns();
  }
  std::fill(dot_.u() + done, dot_.u() + rows * kDotRow, F{});
  std::fill(dot_.v() + done, dot_.v() + rows * kDotRow, F{});
  const size_t behind = statement.plan().bit_rows * kDotRow;
  AppendFieldPairs(statement, r.fields, dot_.u() + behind, dot_.v() + behind);
}

}  // namespace mpckdc::proof
