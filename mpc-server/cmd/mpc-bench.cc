// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "mpc-server/bench/options.h"

// The file's own name and not /proc/self/exe: words before it (--launch) have another self.
int main(int argc, char** argv) {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  return mpckdc::bench::RunBench(error ? argv[0] : program.string(),
                                 std::vector<std::string>(argv + 1, argv + argc));
}
