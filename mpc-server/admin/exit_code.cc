// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/admin/exit_code.h"

#include "absl/strings/cord.h"

namespace mpckdc::admin {
namespace {

constexpr char kAdvicePayload[] = "mpc-admin/next";

}  // namespace

ExitCode ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return ExitCode::kOk;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return ExitCode::kUsage;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kCancelled:
      return ExitCode::kUnavailable;
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnimplemented:
      return ExitCode::kRefused;
    default:
      return ExitCode::kInconsistent;
  }
}

absl::Status Advise(absl::Status status, absl::string_view next) {
  if (!status.ok() && !status.GetPayload(kAdvicePayload).has_value()) {
    status.SetPayload(kAdvicePayload, absl::Cord(next));
  }
  return status;
}

std::string AdviceOf(const absl::Status& status) {
  if (const absl::optional<absl::Cord> next = status.GetPayload(kAdvicePayload)) {
    return std::string(*next);
  }
  switch (ExitCodeOf(status)) {
    case ExitCode::kUsage:
      return "see mpc-admin --help and mpc-admin(8)";
    case ExitCode::kUnavailable:
      return "check with mpc-admin status, then run the same command again";
    case ExitCode::kRefused:
      return "put right what the message says, then run the same command again";
    default:
      return "run mpc-admin doctor";
  }
}

}  // namespace mpckdc::admin
