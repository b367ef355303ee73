// SPDX-License-Identifier: Apache-2.0
// The fields' operations as a table of functions, one table per instruction set, filled from
// field_template.h. Internal to proof/; field64.h and field128.h are what others use.
#ifndef MPC_SERVER_PROOF_FIELD_KERNELS_H_
#define MPC_SERVER_PROOF_FIELD_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "mpc-server/proof/field128.h"
#include "mpc-server/proof/field64.h"

namespace mpckdc {
template <class F>
class IsaTable;  // base/isa.h: not included, see the note on leaks in bitslice/CMakeLists.txt
}

namespace mpckdc::proof {

// Vectors that stand in parts, `step` elements from each part's first to the next one's.
//
// Points (points.h): the parts are the nodes of so many variables, missing ones zero; the sums are
// of u * v over the columns, unreduced.
struct WideF {
  WideK low, high, both;  // of the low halves, of the high ones, of the sums of both
};

struct FieldKernels {
  K (*multiply)(K a, K b);
  F (*multiply_f)(F a, F b);
  K (*dot)(const K* a, const K* b, size_t n);
  void (*scale)(const K* a, K c, size_t n, K* out);
  F (*dot_f)(const F* a, const F* b, size_t n);
  void (*multiply_add_f)(const F* a, F c, size_t n, F* out);
  void (*multiply_add_kf)(const K* a, F c, size_t n, F* out);
  void (*multiply_each_fk)(const F* a, const K* b, size_t n, F* out);

  // sums[p] += of column i < n, all points p of `variables`.
  void (*points_k)(const K* u, const K* v, size_t step, size_t parts, size_t variables, size_t n,
                   WideK* sums);
  void (*points_f)(const F* u, const F* v, size_t step, size_t parts, size_t variables, size_t n,
                   WideF* sums);
  // out[i] = sum over the parts m of a[m * step + i] * c[m].
  void (*combine_kf)(const K* a, size_t step, const F* c, size_t parts, size_t n, F* out);
  void (*combine_f)(const F* a, size_t step, const F* c, size_t parts, size_t n, F* out);
};

extern const FieldKernels kFieldPortable, kFieldPclmul, kFieldVpclmul;
const IsaTable<FieldKernels>& AllFieldKernels();

}  // namespace mpckdc::proof

#endif  // MPC_SERVER_PROOF_FIELD_KERNELS_H_
