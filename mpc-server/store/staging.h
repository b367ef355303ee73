// SPDX-License-Identifier: Apache-2.0
//
// What both stores share: the state of a transaction, the checks before staging, and the texts of
// errors, so that a simulation sees what production says.
#ifndef MPC_SERVER_STORE_STAGING_H_
#define MPC_SERVER_STORE_STAGING_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "mpc-server/store/key_record.h"

namespace mpckdc {

struct StagingState {
  bool committed = false;
  absl::Time time;  // of the last Stage, or of the commit
  size_t keys = 0;
};

// Each record is well-formed and no handle occurs twice.
absl::Status CheckStageArguments(absl::Span<const KeyRecord> records);

absl::Status UnknownHandle(const Handle& handle);
absl::Status UnknownTransaction();
absl::Status AlreadyCommitted();
absl::Status HandleCommitted(const Handle& handle);
absl::Status HandleStaged(const Handle& handle);
absl::Status TooManyStaged();
absl::Status StagedKeysMissing(size_t want, size_t have);
absl::Status MarkNotHigher();

}  // namespace mpckdc

#endif  // MPC_SERVER_STORE_STAGING_H_
