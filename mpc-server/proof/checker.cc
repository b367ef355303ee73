// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/proof/checker.h"

#include <cstring>

#include "mpc-server/proof/ghash_field.h"

namespace mpckdc::proof {
namespace {

constexpr size_t kMostFoldedProducts = size_t{1} << kMostProductVariables;

template <class T>
SecretVector<T> Elements(absl::Span<const uint8_t> bytes) {
  SecretVector<T> out(bytes.size() / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), out.size() * sizeof(T));
  return out;
}

}  // namespace

void Checker::Start(const Statement& statement, absl::Span<const WideK> nodes) {
  for (size_t s = 0; s < kProofNodes; ++s) nodes_[s] = Reduce(nodes[s]);
  fields_ = F{};
  size_t item = 0;
  for (const ProofFieldSection& s : statement.log().field_sections()) {
    AddFieldItems(s, absl::MakeConstSpan(statement.weights().items).subspan(item, s.items));
    item += s.items;
  }
}

// The items' sums, and at R the products of what it has of the pairs.
void Checker::AddFieldItems(const ProofFieldSection& section, absl::Span<const F> weights) {
  const int role = static_cast<int>(role_);
  SecretVector<F> sums(section.items), s(section.pairs), t(section.pairs);
  FromGhash({section.Sum(role), section.items}, sums.data());
  if (role_ == Role::kLeft) {
    FromGhash({section.S(role), section.pairs}, s.data());
    FromGhash({section.T(role), section.pairs}, t.data());
    for (size_t i = 0, pair = 0; i < section.items; pair = section.ends[i], ++i) {
      sums[i] += Dot(&s[pair], &t[pair], section.ends[i] - pair);
    }
  }
  fields_ += Dot(sums.data(), weights.data(), sums.size());
}

K Checker::ClaimAtPoint(const Statement& statement) const {
  std::array<K, kSumPoints> coefficients;
  PointCoefficients(statement.point(), coefficients.data());
  K claim;
  for (size_t s = 0; s < kProofNodes; ++s) {
    claim += coefficients[PointOfNode(kNodeVariables, s)] * nodes_[s];
  }
  for (size_t p = 0, at = 0; p < kSumPoints; ++p) {
    if (!IsNode(kNodeVariables, p)) claim += coefficients[p] * sums_[at++];
  }
  return claim;
}

F Checker::ClaimAfterProducts(const Statement& statement, K claim, absl::Span<const F> r) const {
  const auto values =
      Elements<K>(absl::MakeConstSpan(later_).first(statement.ProductSums() * sizeof(K)));
  for (size_t node = 1; node < size_t{1} << r.size(); ++node) {
    claim += values[PointOfNode(r.size(), node) - 1];
  }
  std::array<F, PointCount(kMostProductVariables)> coefficients;
  PointCoefficients(r, coefficients.data());
  F next = coefficients[0] * claim;
  for (size_t p = 0; p < values.size(); ++p) next += coefficients[p + 1] * values[p];
  return next;
}

void Checker::Finish(const Statement& statement, absl::Span<const std::vector<F>> challenges) {
  claim_ = F{};
  absl::Span<const uint8_t> later(later_);
  ProductChallenges products;
  if (statement.has_bits()) {
    products = ProductChallenges(challenges[0]);
    challenges.remove_prefix(1);
    claim_ = ClaimAfterProducts(statement, ClaimAtPoint(statement), products.point);
    later.remove_prefix(statement.ProductSums() * sizeof(K));
  }
  claim_ += products.fields * fields_;
  for (size_t i = 0; i < statement.levels().size(); ++i) {
    const DotLevel& level = statement.levels()[i];
    const size_t bytes = (level.points() - 1) * sizeof(F);
    claim_ = NextClaim(level, claim_, absl::MakeConstSpan(Elements<F>(later.first(bytes))),
                       absl::MakeConstSpan(challenges[i]));
    later.remove_prefix(bytes);
  }
  const DotCoefficients at(statement.levels(), challenges);
  u_ = at.mask * mask_u_;
  v_ = at.mask * mask_v_;
  if (statement.has_bits()) AddBits(statement, products.point, at);
  AddFieldPairs(statement, products.fields, at);
}

void Checker::AddBits(const Statement& statement, absl::Span<const F> r,
                      const DotCoefficients& at) {
  std::array<F, kMostFoldedProducts> eq;
  NodeCoefficients(r, eq.data());
  FunctionalSums sums{};
  for (const SectionGroup& group : statement.groups()) {
    const ProductForms& forms = statement.forms(group);
    std::array<F, kMaxGadgetWires> wire_u{}, wire_v{};
    for (size_t m = 0; m < forms.products; ++m) {
      MultiplyAdd(forms.u[m], eq[m], forms.wires, wire_u.data());
      MultiplyAdd(forms.v[m], eq[m], forms.wires, wire_v.data());
    }
    const bool wide = group.row_bytes == kDotRow / 8;
    std::vector<F> factors;
    for (size_t i = 0; i < group.sections.size(); ++i) {
      const size_t column = group.first_column + i * 8 * group.row_bytes;
      const F row = at.rows[column / kDotRow];
      factors.push_back(wide ? row : row * at.words[column % kDotRow / 64]);
    }
    level1_.Evaluate(
        group.all(), static_cast<Wires>(role_),
        {statement.eq().data(), wire_u.data(), wire_v.data(),
         wide ? at.places.data() : at.bits.data(), factors.data(), Weighting::kRootOnBoth},
        sums);
  }
  u_ += sums.u;
  v_ += sums.v;
}

void Checker::AddFieldPairs(const Statement& statement, F factor, const DotCoefficients& at) {
  const int role = static_cast<int>(role_);
  size_t item = 0, column = statement.plan().bit_rows * kDotRow;
  for (const ProofFieldSection& section : statement.log().field_sections()) {
    SecretVector<F> s(section.pairs), t(section.pairs);
    FromGhash({section.S(role), section.pairs}, s.data());
    FromGhash({section.T(role), section.pairs}, t.data());
    for (size_t i = 0, pair = 0; i < section.items; ++i, ++item) {
      const F weight = factor * statement.weights().items[item];
      for (; pair < section.ends[i]; ++pair, ++column) {
        const F coefficient = at.rows[column / kDotRow] * at.places[column % kDotRow];
        u_ += coefficient * weight * s[pair];
        v_ += coefficient * t[pair];
      }
    }
  }
}

}  // namespace mpckdc::proof
