// SPDX-License-Identifier: Apache-2.0
// Memory for secrets: locked, guarded, never dumped, wiped when freed. The only folder that locks
// or wipes.
//
// Everything that holds a share, a seed or a key lives in SecretVector<T>, SecretBytes or
// Secret<T>. They allocate from one arena of the process (arena.cc): pages are mlocked, fenced by
// inaccessible pages and left out of core dumps and forked children. Freed blocks are wiped.
#ifndef MPC_SERVER_BASE_SECRET_H_
#define MPC_SERVER_BASE_SECRET_H_

#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace mpckdc {

// Overwrites memory in a way that the compiler does not remove.
void Wipe(void* data, size_t size);

// Overwrites what calls that have returned left on this thread's stack: for a thread that has
// worked on secrets and will now wait for long.
void WipeStack();

// Compares without a data-dependent branch. Unequal lengths compare unequal.
bool ConstantTimeEqual(absl::Span<const uint8_t> a, absl::Span<const uint8_t> b);

// Turns off core dumps and ptrace attachment for this process. Call it first thing in main().
// Returns false when the kernel refused.
bool DisableCoreDumps();

// Takes GRPC_TRACE out of the environment; returns a warning for the administrator, empty if it was
// not set. gRPC's traces print every message as it is inside TLS, byte by byte: shares, of which
// three make a keystream. Call before gRPC starts and before there is a second thread.
std::string RemoveGrpcTrace();

// 64-byte aligned block of the arena, zero-filled. Never null: running out of memory aborts.
void* SecretAllocate(size_t size);
// `size` must be the size asked for. Wipes. Null is allowed.
void SecretFree(void* data, size_t size);

struct SecretArenaStats {
  size_t bytes_mapped = 0;  // from the system
  size_t bytes_in_use = 0;  // handed out, rounded up to size classes
  size_t bytes_locked = 0;  // of bytes_mapped; smaller when RLIMIT_MEMLOCK is too small

  bool all_locked() const { return bytes_locked == bytes_mapped; }
};
SecretArenaStats GetSecretArenaStats();

template <class T>
struct SecretAllocator {
  using value_type = T;
  SecretAllocator() = default;
  template <class U>
  SecretAllocator(const SecretAllocator<U>&) {}  // NOLINT: converting, as allocators do
  T* allocate(size_t n) { return static_cast<T*>(SecretAllocate(n * sizeof(T))); }
  void deallocate(T* p, size_t n) { SecretFree(p, n * sizeof(T)); }
  friend bool operator==(const SecretAllocator&, const SecretAllocator&) { return true; }
};

template <class T>
using SecretVector = std::vector<T, SecretAllocator<T>>;
using SecretBytes = SecretVector<uint8_t>;

// One value of a trivially copyable type in the arena. Not copyable; Get() says where it is read.
template <class T>
class Secret {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Secret() : value_(new (SecretAllocate(sizeof(T))) T{}) {}
  explicit Secret(const T& value) : Secret() { *value_ = value; }
  Secret(Secret&& other) noexcept : value_(std::exchange(other.value_, nullptr)) {}
  Secret& operator=(Secret&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Secret() { SecretFree(value_, sizeof(T)); }

  T& Get() { return *value_; }
  const T& Get() const { return *value_; }

 private:
  T* value_;
};

// In a build with MPCKDC_CONSTANT_TIME_MARKS, valgrind memcheck treats marked bytes as undefined
// and reports every branch or address that depends on them; otherwise both do nothing.
// Declassify() marks what may be known, and stands only where a value is meant to be opened or has
// left for a peer.
void MarkSecret(const void* data, size_t size);
void Declassify(const void* data, size_t size);

}  // namespace mpckdc

#endif  // MPC_SERVER_BASE_SECRET_H_
