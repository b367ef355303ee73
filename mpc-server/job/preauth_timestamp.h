// SPDX-License-Identifier: Apache-2.0
//
// The plaintext of PA-ENC-TIMESTAMP (RFC 4120 section 5.2.7.2):
//
//   PA-ENC-TS-ENC ::= SEQUENCE { patimestamp [0] KerberosTime, pausec [1] Microseconds OPTIONAL }
//
// Strict DER: anything else is not a timestamp.
#ifndef MPC_SERVER_JOB_PREAUTH_TIMESTAMP_H_
#define MPC_SERVER_JOB_PREAUTH_TIMESTAMP_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace mpckdc {

inline constexpr size_t kMaxPreauthPlaintext = 64;  // MIT's are 26 to 28 bytes

std::optional<absl::Time> DecodePreauthTimestamp(absl::string_view der);
// The contents of a KerberosTime: YYYYMMDDHHMMSSZ.
std::optional<absl::Time> ParseKerberosTime(absl::string_view text);

// The time stamps for which the rest of a job is worth computing. The same at the three servers,
// each of which judges by its own clock in the end.
struct PreauthWindow {
  absl::Time time;  // of the batch
  absl::Duration skew = absl::InfiniteDuration();

  bool Holds(absl::string_view der) const;
};

// For tests, simulation and `mpc-admin test-login`.
std::string EncodePreauthTimestamp(absl::Time time);

}  // namespace mpckdc

#endif  // MPC_SERVER_JOB_PREAUTH_TIMESTAMP_H_
