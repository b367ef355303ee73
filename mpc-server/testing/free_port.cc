// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/testing/free_port.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "mpc-server/wire/socket.h"

namespace mpckdc {
namespace {

// Those of integration-tests begin at 20000.
constexpr unsigned kFirst = 10000, kCount = 10000, kStride = 97;

}  // namespace

std::string FreeLoopbackAddress() {
  static std::atomic<unsigned> next = static_cast<unsigned>(getpid()) * kStride;
  for (unsigned tries = 0; tries < kCount; ++tries) {
    const std::string address = absl::StrCat("127.0.0.1:", kFirst + next++ % kCount);
    if (ListenOn(address, {}).ok()) return address;
  }
  std::fputs("no free port on the loopback interface\n", stderr);
  std::abort();
}

}  // namespace mpckdc
