// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/defence/control.h"

#ifndef MPCKDC_CONTROL
#error "control.cc belongs to control builds alone"
#endif

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace mpckdc {
namespace {

std::atomic<unsigned> dropped{0};

unsigned Bit(Defence defence) { return 1u << static_cast<int>(defence); }

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

std::string DefenceName(Defence defence) {
  switch (defence) {
    case Defence::kRole: return "Role";
    case Defence::kTable: return "Table";
    case Defence::kClientsKey: return "ClientsKey";
    case Defence::kGate: return "Gate";
    case Defence::kTag: return "Tag";
    case Defence::kFreshness: return "Freshness";
    case Defence::kReplay: return "Replay";
    case Defence::kGrantPrincipal: return "GrantPrincipal";
    case Defence::kGrantBudget: return "GrantBudget";
    case Defence::kJobIds: return "JobIds";
    case Defence::kSameJob: return "SameJob";
    case Defence::kTagMask: return "TagMask";
    case Defence::kOneTag: return "OneTag";
    case Defence::kInheritance: return "Inheritance";
    case Defence::kOriginAge: return "OriginAge";
  }
  return "";
}

void DropForTest(Defence defence) { dropped |= Bit(defence); }

bool Upheld(Defence defence) {
  return (dropped & Bit(defence)) == 0 && !InFile(DefenceName(defence));
}

}  // namespace mpckdc
