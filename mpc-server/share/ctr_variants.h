// SPDX-License-Identifier: Apache-2.0
// The implementations that CtrFunctionsFor() chooses from; for tests. (Not in ctr_stream.h: the
// instruction sets' files include plain C headers only.)
#ifndef MPC_SERVER_SHARE_CTR_VARIANTS_H_
#define MPC_SERVER_SHARE_CTR_VARIANTS_H_

#include <vector>

#include "mpc-server/base/isa.h"
#include "mpc-server/share/ctr_stream.h"

namespace mpckdc {

// A tier (Isa) may have several, because some of its CPUs have more instructions than it asks for.
struct CtrVariant {
  const char* name;
  Isa tier;
  bool (*supported)();  // beyond the tier's own instructions
  CtrFunctions functions;
};
// All that this CPU can run, the best of a tier last.
std::vector<CtrVariant> SupportedCtrs();

}  // namespace mpckdc

#endif  // MPC_SERVER_SHARE_CTR_VARIANTS_H_
