// SPDX-License-Identifier: Apache-2.0
//
// What a thief of a process's memory looks through.
#ifndef MPC_SERVER_TESTING_MEMORY_IMAGE_H_
#define MPC_SERVER_TESTING_MEMORY_IMAGE_H_

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace mpckdc {

// What an image of a server's memory holds: each block of the arena of secrets, whose pages alone
// are left out of cores, that begins at a multiple of 64 bytes.
inline void ForEachSecretBlock(const std::function<void(const uint8_t*)>& visit) {
  std::ifstream maps("/proc/self/smaps");
  const int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(memory, 0);
  unsigned long begin = 0, end = 0;
  for (std::string line; std::getline(maps, line);) {
    unsigned long from = 0, to = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &from, &to) == 2) {
      begin = from;
      end = to;
    }
    const bool secret = line.rfind("VmFlags:", 0) == 0 && line.find(" rd wr ") != line.npos &&
                        line.find(" dd") != line.npos;
    if (!secret) continue;
    std::vector<uint8_t> bytes(end - begin);
    const ssize_t got = pread(memory, bytes.data(), bytes.size(), static_cast<off_t>(begin));
    for (ssize_t at = 0; at + 32 <= got; at += 64) visit(&bytes[static_cast<size_t>(at)]);
  }
  close(memory);
}

}  // namespace mpckdc

#endif  // MPC_SERVER_TESTING_MEMORY_IMAGE_H_
