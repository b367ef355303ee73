// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/proof/ghash_field.h"

#include "mpc-server/base/isa.h"
#include "mpc-server/proof/ghash_kernels.h"

namespace mpckdc::proof {
namespace {

constexpr F kRoot{K{0xced01d219ed414f2}, K{0x5442d102cb9e021a}};

void PlanPortable(const GhashImages& images, uint8_t* plan) {
  *reinterpret_cast<GhashImages*>(plan) = images;
}

// The coefficient of x^k is bit 7 - k%8 of byte k/8 (SP 800-38D, 6.3).
void MapPortable(const uint8_t* plan, const uint8_t* blocks, size_t n, F* out) {
  const auto& images = *reinterpret_cast<const GhashImages*>(plan);
  for (size_t b = 0; b < n; ++b, blocks += 16) {
    F sum;
    for (size_t k = 0; k < 128; ++k) {
      const uint64_t all = uint64_t{0} - (blocks[k / 8] >> (7 - k % 8) & 1u);
      sum += F{K{images.of[k].low.v & all}, K{images.of[k].high.v & all}};
    }
    out[b] = sum;
  }
}
static_assert(sizeof(GhashImages) <= kGhashPlanBytes);

// The best kernel and its plan.
struct Map {
  const GhashKernels& kernels = AllGhashKernels().For(BestIsa());
  alignas(64) uint8_t plan[kGhashPlanBytes];

  Map() {
    GhashImages images;
    images.of[0] = {kOne, K{}};
    for (size_t k = 1; k < 128; ++k) images.of[k] = images.of[k - 1] * kRoot;
    kernels.plan(images, plan);
  }
};

}  // namespace

constexpr GhashKernels kGhashPortable = {PlanPortable, MapPortable};

const IsaTable<GhashKernels>& AllGhashKernels() {
  static const IsaTable<GhashKernels> all = {
    {"portable", Isa::kPortable, kGhashPortable},
#if defined(__x86_64__)
    {"avx512_gfni", Isa::kAvx512, kGhashGfni512,
     __builtin_cpu_supports("gfni") != 0 && __builtin_cpu_supports("avx512vbmi") != 0},
#endif
  };
  return all;
}

void FromGhash(absl::Span<const Block> blocks, F* out) {
  static const Map map;
  if (blocks.empty()) return;
  map.kernels.map(map.plan, blocks.front().data(), blocks.size(), out);
}

}  // namespace mpckdc::proof
