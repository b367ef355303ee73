// SPDX-License-Identifier: Apache-2.0
//
// Requests into the patched krb5kdc: kdc_fuzz.h.
#include <cstdlib>
#include <string>

#include "krb5-patches/fuzz/kdc_fuzz.h"
#include "mpc-server/testing/fuzz.h"

namespace mpckdc {
namespace {

void Start() {
  static const bool started = [] {
    const char* const tools = std::getenv("MPCKDC_KRB5");
    kdc_fuzz_start(tools != nullptr ? tools : MPCKDC_FUZZ_KRB5_TOOLS);
    return true;
  }();
  static_cast<void>(started);
}

FuzzSeeds SeedsOf(void (*make)(kdc_fuzz_seed add, void* arg)) {
  Start();
  FuzzSeeds seeds;
  const auto add = [](void* arg, const void* bytes, size_t size) {
    static_cast<FuzzSeeds*>(arg)->emplace_back(static_cast<const char*>(bytes), size);
  };
  make(add, &seeds);
  return seeds;
}
FuzzSeeds Seeds() { return SeedsOf(kdc_fuzz_seeds); }
FuzzSeeds RemoteSeeds() { return SeedsOf(kdc_fuzz_remote_seeds); }

MPCKDC_FUZZ(kdc_request, Seeds) {
  Start();
  kdc_fuzz_try(in.data(), in.size());
}

MPCKDC_FUZZ(kdc_remote, RemoteSeeds) {
  Start();
  kdc_fuzz_remote_try(in.data(), in.size());
}

}  // namespace
}  // namespace mpckdc
