// SPDX-License-Identifier: Apache-2.0
//
// What a server did between two looks at its status.
#ifndef MPC_SERVER_ADMIN_TOP_H_
#define MPC_SERVER_ADMIN_TOP_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "proto/admin.pb.h"

namespace mpckdc::admin {

// Rates are of a second, times of a batch.
struct Rates {
  bool known = false;  // not: the first look, or the server was started in between
  double logins = 0, jobs = 0, failed = 0, batches = 0;
  double jobs_of_batch = 0;  // 0: there was no batch
  absl::Duration waited, agreed, computed;
};

Rates RatesBetween(const v1::StatusReply& before, const v1::StatusReply& after,
                   absl::Duration time);

// One bar for each value, from one eighth to full height of the largest; in UTF-8.
std::string Bars(absl::Span<const double> values);

}  // namespace mpckdc::admin

#endif  // MPC_SERVER_ADMIN_TOP_H_
