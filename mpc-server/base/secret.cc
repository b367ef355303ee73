// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/base/secret.h"

#include <sodium.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <cstdlib>

#ifdef MPCKDC_CONSTANT_TIME_MARKS
#include <valgrind/memcheck.h>
#endif

namespace mpckdc {

void Wipe(void* data, size_t size) {
  if (size != 0) sodium_memzero(data, size);
}

void WipeStack() {
  constexpr size_t kDeepest = 128 << 10;  // several times what a batch's computation takes
  sodium_stackzero(kDeepest);
}

bool ConstantTimeEqual(absl::Span<const uint8_t> a, absl::Span<const uint8_t> b) {
  return a.size() == b.size() && sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

bool DisableCoreDumps() {
  const struct rlimit none = {0, 0};
  const bool limited = setrlimit(RLIMIT_CORE, &none) == 0;
  return prctl(PR_SET_DUMPABLE, 0) == 0 && limited;
}

std::string RemoveGrpcTrace() {
  if (std::getenv("GRPC_TRACE") == nullptr) return "";
  unsetenv("GRPC_TRACE");
  return "GRPC_TRACE is ignored: gRPC's traces would print shares of keys and keystream; "
         "GRPC_VERBOSITY=DEBUG alone is safe and shows why a connection fails";
}

#ifdef MPCKDC_CONSTANT_TIME_MARKS
void MarkSecret(const void* data, size_t size) { VALGRIND_MAKE_MEM_UNDEFINED(data, size); }
void Declassify(const void* data, size_t size) { VALGRIND_MAKE_MEM_DEFINED(data, size); }
#else
void MarkSecret(const void*, size_t) {}
void Declassify(const void*, size_t) {}
#endif

}  // namespace mpckdc
