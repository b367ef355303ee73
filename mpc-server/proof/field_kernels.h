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

struct FieldKernels {
  K (*multiply)(K a, K b);
  F (*multiply_f)(F a, F b);
  K (*dot)(const K* a, const K* b, size_t n);
  void (*multiply_add)(const K* a, K c, size_t n, K* out);
  void (*scale)(const K* a, K c, size_t n, K* out);
  void (*multiply_each)(const K* a, const K* b, size_t n, K* out);
  F (*dot_f)(const F* a, const F* b, size_t n);
  F (*dot_fk)(const F* a, const K* b, size_t n);
  void (*multiply_add_f)(const F* a, F c, size_t n, F* out);
  void (*multiply_add_kf)(const K* a, F c, size_t n, F* out);
  void (*multiply_each_fk)(const F* a, const K* b, size_t n, F* out);
  void (*fold_f)(const F* zero, const F* one, F r, size_t n, F* out);
  void (*fold_k)(const K* zero, const K* one, F r, size_t n, F* out);
};

extern const FieldKernels kFieldPortable, kFieldPclmul, kFieldVpclmul;
const IsaTable<FieldKernels>& AllFieldKernels();

}  // namespace mpckdc::proof

#endif  // MPC_SERVER_PROOF_FIELD_KERNELS_H_
