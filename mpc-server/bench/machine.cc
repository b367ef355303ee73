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

nlohmann::ordered_json ThisMachine() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  sched_getaffinity(0, sizeof(cores), &cores);
  utsname name = {};
  uname(&name);
  return {{"cpu", CpuModel()},
          {"cores", CPU_COUNT(&cores)},
          {"kernel", absl::StrCat(name.sysname, " ", name.release)},
          {"best_isa", std::string(IsaName(SupportedIsas().back()))}};
}

std::string Commit() { return MPCKDC_COMMIT; }

std::string MachineText() {
  const nlohmann::ordered_json m = ThisMachine();
  return absl::StrCat(m["cpu"].get<std::string>(), ", ", m["cores"].get<int>(), " cores, ",
                      m["kernel"].get<std::string>(), ", best instruction set ",
                      m["best_isa"].get<std::string>(), "; commit ", Commit());
}

}  // namespace mpckdc::bench
