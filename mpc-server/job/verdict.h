// SPDX-License-Identifier: Apache-2.0
//
// What a server decided about a job. The numbers are those of proto/kdc_key.proto and of the votes
// between the servers (doc/jobs.md).
#ifndef MPC_SERVER_JOB_VERDICT_H_
#define MPC_SERVER_JOB_VERDICT_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace mpckdc {

enum class Verdict : uint8_t {
  kUnspecified = 0,
  kOk = 1,
  kBadTag = 2,     // wrong key or altered message: alone may count as a wrong password
  kClockSkew = 3,  // pre-auth timestamp outside this server's window
  kReplay = 4,     // this pre-auth was seen before
  kRefused = 5,    // not in the table, gate not met, origin too old
  kUnknownHandle = 6,
  kDeadline = 7,
  kInconsistent = 8,  // the three servers did not receive the same job
  kQuota = 9,
  kUnavailable = 10,  // a peer is down, the engine restarts, the disk is full
  kMalformed = 11,
  kUnproved = 12,  // QUOTA, but from a proved source the same request may be computed
};
inline constexpr uint8_t kLastVerdict = 12;

absl::string_view VerdictName(Verdict verdict);  // "OK", "BAD_TAG", ...

// A verdict with a sentence that tells the administrator what was wrong; empty when OK, never
// secret.
struct Judgement {
  Verdict verdict = Verdict::kOk;
  std::string detail;

  bool ok() const { return verdict == Verdict::kOk; }
};

inline Judgement Ok() { return {}; }
inline Judgement Refuse(Verdict verdict, std::string detail) {
  return {verdict, std::move(detail)};
}

}  // namespace mpckdc

#endif  // MPC_SERVER_JOB_VERDICT_H_
