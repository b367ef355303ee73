// SPDX-License-Identifier: Apache-2.0
// One server as one of the two that check a proof: L, whose bits are its own components, or R,
// whose bits are those to its left (share/proof_log.h). All that it has are shares.
#ifndef MPC_SERVER_PROOF_CHECKER_H_
#define MPC_SERVER_PROOF_CHECKER_H_

#include <array>
#include <vector>

#include "mpc-server/base/secret.h"
#include "mpc-server/proof/dot_product.h"
#include "mpc-server/proof/statement.h"

namespace mpckdc::proof {

class Checker {
 public:
  // kOwn: L. kLeft: R.
  Checker(Role role, Level1& level1) : role_(role), level1_(level1) {}

  // The field sections' part of the claim; `nodes`: T at the nodes.
  void Start(const Statement& statement, absl::Span<const WideK> nodes);
  // This side's shares of the first sums, in the order of the points that are no nodes; of the
  // later ones, as bytes in the order of the levels.
  SecretVector<K>& sums() { return sums_; }
  SecretBytes& later() { return later_; }
  // What this side added to the last level's mask.
  void SetMask(F u, F v) {
    mask_u_ = u;
    mask_v_ = v;
  }

  // The claim in the end, and this side's shares of u and v there. challenges: of the products (if
  // there are bits), then of each level.
  void Finish(const Statement& statement, absl::Span<const std::vector<F>> challenges);
  F claim() const { return claim_; }
  F u() const { return u_; }
  F v() const { return v_; }

 private:
  K ClaimAtPoint(const Statement& statement) const;
  F ClaimAfterProducts(const Statement& statement, K claim, absl::Span<const F> r) const;
  void AddBits(const Statement& statement, absl::Span<const F> r, const DotCoefficients& at);
  void AddFieldItems(const ProofFieldSection& section, absl::Span<const F> weights);
  void AddFieldPairs(const Statement& statement, F factor, const DotCoefficients& at);

  const Role role_;
  Level1& level1_;
  std::array<K, kProofNodes> nodes_{};
  F fields_, claim_, u_, v_, mask_u_, mask_v_;
  SecretVector<K> sums_;
  SecretBytes later_;
};

}  // namespace mpckdc::proof

#endif  // MPC_SERVER_PROOF_CHECKER_H_
