// SPDX-License-Identifier: Apache-2.0
//
// The public header that the servers put into every ticket sealed under a tgs key (krbtgt), bound
// by the tag. 33 bytes, integers big-endian:
//
//   version = 1 (1) | principal id (16) | origin authentication time (4)
//   | renewable until, cap (4) | origin job (8)
#ifndef MPC_SERVER_JOB_TGT_HEADER_H_
#define MPC_SERVER_JOB_TGT_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "mpc-server/job/job.h"

namespace mpckdc {

inline constexpr size_t kTgtHeaderBytes = 33;
inline constexpr uint8_t kTgtHeaderVersion = 1;

struct TgtHeader {
  PrincipalId principal{};      // under whose key the pre-auth was verified
  uint32_t origin_time = 0;     // seconds since 1970, unsigned: good until 2106
  uint32_t renewable_cap = 0;
  JobId origin_job = 0;

  friend bool operator==(const TgtHeader&, const TgtHeader&) = default;
};

std::string EncodeTgtHeader(const TgtHeader& header);
std::optional<TgtHeader> DecodeTgtHeader(absl::string_view bytes);
// Whom the header of the ticket that the job opens names; it is not verified before the job was
// computed. All zero when there is none.
PrincipalId PrincipalOfTicket(const Job& job);

// The header of a ticket whose gate is passed in this job. Times beyond 2106 stop at the last one.
TgtHeader NewTgtHeader(const PrincipalId& principal, JobId job, absl::Time origin,
                       absl::Duration max_renewable_life);

// Whether a ticket with this header may still be opened: by the server's own limit now and by the
// cap that the header was given then. An origin in the future beyond `skew` is no server's work.
Judgement CheckOriginAge(const TgtHeader& header, absl::Time now,
                         absl::Duration max_renewable_life, absl::Duration skew);

}  // namespace mpckdc

#endif  // MPC_SERVER_JOB_TGT_HEADER_H_
