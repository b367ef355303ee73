// SPDX-License-Identifier: Apache-2.0
// The passes of level1.h over one section with rows of 64 bytes, as a table of functions: one table
// per instruction set. Internal to proof/.
#ifndef MPC_SERVER_PROOF_LEVEL1_KERNELS_H_
#define MPC_SERVER_PROOF_LEVEL1_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "mpc-server/proof/field128.h"
#include "mpc-server/proof/field64.h"
#include "mpc-server/proof/forms.h"
#include "mpc-server/proof/gadget.h"

namespace mpckdc {
template <class F>
class IsaTable;  // base/isa.h: not included, see the note on leaks in bitslice/CMakeLists.txt
}

namespace mpckdc::proof {

inline constexpr size_t kNodes = 32;
inline constexpr size_t kPoints = 243;  // 3^5
inline constexpr size_t kWords = 8;     // of a row of 64 bytes
inline constexpr size_t kColumns = 64 * kWords;

// Rows [node][wire]. The row's value is that of `a`, plus that of `b` unless it is null. Words past
// `words` are zero or need not be looked at; nodes past `nodes` are zero and not in memory.
//
// A log is more than a cache holds, and rows are read in an order that a CPU does not foresee:
// while a kernel works on a section it asks for the next one's, `ahead` bytes on.
struct WireRows {
  const uint8_t* a;
  const uint8_t* b;
  size_t wires;
  size_t nodes;
  size_t words;
  ptrdiff_t ahead = 0;
};
inline __attribute__((always_inline)) void AskFor(const uint8_t* row, ptrdiff_t ahead) {
  constexpr int kRead = 0, kSecondLevel = 2;
  // The address is not dereferenced, and need not be one of this object.
  __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<intptr_t>(row) + ahead), kRead,
                     kSecondLevel);
}

// A sum that a kernel keeps in parts, which its caller adds up.
struct SumParts {
  WideK part[4];
};

// Of the columns. With `both` v is multiplied too.
struct FoldWeights {
  const K* column;  // kColumns
  bool both;
};

// Coefficients of the columns: the halves of elements of F, kColumns each. Where v's are the same
// pointers as u's it is faster.
struct FunctionalColumns {
  const K* u[2];
  const K* v[2];
};

struct FoldedSection {
  K* u;  // kColumns of each product
  K* v;
  size_t product_step;
};

// Of buffers that kernels are given, 64-byte aligned; what is in them is a kernel's own.
inline constexpr size_t kScratchBytes = size_t{64} << 10;
inline constexpr size_t kPlanBytes = size_t{104} << 10;

struct Level1Kernels {
  // weights[output][word]. sums: kPoints. Without corners not those of {0, 1}^5.
  void (*sums_at_points)(Gadget gadget, const WireRows& rows, const K* weights, bool corners,
                         uint8_t* scratch, SumParts* sums);
  // t: rows [node][output]. Without add_q only the shape of `rows` is used. sums: kNodes.
  void (*sums_of_t)(Gadget gadget, const uint8_t* t, const WireRows& rows, bool add_q,
                    const K* weights, SumParts* sums);
  // What folding needs that is the same for all sections.
  void (*plan_fold)(const ProductForms& forms, const K* eq, uint8_t* plan);
  void (*fold)(const uint8_t* plan, const ProductForms& forms, const WireRows& rows,
               const FoldWeights& weights, uint8_t* scratch, const FoldedSection& out);
  void (*plan_functional)(Gadget gadget, const K* node, const F* wire_u, const F* wire_v,
                          uint8_t* plan);
  // *u += wire_u * node * column * bit, and v, over all bits.
  void (*functional)(const uint8_t* plan, const WireRows& rows, const FunctionalColumns& columns,
                     uint8_t* scratch, F* u, F* v);
};

extern const Level1Kernels kLevel1Portable, kLevel1Avx2, kLevel1Gfni512;
const IsaTable<Level1Kernels>& AllLevel1Kernels();

}  // namespace mpckdc::proof

#endif  // MPC_SERVER_PROOF_LEVEL1_KERNELS_H_
