// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/base/secret.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace mpckdc {
namespace {

TEST(SecretTest, BlocksAreAlignedZeroAndWipedOnFree) {
  for (size_t size : {1u, 63u, 64u, 65u, 4096u, 262144u, 262145u, 5000000u}) {
    auto* p = static_cast<uint8_t*>(SecretAllocate(size));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % 64, 0u);
    for (size_t i = 0; i < size; ++i) ASSERT_EQ(p[i], 0);
    std::memset(p, 0xAB, size);
    SecretFree(p, size);
  }
  // A freed small block is handed out next, and is zero again.
  auto* p = static_cast<uint8_t*>(SecretAllocate(100));
  std::memset(p, 0xAB, 100);
  SecretFree(p, 100);
  auto* q = static_cast<uint8_t*>(SecretAllocate(100));
  EXPECT_EQ(p, q);
  for (size_t i = 0; i < 100; ++i) ASSERT_EQ(q[i], 0);
  SecretFree(q, 100);
}

TEST(SecretTest, UseReturnsToWhereItWas) {
  const size_t before = GetSecretArenaStats().bytes_in_use;
  {
    SecretVector<uint64_t> v(1000);
    v.resize(100000);
    Secret<int> s(7);
    Secret<int> t = std::move(s);
    EXPECT_EQ(t.Get(), 7);
    EXPECT_GT(GetSecretArenaStats().bytes_in_use, before);
  }
  EXPECT_EQ(GetSecretArenaStats().bytes_in_use, before);
}

TEST(SecretDeathTest, WritingPastARegionFaults) {
  auto* p = static_cast<uint8_t*>(SecretAllocate(1 << 20));
  EXPECT_DEATH(*static_cast<volatile uint8_t*>(p + (1 << 20)) = 1, "");
  EXPECT_DEATH(*static_cast<volatile uint8_t*>(p - 1) = 1, "");
  SecretFree(p, 1 << 20);
}

TEST(SecretTest, ForkedChildSeesZeros) {
  auto* p = static_cast<volatile uint8_t*>(SecretAllocate(4096));
  p[0] = 42;
  const pid_t child = fork();
  if (child == 0) _exit(p[0]);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(p[0], 42);
  SecretFree(const_cast<uint8_t*>(p), 4096);
}

TEST(SecretTest, LargeBlocksAreKeptForTheNextWipedAndNotForEver) {
  constexpr size_t kSize = 3 << 20;
  const size_t before = GetSecretArenaStats().bytes_mapped;
  auto* p = static_cast<uint8_t*>(SecretAllocate(kSize));
  std::memset(p, 42, kSize);
  SecretFree(p, kSize);
  auto* again = static_cast<uint8_t*>(SecretAllocate(kSize));
  EXPECT_EQ(again, p);
  for (size_t i = 0; i < kSize; ++i) ASSERT_EQ(again[i], 0) << i;
  SecretFree(again, kSize);
  std::vector<void*> many;
  for (int i = 0; i < 32; ++i) many.push_back(SecretAllocate(kSize));
  for (void* block : many) SecretFree(block, kSize);
  EXPECT_LE(GetSecretArenaStats().bytes_mapped, before + (16 << 20));
  EXPECT_TRUE(GetSecretArenaStats().all_locked());
}

TEST(SecretTest, ConstantTimeEqual) {
  const uint8_t a[3] = {1, 2, 3}, b[3] = {1, 2, 4};
  EXPECT_TRUE(ConstantTimeEqual(a, a));
  EXPECT_FALSE(ConstantTimeEqual(a, b));
  EXPECT_FALSE(ConstantTimeEqual(a, absl::MakeConstSpan(a, 2)));
}

TEST(SecretTest, DisableCoreDumps) {
  EXPECT_TRUE(DisableCoreDumps());
  struct rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_CORE, &limit), 0);
  EXPECT_EQ(limit.rlim_max, 0u);
}

// A page of the arena as /proc/self/smaps shows it.
std::string FlagsOfMapping(const void* p) {
  std::ifstream smaps("/proc/self/smaps");
  const auto address = reinterpret_cast<uintptr_t>(p);
  bool here = false;
  for (std::string line; std::getline(smaps, line);) {
    uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      here = begin <= address && address < end;
    } else if (here && line.starts_with("VmFlags:")) {
      return line + " ";
    }
  }
  return "";
}

