// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "mpc-server/admin/commands.h"
#include "mpc-server/base/secret.h"

int main(int argc, char** argv) {
  mpckdc::DisableCoreDumps();
  if (const std::string warning = mpckdc::RemoveGrpcTrace(); !warning.empty()) {
    std::fprintf(stderr, "mpc-admin: %s\n", warning.c_str());
  }
  // gRPC's own messages would stand between ours; set the variable to see them.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  mpckdc::admin::Environment environment = mpckdc::admin::SystemEnvironment();
  return mpckdc::admin::RunAdmin(std::vector<std::string>(argv + 1, argv + argc), environment);
}
