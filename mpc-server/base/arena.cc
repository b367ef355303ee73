// SPDX-License-Identifier: Apache-2.0
// The arena behind SecretAllocate(). Small blocks come from regions of one size class each, large
// ones from a mapping of their own:
//
//   | inaccessible page | region: locked, not dumped, not inherited by fork | inaccessible page |
//
// A few large ones that are free are kept: to map, lock and fill one with zeros takes longer than
// most of what is computed in it.
// Classes are powers of two from 64 bytes. Free blocks of a class form a list threaded through a
// side table, never through the blocks, which stay all zero. Where the address sanitizer looks on
// it is told of what is free and of what lies behind a small block's end, which is mapped too.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "mpc-server/base/secret.h"

#if defined(__SANITIZE_ADDRESS__)
#define MPCKDC_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MPCKDC_ADDRESS_SANITIZER
#endif
#endif
#ifdef MPCKDC_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace mpckdc {
namespace {

#ifdef MPCKDC_ADDRESS_SANITIZER
void Forbid(const void* data, size_t size) { ASAN_POISON_MEMORY_REGION(data, size); }
void Allow(const void* data, size_t size) { ASAN_UNPOISON_MEMORY_REGION(data, size); }
#else
void Forbid(const void*, size_t) {}
void Allow(const void*, size_t) {}
#endif

constexpr size_t kSmallest = 64;
constexpr size_t kLargestClass = 256 << 10;
constexpr size_t kRegion = 1 << 20;
constexpr size_t kKeptBytes = 16 << 20;  // of large blocks that are free
constexpr size_t kClasses = std::countr_zero(kLargestClass) - std::countr_zero(kSmallest) + 1;

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "secret memory: %s\n", what);
  std::abort();
}

size_t PageSize() {
  static const size_t size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}
size_t RoundTo(size_t step, size_t n) { return (n + step - 1) / step * step; }
// Of a large block, at most an eighth more than asked for: so that there are few sizes. What is
// more lies before it, since writes go wrong past the end.
size_t MappedSize(size_t size) {
  return RoundTo(std::max(PageSize(), std::bit_ceil(size) / 16), size);
}
size_t Slack(size_t size) { return MappedSize(size) - RoundTo(PageSize(), size); }
size_t ClassOf(size_t size) {
  const size_t rounded = std::bit_ceil(size < kSmallest ? kSmallest : size);
  return std::countr_zero(rounded) - std::countr_zero(kSmallest);
}

class Arena {
 public:
  void* Allocate(size_t size) {
    absl::MutexLock lock(&mutex_);
    if (size > kLargestClass) {
      const size_t mapped = MappedSize(size);
      stats_.bytes_in_use += mapped;
      return static_cast<uint8_t*>(TakeKept(mapped)) + Slack(size);
    }
    const size_t c = ClassOf(size);
    if (free_[c].empty()) Refill(c);
    void* block = free_[c].back();
    free_[c].pop_back();
    stats_.bytes_in_use += kSmallest << c;
    Allow(block, size);
    return block;
  }

  void Free(void* data, size_t size) {
    Declassify(data, size);
    Wipe(data, size);
    absl::MutexLock lock(&mutex_);
    if (size > kLargestClass) {
      const size_t mapped = MappedSize(size);
      stats_.bytes_in_use -= mapped;
      Keep(static_cast<uint8_t*>(data) - Slack(size), mapped);
      return;
    }
    const size_t c = ClassOf(size);
    stats_.bytes_in_use -= kSmallest << c;
    Forbid(data, kSmallest << c);
    free_[c].push_back(data);  // capacity was reserved in Refill()
  }

  SecretArenaStats Stats() {
    absl::MutexLock lock(&mutex_);
    return stats_;
  }

 private:
  void* Map(size_t size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const size_t guard = PageSize();
    void* whole = mmap(nullptr, size + 2 * guard, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (whole == MAP_FAILED) Fail("out of address space");
    void* inner = static_cast<uint8_t*>(whole) + guard;
    if (mprotect(inner, size, PROT_READ | PROT_WRITE) != 0) Fail("out of memory");
    madvise(inner, size, MADV_DONTDUMP);
    madvise(inner, size, MADV_WIPEONFORK);
    // Best effort: past RLIMIT_MEMLOCK the pages work unlocked; GetSecretArenaStats() tells. Free
    // blocks that are kept go first.
    bool locked = mlock(inner, size) == 0;
    if (!locked && DropKept()) locked = mlock(inner, size) == 0;
    if (locked) stats_.bytes_locked += size;
    stats_.bytes_mapped += size;
    return inner;
  }

  void* TakeKept(size_t size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (Kept& kept : kept_) {
      if (kept.size != size) continue;
      void* block = kept.block;
      kept_bytes_ -= size;
      kept = kept_.back();
      kept_.pop_back();
      return block;
    }
    return Map(size);
  }

  // In place of those that were kept longest.
  void Keep(void* block, size_t size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    kept_.push_back({block, size});
    kept_bytes_ += size;
    while (kept_bytes_ > kKeptBytes) {
      Unmap(kept_.front().block, kept_.front().size);
      kept_bytes_ -= kept_.front().size;
      kept_.erase(kept_.begin());
    }
  }

  // False: none were kept.
  bool DropKept() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (kept_.empty()) return false;
    for (const Kept& kept : kept_) Unmap(kept.block, kept.size);
    kept_.clear();
    kept_bytes_ = 0;
    return true;
  }

  void Unmap(void* inner, size_t size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const size_t guard = PageSize();
    if (munlock(inner, size) == 0 && stats_.bytes_locked >= size) stats_.bytes_locked -= size;
    munmap(static_cast<uint8_t*>(inner) - guard, size + 2 * guard);
    stats_.bytes_mapped -= size;
  }

  void Refill(size_t c) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const size_t block = kSmallest << c;
    uint8_t* region = static_cast<uint8_t*>(Map(kRegion));
    Forbid(region, kRegion);
    blocks_[c] += kRegion / block;
    free_[c].reserve(blocks_[c]);
    for (size_t at = kRegion; at != 0; at -= block) free_[c].push_back(region + at - block);
  }

  absl::Mutex mutex_;
  std::array<std::vector<void*>, kClasses> free_ ABSL_GUARDED_BY(mutex_);
  std::array<size_t, kClasses> blocks_ ABSL_GUARDED_BY(mutex_) = {};
  struct Kept {
    void* block;
    size_t size;
  };
  std::vector<Kept> kept_ ABSL_GUARDED_BY(mutex_);
  size_t kept_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  SecretArenaStats stats_ ABSL_GUARDED_BY(mutex_);
};

// Leaked on purpose: secrets of static duration may be freed after any destructor here would run.
Arena& TheArena() {
  static Arena* const arena = new Arena;
  return *arena;
}

}  // namespace

void* SecretAllocate(size_t size) { return TheArena().Allocate(size); }

void SecretFree(void* data, size_t size) {
  if (data != nullptr) TheArena().Free(data, size);
}

SecretArenaStats GetSecretArenaStats() { return TheArena().Stats(); }

}  // namespace mpckdc
