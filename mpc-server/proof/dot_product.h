// SPDX-License-Identifier: Apache-2.0
// <u, v> = c, proved by one party that knows u and v to two verifiers that hold additive shares of
// u, v and c: a sum-check of few variables at a time (Lund, Fortnow, Karloff, Nisan 1992; between a
// prover and verifiers with shares: Boneh, Boyle, Corrigan-Gibbs, Gilboa, Ishai, CRYPTO 2019).
//
// A vector is cut into eight parts (or four, or two), which are the values of a multilinear
// function of three variables at its nodes (points.h):
//
//     index   0 ........................................... n
//     part    |  0  |  1  |  2  |  3  |  4  |  5  |  6  | 7|       the last ones may be short or
//                                                                  empty: zero
//     level:  G(p) = sum over i of u_i(p) v_i(p) at the 27 points;  c = sum of G at the 8 nodes
//             the prover gives shares of all G(p) but G(0), which follows from c
//             challenge r;  c := G(r),  u := u(r),  v := v(r), an eighth as long
//
// Vectors consist of rows of 512. Levels cut the rows until one is left, then the row: into 64, 16,
// 4, 2 and 1. Of vectors as short as these a level costs little time, and each variable of a level
// of three costs 149 bytes, of two 80.
// The last level has a variable more. Node 2, where it alone is 1, holds random values that do not
// count in c, node 3 is zero: so u and v at the end have a uniform summand, and a verifier that
// hears the other's share of them learns nothing.
#ifndef MPC_SERVER_PROOF_DOT_PRODUCT_H_
#define MPC_SERVER_PROOF_DOT_PRODUCT_H_

#include <array>
#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/proof/field128.h"
#include "mpc-server/proof/points.h"

namespace mpckdc::proof {

inline constexpr size_t kMostParts = 8;
inline constexpr size_t kDotRow = 512;

struct DotLevel {
  size_t size;       // of the vectors
  size_t part;       // of each part
  size_t parts;      // 8, 4 or 2
  size_t variables;  // of so many parts; of the last level one more

  size_t points() const { return PointCount(variables); }
  bool masked() const { return part == 1; }
  size_t mask_node() const { return parts; }
};

// The levels for so many rows, at least one.
std::vector<DotLevel> DotLevels(size_t rows);

// The claim's share after a level: `values` are shares of G at all points but 0.
F NextClaim(const DotLevel& level, F claim, absl::Span<const F> values, absl::Span<const F> r);

// With what each index of the first level's vectors enters the last value: row and place in it.
struct DotCoefficients {
  std::vector<F> rows;
  std::array<F, 8> words;         // of the place: its word of 64
  std::array<F, 64> bits;         // and where in the word
  std::array<F, kDotRow> places;  // their products
  F mask;                         // of what stands at the mask's node

  // challenges[i]: of levels[i].
  DotCoefficients(absl::Span<const DotLevel> levels, absl::Span<const std::vector<F>> challenges);
};

// The prover's vectors.
class DotProver {
 public:
  // To be filled in, `rows` rows each; what lies behind is zero.
  void Resize(size_t rows);
  F* u() { return u_.all.data(); }
  F* v() { return v_.all.data(); }
  absl::Span<const DotLevel> levels() const { return levels_; }

  // What stands at the mask's node.
  void SetMask(F u, F v) {
    u_.mask = u;
    v_.mask = v;
  }

  // G at all points but 0 of the level under way.
  void Values(F* out);

  // Folds and goes on to the next level.
  void Fold(absl::Span<const F> r);

 private:
  // One of the two vectors, behind whose end there are zeros up to a level's last part's end, and
  // what of it stands at the mask's node.
  struct Vector {
    SecretVector<F> all, folded;
    F mask;
  };
  void FoldVector(const DotLevel& level, const F* eq, Vector& vector) const;
  size_t Padded(size_t level) const { return levels_[level].parts * levels_[level].part; }

  std::vector<DotLevel> levels_;
  size_t level_ = 0;
  Vector u_, v_;
};

}  // namespace mpckdc::proof

#endif  // MPC_SERVER_PROOF_DOT_PRODUCT_H_
