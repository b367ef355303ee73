// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/proof/dot_product.h"

#include <algorithm>

namespace mpckdc::proof {

std::vector<DotLevel> DotLevels(size_t rows) {
  std::vector<DotLevel> levels;
  while (rows > 1) {
    const size_t part = (rows + kMostParts - 1) / kMostParts;
    levels.push_back({rows * kDotRow, part * kDotRow, kMostParts, 3});
    rows = part;
  }
  levels.insert(levels.end(),
                {{512, 64, 8, 3}, {64, 16, 4, 2}, {16, 4, 4, 2}, {4, 2, 2, 1}, {2, 1, 2, 2}});
  return levels;
}

F NextClaim(const DotLevel& level, F claim, absl::Span<const F> values, absl::Span<const F> r) {
  for (size_t node = 1; node < level.parts; ++node) {
    claim = claim + values[PointOfNode(level.variables, node) - 1];
  }
  std::vector<F> coefficients(level.points());
  PointCoefficients(r, coefficients.data());
  F next = coefficients[0] * claim;
  for (size_t p = 1; p < level.points(); ++p) next = next + coefficients[p] * values[p - 1];
  return next;
}

DotCoefficients::DotCoefficients(absl::Span<const DotLevel> levels,
                                 absl::Span<const std::vector<F>> challenges) {
  rows = {kUnit<F>};
  bits.fill(F{});
  bits[0] = kUnit<F>;
  size_t known = 1;
  for (size_t i = levels.size(); i-- > 0;) {
    const DotLevel& level = levels[i];
    std::array<F, kMostParts> eq;
    NodeCoefficients(absl::MakeConstSpan(challenges[i]), eq.data());
    if (level.masked()) mask = eq[level.mask_node()];
    if (level.size < kDotRow) {
      // From the back, since part 0 is where the others come from.
      for (size_t part = level.parts; part-- > 0;) {
        for (size_t j = known; j-- > 0;) bits[part * known + j] = eq[part] * bits[j];
      }
      known *= level.parts;
    } else if (level.size == kDotRow) {
      words = eq;
    } else {
      std::vector<F> longer(level.size / kDotRow);
      const size_t part = level.part / kDotRow;
      for (size_t row = 0; row < longer.size(); ++row) {
        longer[row] = eq[row / part] * rows[row % part];
      }
      rows = std::move(longer);
    }
  }
  for (size_t w = 0; w < words.size(); ++w) {
    for (size_t b = 0; b < bits.size(); ++b) places[w * bits.size() + b] = words[w] * bits[b];
  }
}

void DotProver::Resize(size_t rows) {
  levels_ = DotLevels(rows);
  level_ = 0;
  size_t longest_fold = 0;
  for (size_t i = 1; i < levels_.size(); ++i) longest_fold = std::max(longest_fold, Padded(i));
  for (Vector* vector : {&u_, &v_}) {
    if (vector->all.size() < Padded(0)) vector->all.resize(Padded(0));
    if (vector->folded.size() < longest_fold) vector->folded.resize(longest_fold);
    std::fill(vector->all.begin() + static_cast<ptrdiff_t>(rows * kDotRow),
              vector->all.begin() + static_cast<ptrdiff_t>(Padded(0)), F{});
  }
}

// With the mask, two parts of one column are nodes 0 and 1 of four.
void DotProver::Values(F* out) {
  const DotLevel& level = levels_[level_];
  std::array<F, kMostPoints> sums{};
  if (level.masked()) {
    const std::array<F, 3> u = {u_.all[0], u_.all[1], u_.mask}, v = {v_.all[0], v_.all[1], v_.mask};
    AddPoints(u.data(), v.data(), 1, u.size(), level.variables, 1, sums.data());
  } else {
    AddPoints(u_.all.data(), v_.all.data(), level.part, level.parts, level.variables, level.part,
              sums.data());
  }
  std::copy_n(sums.begin() + 1, level.points() - 1, out);
}

void DotProver::FoldVector(const DotLevel& level, const F* eq, Vector& vector) const {
  Combine(vector.all.data(), level.part, eq, level.parts, level.part, vector.folded.data());
  if (level.masked()) vector.folded[0] += eq[level.mask_node()] * vector.mask;
  std::swap(vector.all, vector.folded);
  if (level_ == levels_.size()) return;
  std::fill(vector.all.begin() + static_cast<ptrdiff_t>(level.part),
            vector.all.begin() + static_cast<ptrdiff_t>(Padded(level_)), F{});
}

void DotProver::Fold(absl::Span<const F> r) {
  const DotLevel& level = levels_[level_++];
  std::array<F, kMostParts> eq;
  NodeCoefficients(r, eq.data());
  FoldVector(level, eq.data(), u_);
  FoldVector(level, eq.data(), v_);
}

}  // namespace mpckdc::proof
