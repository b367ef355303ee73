// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/machine.h"

#include <sched.h>
#include <sys/utsname.h>

#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mpc-server/base/isa.h"
#include "mpc-server/bench/commit.h"  // written by commit.cmake at each build

namespace mpckdc::bench {
namespace {

std::string CpuModel() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!absl::StartsWith(line, "model name")) continue;
    return std::string(absl::StripAsciiWhitespace(line.substr(line.find(':') + 1)));
  }
  return "unknown";
}

}  // namespace

Machine ThisMachine() {
  Machine m;
  m.cpu = CpuModel();
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof(cores), &cores) == 0) m.cores = CPU_COUNT(&cores);
  utsname name = {};
  if (uname(&name) == 0) m.kernel = absl::StrCat(name.sysname, " ", name.release);
  m.best_isa = std::string(IsaName(SupportedIsas().back()));
  return m;
}

std::string Commit() { return MPCKDC_COMMIT; }

std::string MachineText() {
  const Machine m = ThisMachine();
  return absl::StrCat(m.cpu, ", ", m.cores, " cores, ", m.kernel, ", best instruction set ",
                      m.best_isa, "; commit ", Commit());
}

}  // namespace mpckdc::bench
