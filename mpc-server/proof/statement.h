// SPDX-License-Identifier: Apache-2.0
// What the three know alike of a proof under way: the shape of the log, and what the coins drew.
#ifndef MPC_SERVER_PROOF_STATEMENT_H_
#define MPC_SERVER_PROOF_STATEMENT_H_

#include <array>
#include <optional>
#include <vector>

#include "mpc-server/proof/columns.h"
#include "mpc-server/proof/dot_product.h"
#include "mpc-server/proof/forms.h"
#include "mpc-server/proof/level1.h"
#include "mpc-server/proof/points.h"

namespace mpckdc::proof {

inline constexpr size_t kNodeVariables = 5;
inline constexpr size_t kSumPoints = PointCount(kNodeVariables);
inline constexpr size_t kMostProductVariables = 4;

// What is drawn after the product sums. Without bits there is nothing to be drawn.
struct ProductChallenges {
  ProductChallenges() = default;
  explicit ProductChallenges(absl::Span<const F> drawn)
      : point(drawn.first(drawn.size() - 1)), fields(drawn.back()) {}

  absl::Span<const F> point;  // at which each column's products are folded
  F fields = kUnit<F>;        // by which the field sections' claim is multiplied before it joins
};

// Sections of one gadget and one row size, whose columns lie behind each other.
struct SectionGroup {
  Gadget gadget;
  size_t row_bytes;
  size_t first_column;
  std::vector<Section> sections;
  std::vector<std::array<K, kRowWords>> words;  // the weights of their words

  Sections all() const { return {gadget, row_bytes, sections}; }
  size_t columns() const { return sections.size() * 8 * row_bytes; }
};

class Statement {
 public:
  explicit Statement(const ProofLog& log);

  // Coin 0: the weights, and each gadget's weighted sum as products of linear forms.
  void DrawWeights(const Coin& coin);
  // Coin 1: the point at which the nodes are folded.
  void DrawPoint(const Coin& coin);

  const ProofLog& log() const { return *log_; }
  const ColumnPlan& plan() const { return plan_; }
  const ProofWeights& weights() const { return *weights_; }
  const std::vector<SectionGroup>& groups() const { return groups_; }
  const K* betas(const SectionGroup& group) const {
    return weights_->bits[static_cast<size_t>(group.gadget)].data();
  }
  const ProductForms& forms(const SectionGroup& group) const {
    return forms_[static_cast<size_t>(group.gadget)];
  }
  absl::Span<const K> point() const { return point_; }
  const std::array<K, kProofNodes>& eq() const { return eq_; }

  bool has_bits() const { return !plan_.gadgets.empty(); }
  // Of the products of a column: as many as the gadget with the most of them needs.
  size_t product_variables() const { return product_variables_; }
  const std::vector<DotLevel>& levels() const { return levels_; }

  // Elements that the prover gives shares of, and their bytes: first sums; later sums.
  size_t FirstSums() const { return has_bits() ? kSumPoints - kProofNodes : 0; }
  size_t ProductSums() const { return has_bits() ? PointCount(product_variables_) - 1 : 0; }
  size_t LaterBytes() const;
  // How many elements ProductChallenges is drawn from.
  size_t ProductDraws() const { return product_variables_ + 1; }
  // Messages that a challenge follows.
  size_t Challenges() const { return levels_.size() + (has_bits() ? 1 : 0); }

 private:
  void AddGroup(const ColumnPlan::OfGadget& gadget, size_t row_bytes);

  const ProofLog* log_;
  const ColumnPlan plan_;
  size_t product_variables_ = 0;
  const std::vector<DotLevel> levels_;
  std::optional<ProofWeights> weights_;
  std::vector<SectionGroup> groups_;
  std::array<ProductForms, kGadgets> forms_;
  std::array<K, kNodeVariables> point_{};
  std::array<K, kProofNodes> eq_{};
};

}  // namespace mpckdc::proof

#endif  // MPC_SERVER_PROOF_STATEMENT_H_
