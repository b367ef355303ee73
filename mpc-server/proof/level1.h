// SPDX-License-Identifier: Apache-2.0
// The passes over the log's rows that a proof consists of. A section has 32 nodes (instances of one
// gadget), and in every node a row of 8 or 64 bytes for each wire: lane b of word w is bit b of the
// row's little-endian word w. A column is a lane of a section, 64 * w + b.
//
// Weights of a proof:  beta_j for output j of the gadget;  omega_w for a word of the section;  x^b
// for a lane, because a word is the element of K with its bits;  none for a node.
//
// Every pass takes several sections of one gadget and one row size: small rows of up to eight of
// them are worked on at once, so a call for each would cost up to eight times as much.
//
// Nothing branches on a row or indexes by one. Weights, points and coefficients are public.
#ifndef MPC_SERVER_PROOF_LEVEL1_H_
#define MPC_SERVER_PROOF_LEVEL1_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mpc-server/base/isa.h"
#include "mpc-server/base/secret.h"
#include "mpc-server/proof/field128.h"
#include "mpc-server/proof/field64.h"
#include "mpc-server/proof/forms.h"
#include "mpc-server/proof/gadget.h"
#include "mpc-server/proof/level1_kernels.h"

namespace mpckdc::proof {

// Whose rows: what a server holds of itself and of the party before it. For rows that the next
// party opened it is that party's left neighbour (L) with its own; for rows that the party before
// it opened it is that party's right neighbour (R) with those on the left.
enum class Role { kOwn = 0, kLeft = 1 };

// Wires may also be taken as the sum of both roles, which is the prover's x.
enum class Wires { kOwn = 0, kLeft = 1, kSum = 2 };

struct Section {
  // By role. Rows [nodes][GadgetWires(gadget)], rows [nodes][GadgetBits(gadget)]; the pass says
  // which it reads, others may be null. 8-byte aligned.
  const uint8_t* wires[2];
  const uint8_t* t[2];
  const K* omega;     // one for each 8 bytes of a row
  size_t nodes = 32;  // 1 to 32; those missing count as zero and need no memory
};

struct Sections {
  Gadget gadget;
  size_t row_bytes;  // 8 or 64
  absl::Span<const Section> all;

  size_t columns() const { return 8 * row_bytes; }  // of one section
};

// How Fold spreads a column's weight omega * x^b over the pair (u, v).
enum class Weighting {
  kOnU,         // u has it, v has none
  kRootOnBoth,  // each has the square root: then u and v are functionals of the bits that differ in
                // the wires' coefficients alone, and Evaluate is faster
};

// Where the prover's folded columns go; they are written in runs of a section's columns for one
// product, and as fast for any steps. Of section i, product m, column l, the pair is
//   u[i * section_step + m * product_step + l], v[the same]
struct FoldedColumns {
  K* u;
  K* v;
  size_t section_step;
  size_t product_step;
};

// A rank-one functional of the bits of some sections.
struct Functional {
  const K* node;    // 32
  const F* wire_u;  // GadgetWires(gadget)
  const F* wire_v;
  const F* column;   // Sections::columns(), the same for every section
  const F* section;  // one for each section
  Weighting weighting;
};

struct FunctionalSums {
  F u, v;
};

// The passes with their buffers. For one thread at a time.
class Level1 {
 public:
  explicit Level1(const Level1Kernels& kernels = AllLevel1Kernels().For(BestIsa()));

  // sums[p] += sum over sections, words of omega * sum_j beta_j Q_j(x at point p, as words in K),
  // for the 243 points p of {0, 1, inf}^5. Index of a point: sum_i d_i * 3^i, d_i = 0, 1 or 2 (inf)
  // for variable i, which is bit i of the node's number. At inf a bit is the XOR of those at 0, 1.
  // Without `corners`, the 32 points of {0, 1}^5, which are sums of T, are left as they are.
  void SumsAtPoints(const Sections& sections, const K* betas, bool corners, WideK* sums);

  // sums[s] += sum over sections, words of omega * sum_j beta_j t_j of node s, for the 32 nodes;
  // for kLeft, Q_j(wires) of that role is added to t_j.
  void SumsOfT(const Sections& sections, Role role, const K* betas, WideK* sums);

  // Both, of those whose sums are given: the prover's points, and each role's
  // nodes.
  struct FirstSums {
    WideK* points;
    WideK* nodes[2];
  };
  void Sums(const Sections& sections, const K* betas, bool corners, const FirstSums& sums);

  // Of the prover. With E_k = sum_s eq[s] * (wire k of node s) in each column:
  //   kOnU         u = omega * x^b * U_m(E)          v = V_m(E)
  //   kRootOnBoth  u = root(omega * x^b) * U_m(E)    v = root(omega * x^b) * V_m(E)
  void Fold(const Sections& sections, const K* eq, const ProductForms& forms, Weighting weighting,
            const FoldedColumns& out);

  // What the folds above are of one role's bits (Wires::kSum: of the prover's). With `bit` the bit
  // of wire k, node s, column l of section i, and `root` the root of omega * x^b:
  //   sums.u += section[i] * wire_u[k] * node[s] * column[l] * (kOnU: omega * x^b; else root) * bit
  //   sums.v += section[i] * wire_v[k] * node[s] * column[l] * (kOnU: 1;           else root) * bit
  void Evaluate(const Sections& sections, Wires wires, const Functional& functional,
                FunctionalSums& sums);

 private:
  struct Halves;
  uint8_t* plan() { return reinterpret_cast<uint8_t*>(plan_.data()); }
  void EvaluateLarge(const Sections& sections, Wires wires, const Functional& functional,
                     FunctionalSums& sums);
  void EvaluateSmall(const Sections& sections, Wires wires, const Functional& functional,
                     FunctionalSums& sums);

  const Level1Kernels& kernels_;
  SecretBytes scratch_;  // of the kernels
  SecretBytes packed_;   // small rows of eight sections side by side: wires, then outputs
  SecretVector<SumParts> parts_;
  SecretVector<K> columns_;  // folded, of packed sections
  struct alignas(64) Line {
    uint8_t bytes[64];
  };
  std::vector<Line> plan_;  // of the kernels; public
};

}  // namespace mpckdc::proof

#endif  // MPC_SERVER_PROOF_LEVEL1_H_