TEST(SecretTest, PagesAreLockedNotDumpedAndWipedOnFork) {
  for (const size_t size : {64u, 4096u, 1u << 20}) {
    void* p = SecretAllocate(size);
    const std::string flags = FlagsOfMapping(p);
    for (const char* flag : {" lo ", " dd ", " wf "}) {
      EXPECT_NE(flags.find(flag), std::string::npos) << size << " bytes: " << flags;
    }
    SecretFree(p, size);
  }
  EXPECT_TRUE(GetSecretArenaStats().all_locked());
  // The check sees: ordinary memory has none of the three.
  const std::vector<char> ordinary(1 << 20);
  const std::string flags = FlagsOfMapping(ordinary.data());
  EXPECT_NE(flags, "");
  for (const char* flag : {" lo ", " dd ", " wf "}) {
    EXPECT_EQ(flags.find(flag), std::string::npos) << flags;
  }
}

TEST(SecretDeathTest, ReadingPastARegionFaults) {
  auto* p = static_cast<uint8_t*>(SecretAllocate(1 << 20));
  EXPECT_DEATH((void)*static_cast<volatile uint8_t*>(p + (1 << 20)), "");
  EXPECT_DEATH((void)*static_cast<volatile uint8_t*>(p - 1), "");
  (void)*static_cast<volatile uint8_t*>(p + (1 << 20) - 1);  // the last byte inside is readable
  SecretFree(p, 1 << 20);
}

// Nor is there room behind a block of another size, for which more is mapped.
TEST(SecretDeathTest, ReadingPastALargeBlockFaults) {
  constexpr size_t kSize = (1 << 20) + 4096;
  auto* p = static_cast<uint8_t*>(SecretAllocate(kSize));
  EXPECT_DEATH((void)*static_cast<volatile uint8_t*>(p + kSize), "");
  p[kSize - 1] = 1;
  SecretFree(p, kSize);
}

// In a child that may lock nothing: exits with 0 when memory works and is counted as not locked.
[[noreturn]] void AllocateWithoutLocking() {
  const struct rlimit none = {0, 0};
  if (setrlimit(RLIMIT_MEMLOCK, &none) != 0) _exit(2);
  if (geteuid() == 0 && setuid(65534) != 0) _exit(3);  // root may lock without a limit
  auto* p = static_cast<volatile uint8_t*>(SecretAllocate(2 << 20));
  p[0] = 1;
  _exit(GetSecretArenaStats().all_locked() ? 1 : 0);
}

TEST(SecretDeathTest, MemoryThatCannotBeLockedIsCounted) {
  EXPECT_EXIT(AllocateWithoutLocking(), testing::ExitedWithCode(0), "");
}

// In a child that may lock 8 MB: exits with 0 when what is in use is locked. What was freed before
// gives way.
[[noreturn]] void AllocateBesideFreeBlocks() {
  const struct rlimit some = {8 << 20, 8 << 20};
  if (setrlimit(RLIMIT_MEMLOCK, &some) != 0) _exit(2);
  if (geteuid() == 0 && setuid(65534) != 0) _exit(3);
  std::vector<void*> many;
  for (int i = 0; i < 5; ++i) many.push_back(SecretAllocate(1 << 20));
  for (void* block : many) SecretFree(block, 1 << 20);
  auto* p = static_cast<volatile uint8_t*>(SecretAllocate(4 << 20));
  p[0] = 1;
  _exit(GetSecretArenaStats().all_locked() ? 0 : 1);
}

TEST(SecretDeathTest, FreeBlocksLeaveTheLimitOfLockedMemoryToOthers) {
  EXPECT_EXIT(AllocateBesideFreeBlocks(), testing::ExitedWithCode(0), "");
}

TEST(SecretTest, GrpcTraceIsRemoved) {
  setenv("GRPC_TRACE", "all", 1);
  EXPECT_NE(RemoveGrpcTrace(), "");
  EXPECT_EQ(std::getenv("GRPC_TRACE"), nullptr);
  EXPECT_EQ(RemoveGrpcTrace(), "");
}

}  // namespace
}  // namespace mpckdc
