// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/proof/clmul_portable.h"
#include "mpc-server/proof/field_template.h"

namespace mpckdc::proof {
constexpr FieldKernels kFieldPortable = FieldTemplate<ClmulPortable>::Kernels();
}  // namespace mpckdc::proof
