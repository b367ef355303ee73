// SPDX-License-Identifier: Apache-2.0
#ifndef MPC_SERVER_STORE_FOLDER_LOCK_H_
#define MPC_SERVER_STORE_FOLDER_LOCK_H_

#include <string>

#include "absl/status/statusor.h"

namespace mpckdc {

// Locks FOLDER/lock for as long as the descriptor, which the caller closes, is open.
// FailedPrecondition, naming the folder, when another process has it.
absl::StatusOr<int> LockFolder(const std::string& folder);

}  // namespace mpckdc

#endif  // MPC_SERVER_STORE_FOLDER_LOCK_H_
