// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/testing/control.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>

#include "absl/base/const_init.h"
#include "absl/synchronization/mutex.h"

namespace mpckdc {
namespace {

ABSL_CONST_INIT absl::Mutex mu(absl::kConstInit);

std::set<std::string>& Dropped() {
  static auto* const dropped = new std::set<std::string>;
  return *dropped;
}

bool InFile(const std::string& name) {
  const char* const path = std::getenv("MPCKDC_CONTROL_FILE");
  if (path == nullptr) return false;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line == name) return true;
  }
  return false;
}

// Nobody shall run this by mistake.
const int said = std::fputs("CONTROL BUILD for tests: defences can be switched off\n", stderr);

}  // namespace

void DropForTest(const std::string& defence) {
  const absl::MutexLock lock(&mu);
  Dropped().insert(defence);
}

void UpholdForTest(const std::string& defence) {
  const absl::MutexLock lock(&mu);
  Dropped().erase(defence);
}

bool Upheld(const std::string& defence) {
  const absl::MutexLock lock(&mu);
  return !Dropped().contains(defence) && !InFile(defence);
}

}  // namespace mpckdc
