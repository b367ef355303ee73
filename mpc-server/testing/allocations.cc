// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/testing/allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

static std::atomic<size_t> g_allocations = 0;

void* operator new(size_t size) {
  ++g_allocations;
  void* const p = std::malloc(size);
  if (p == nullptr) std::abort();
  return p;
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }

namespace mpckdc {

size_t CountedAllocations() { return g_allocations; }

}  // namespace mpckdc
