// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/store/staging.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/limits.h"

namespace mpckdc {

absl::Status CheckStageArguments(absl::Span<const KeyRecord> records) {
  std::set<Handle> seen;
  for (const KeyRecord& record : records) {
    if (absl::Status status = CheckKeyRecord(record); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("key ", HandleText(record.info.handle), ": ",
                                                     status.message()));
    }
    if (!seen.insert(record.info.handle).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("key ", HandleText(record.info.handle), " is given twice"));
    }
  }
  return absl::OkStatus();
}

absl::Status UnknownHandle(const Handle& handle) {
  return absl::NotFoundError(absl::StrCat("no key ", HandleText(handle)));
}

absl::Status UnknownTransaction() {
  return absl::NotFoundError(
      "no such transaction: it was never staged here, was aborted, or has expired");
}

absl::Status AlreadyCommitted() {
  return absl::FailedPreconditionError("the transaction is committed already");
}

absl::Status HandleCommitted(const Handle& handle) {
  return absl::AlreadyExistsError(absl::StrCat("key ", HandleText(handle), " exists already"));
}

absl::Status HandleStaged(const Handle& handle) {
  return absl::AlreadyExistsError(
      absl::StrCat("key ", HandleText(handle), " is staged by another transaction"));
}

absl::Status TooManyStaged() {
  return absl::FailedPreconditionError(
      absl::StrCat("more than ", limits::kMaxStagedKeys,
                   " keys would be staged: commit or abort the other transactions first"));
}

absl::Status StagedKeysMissing(size_t want, size_t have) {
  return absl::DataLossError(absl::StrCat("the transaction staged ", want, " keys but ", have,
                                          " are there: abort it and enrol again"));
}

absl::Status MarkNotHigher() {
  return absl::FailedPreconditionError("the nonce mark can only rise");
}

}  // namespace mpckdc
