// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/proof/statement.h"

#include <sodium.h>

#include <algorithm>
#include <bit>

namespace mpckdc::proof {

Statement::Statement(const ProofLog& log)
    : log_(&log), plan_(log), levels_(DotLevels(std::max<size_t>(plan_.rows(), 1))) {
  for (const ColumnPlan::OfGadget& gadget : plan_.gadgets) {
    const size_t products = FormProductsOf(gadget.gadget);
    product_variables_ = std::max<size_t>(product_variables_, std::bit_width(products - 1));
  }
}

void Statement::DrawWeights(const Coin& coin) {
  weights_.emplace(plan_, coin);
  groups_.clear();
  for (const ColumnPlan::OfGadget& gadget : plan_.gadgets) {
    const auto g = static_cast<size_t>(gadget.gadget);
    forms_[g] = MakeProductForms(gadget.gadget, weights_->bits[g].data());
    for (const size_t row_bytes : {kDotRow / 8, size_t{8}}) AddGroup(gadget, row_bytes);
  }
}

void Statement::AddGroup(const ColumnPlan::OfGadget& gadget, size_t row_bytes) {
  SectionGroup group{gadget.gadget, row_bytes, 0, {}, {}};
  for (const ColumnPlan::Placed& placed : gadget.sections) {
    if (placed.section->row != row_bytes) continue;
    if (group.words.empty()) group.first_column = placed.row * kDotRow;
    group.words.push_back(weights_->WordsOf(placed));
  }
  if (group.words.empty()) return;
  size_t at = 0;
  for (const ColumnPlan::Placed& placed : gadget.sections) {
    const ProofSection& s = *placed.section;
    if (s.row != row_bytes) continue;
    group.sections.push_back({{s.Wires(kProofOwn), s.Wires(kProofLeft)},
                              {s.T(kProofOwn), s.T(kProofLeft)},
                              group.words[at++].data(),
                              s.nodes});
  }
  groups_.push_back(std::move(group));
}

void Statement::DrawPoint(const Coin& coin) {
  randombytes_buf_deterministic(point_.data(), sizeof(point_), coin.data());
  NodeCoefficients(absl::MakeConstSpan(point_), eq_.data());
}

size_t Statement::LaterBytes() const {
  size_t bytes = ProductSums() * sizeof(K);
  for (const DotLevel& level : levels_) bytes += (level.points() - 1) * sizeof(F);
  return bytes;
}

}  // namespace mpckdc::proof
