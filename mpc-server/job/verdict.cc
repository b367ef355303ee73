// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/job/verdict.h"

namespace mpckdc {

absl::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kUnspecified: return "UNSPECIFIED";
    case Verdict::kOk: return "OK";
    case Verdict::kBadTag: return "BAD_TAG";
    case Verdict::kClockSkew: return "CLOCK_SKEW";
    case Verdict::kReplay: return "REPLAY";
    case Verdict::kRefused: return "REFUSED";
    case Verdict::kUnknownHandle: return "UNKNOWN_HANDLE";
    case Verdict::kDeadline: return "DEADLINE";
    case Verdict::kInconsistent: return "INCONSISTENT";
    case Verdict::kQuota: return "QUOTA";
    case Verdict::kUnavailable: return "UNAVAILABLE";
    case Verdict::kMalformed: return "MALFORMED";
    case Verdict::kUnproved:
      return "UNPROVED";
  }
  return "UNSPECIFIED";
}

}  // namespace mpckdc
