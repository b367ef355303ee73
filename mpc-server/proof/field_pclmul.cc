// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/proof/clmul_pclmul.h"
#include "mpc-server/proof/field_template.h"

namespace mpckdc::proof {
constexpr FieldKernels kFieldPclmul = FieldTemplate<ClmulPclmul>::Kernels();
}  // namespace mpckdc::proof
