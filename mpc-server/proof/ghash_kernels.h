// SPDX-License-Identifier: Apache-2.0
// The map of ghash_field.h as a table of functions, one per instruction set. Internal to proof/.
#ifndef MPC_SERVER_PROOF_GHASH_KERNELS_H_
#define MPC_SERVER_PROOF_GHASH_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "mpc-server/proof/field128.h"

namespace mpckdc {
template <class F>
class IsaTable;  // base/isa.h: not included, see the note on leaks in bitslice/CMakeLists.txt
}

namespace mpckdc::proof {

// It is linear: of[k] is the image of the coefficient of x^k.
struct GhashImages {
  F of[128];
};

struct GhashKernels {
  // What `map` wants instead of the images, at most kGhashPlanBytes, 64-byte aligned.
  void (*plan)(const GhashImages& images, uint8_t* plan);
  // `blocks`: n of 16 bytes.
  void (*map)(const uint8_t* plan, const uint8_t* blocks, size_t n, F* out);
};
inline constexpr size_t kGhashPlanBytes = 2048;

extern const GhashKernels kGhashPortable, kGhashGfni512;
const IsaTable<GhashKernels>& AllGhashKernels();

}  // namespace mpckdc::proof

#endif  // MPC_SERVER_PROOF_GHASH_KERNELS_H_
