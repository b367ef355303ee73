// SPDX-License-Identifier: Apache-2.0
// One server as the prover of its own messages. What it computes is G at points, level by level;
// message_proof.h splits it between L and R.
#ifndef MPC_SERVER_PROOF_PROVER_H_
#define MPC_SERVER_PROOF_PROVER_H_

#include <vector>

#include "mpc-server/base/secret.h"
#include "mpc-server/proof/dot_product.h"
#include "mpc-server/proof/statement.h"

namespace mpckdc::proof {

// u and v of all columns of bits, product by product.
class FoldedBits {
 public:
  void Fold(const Statement& statement, Level1& level1);
  size_t columns() const { return columns_; }
  const K* u(size_t product) const { return u_.data() + product * columns_; }
  const K* v(size_t product) const { return v_.data() + product * columns_; }

 private:
  size_t columns_ = 0;
  SecretVector<K> u_, v_;
};

class Prover {
 public:
  // `level1` must outlive this.
  explicit Prover(Level1& level1) : level1_(level1) {}

  // After the point.
  void FoldNodes(const Statement& statement) { bits_.Fold(statement, level1_); }

  // The sums over each column's products, at the points of {0, 1, inf}^d: of bits alone.
  void ProductSums(const Statement& statement, K* out);
  void FoldProducts(const Statement& statement, const ProductChallenges& r);

  // From here on the dot product; its last level's mask is set first.
  DotProver& dot() { return dot_; }

 private:
  void AddNinth(const SectionGroup& group, K* sums) const;

  Level1& level1_;
  FoldedBits bits_;
  DotProver dot_;
};

}  // namespace mpckdc::proof

#endif  // MPC_SERVER_PROOF_PROVER_H_
